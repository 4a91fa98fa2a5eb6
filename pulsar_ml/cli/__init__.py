"""The command ``pulsar-ml``, also ``python -m pulsar_ml``.

To add a subcommand: write it in a module of this package and give it a row in :data:`COMMANDS`. A
module is imported when its command is used.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from pulsar_ml import __version__
from pulsar_ml.cli.command import NAMES_OF_HELP, errors_as_sentences, write_exit_codes
from pulsar_ml.exit_codes import ExitCode
from pulsar_ml.terminal.printer import leave_closed_output


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the list of commands."""

    section: str
    module: str  # its attribute ``command`` is the command
    summary: str
    listed: bool = True  # False: an old name, which the help of the group leaves out


FIND, UNDERSTAND, DISTRIBUTE, CACHE = SECTIONS = (
    "Find bugs",
    "Understand what was found",
    "Distribute",
    "Cache",
)

COMMANDS: dict[str, Entry] = {
    "check": Entry(FIND, "find.check", "Explore test functions of C, C++, Cython and Python."),
    "run": Entry(FIND, "find.run", "Run suites on real threads."),
    "explore": Entry(FIND, "find.explore", "Search schedules of small programs under the engine."),
    "sweep": Entry(FIND, "find.sweep", "Run many seeds side by side, on this machine or on Spark."),
    "hunt": Entry(FIND, "find.hunt", "Find a schedule for a failure of real threads."),
    "linearize": Entry(FIND, "find.linearize", "Check a recorded history against a model."),
    "mutants": Entry(FIND, "mutants", "Weaken the code under test and see which suite notices."),
    "build": Entry(FIND, "find.build", "Build a .pyx file, for real threads or for the engine."),
    "list": Entry(UNDERSTAND, "understand.list_suites", "List the suites."),
    "invariants": Entry(
        UNDERSTAND, "understand.invariants", "List the invariants that suites check."
    ),
    "replay": Entry(UNDERSTAND, "understand.replay", "Run a record again, and show its steps."),
    "trace": Entry(UNDERSTAND, "understand.trace", "The old name of replay -v.", listed=False),
    "explain": Entry(UNDERSTAND, "understand.explain", "Try changes that end a failure."),
    "shrink": Entry(UNDERSTAND, "understand.shrink", "Make a failure, or all of a run, smaller."),
    "report": Entry(UNDERSTAND, "understand.report", "Report a run: page, SARIF, JUnit, Markdown."),
    "doctor": Entry(DISTRIBUTE, "distribute.doctor", "Check every executor of a Spark cluster."),
    "pack": Entry(DISTRIBUTE, "distribute.pack", "Pack the environment of executors."),
    "cluster": Entry(DISTRIBUTE, "distribute.cluster", "Start a Spark cluster on this machine."),
    "scale": Entry(DISTRIBUTE, "distribute.scale", "Estimate what a sweep costs on a cluster."),
    "compact": Entry(DISTRIBUTE, "distribute.compact", "Merge the small files of a run."),
    "collect": Entry(DISTRIBUTE, "distribute.collect", "Put runs into one data set."),
    "config": Entry(CACHE, "cache.config", "Explain the cache's settings, or check a broker.conf."),
    "simulate": Entry(CACHE, "cache.simulate", "Compare eviction policies on simulated workloads."),
}


class Commands(click.Group):
    """A group that imports the module of a command when the command is used."""

    def __init__(
        self, *arguments: Any, table: Mapping[str, Entry] = COMMANDS, **attributes: Any
    ) -> None:
        super().__init__(*arguments, **attributes)
        self.table = table

    def list_commands(self, context: click.Context) -> list[str]:
        return [*self.table, *self.commands]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name in self.commands or name not in self.table:
            return self.commands.get(name)
        module = importlib.import_module(f"pulsar_ml.cli.{self.table[name].module}")
        found: click.Command = module.command
        return found

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        # From the table, so that no command's module is imported.
        width = max(map(len, self.table))
        for section in SECTIONS:
            rows = [
                (f"{name:{width}}", entry.summary)
                for name, entry in self.table.items()
                if entry.section == section and entry.listed
            ]
            with formatter.section(section):
                formatter.write_dl(rows)

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        write_exit_codes(formatter, tuple(ExitCode))

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **more)
        except BrokenPipeError:  # of --help and --version
            leave_closed_output()

    def invoke(self, context: click.Context) -> Any:
        with errors_as_sentences(context):
            return super().invoke(context)


@click.group(cls=Commands, context_settings=NAMES_OF_HELP)
@click.version_option(__version__, prog_name="pulsar-ml")
def main() -> None:
    """Find data races and wrong answers in Apache Pulsar's broker cache, or in your native code.

    \b
    pulsar-ml sweep --runner pool --seconds 60
    pulsar-ml explore refcount
    pulsar-ml report runs/ID
    pulsar-ml COMMAND --help
    """
