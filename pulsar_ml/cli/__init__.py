"""The commands of ``python -m pulsar_ml``.

To add one: write a click command in a module of this package and name it in :data:`COMMANDS`. A
module is imported when its command is asked for.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

import click

from pulsar_ml import __version__
from pulsar_ml.errors import PulsarMlError


@dataclass(frozen=True, slots=True)
class Named:
    """Where a command lives, and its sentence for the list."""

    place: str  # module:attribute
    summary: str


COMMANDS: dict[str, Named] = {
    "simulate": Named(
        "pulsar_ml.cli.simulate:command",
        "Play workloads under the eviction policies, on a virtual clock.",
    ),
    "build": Named(
        "pulsar_ml.cli.build:build", "Build a .pyx file, for real threads or for the engine."
    ),
    "config": Named(
        "pulsar_ml.cli.config:config", "Explain the settings of the cache, or check a broker.conf."
    ),
    "report": Named(
        "pulsar_ml.cli.report:report", "Report what a run found: a page, SARIF, JUnit, Markdown."
    ),
    "collect": Named("pulsar_ml.cli.collect:collect", "Put runs into one partitioned data set."),
    "linearize": Named(
        "pulsar_ml.cli.linearize:linearize", "Check a recorded history against a sequential model."
    ),
}


INTERRUPTED = 130


class Wrong(click.ClickException):
    exit_code = 2


class Failed(click.ClickException):
    exit_code = 4


class Commands(click.Group):
    """The group of :data:`COMMANDS`, each loaded when it is used."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].place.partition(":")
        return getattr(importlib.import_module(module), attribute)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        # The list needs no command's module.
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, COMMANDS[name].summary) for name in self.list_commands(context)]
            )

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except PulsarMlError as error:
            # What the user gave is wrong, or a right command failed.
            kind = Wrong if isinstance(error, ValueError) else Failed
            raise kind(str(error)) from None
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except OSError as error:  # a name that is too long, a disk that is full
            raise Failed(f"{error.filename or 'the system'}: {error.strerror or error}") from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Apache Pulsar's broker cache: its settings and what they do; the checks of the harness.

    \b
    python -m pulsar_ml config --explain
    python -m pulsar_ml build ticket.pyx --checked
    python -m pulsar_ml linearize history.jsonl --model register
    python -m pulsar_ml report runs/ID
    python -m pulsar_ml COMMAND --help

    Exit codes: 0 done, 2 something given is wrong (the message says what would be right), 4 it failed,
    130 interrupted.
    """
