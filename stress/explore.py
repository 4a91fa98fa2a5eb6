"""``explore``, ``trace`` and ``shrink``: the suites in the controlled world, where one integer decides
every switch, stale read and fault.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from pulsar_ml.campaign.suite import Suite
from pulsar_ml.campaign.trial import load_native, select_mutant
from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.engine import FAULTS, MODES, REUSE, STRATEGIES
from pulsar_ml.harness.explore import Exploration, explore
from pulsar_ml.harness.failure import Failure, replay
from pulsar_ml.harness.program import generate
from pulsar_ml.harness.report import lane_table, summary
from pulsar_ml.harness.shrink import shrink
from pulsar_ml.harness.subject import Subject
from stress.progress import Progress

EXIT_CLEAN = 0
EXIT_VIOLATION = 1
EXIT_NOTHING_EXERCISED = 3
EXIT_INTERRUPTED = 130
PER_PROGRAM = 2_000
CHECKED = "pulsar_ml.operations._checked"
Command = Callable[..., int]
OFFERED = tuple(strategy for strategy in STRATEGIES if strategy != "replay")


@dataclass(slots=True)
class Total:
    """The counts of all programs of one suite."""

    suite: str
    programs: int = 0
    executions: int = 0
    seconds: float = 0.0
    rechecked: int = 0
    exhausted: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failure: Failure | None = None
    found: str = ""  # where: a shrunk failure does not say it any more

    def add(self, done: Exploration) -> None:
        self.programs += 1
        self.executions += done.executions
        self.seconds += done.seconds
        self.rechecked += done.rechecked
        self.exhausted += bool(done.exhausted)
        self.counts.update(done.statistics)
        self.failure = done.failure
        if done.failure is not None:
            found = done.failure
            self.found = f"execution {found.execution} of program {self.programs} (strategy {found.strategy})"

    def exit_code(self) -> int:
        if self.failure is not None:
            return EXIT_VIOLATION
        return EXIT_CLEAN if self.counts["shared"] else EXIT_NOTHING_EXERCISED

    def lines(self) -> list[str]:
        rate = self.executions / self.seconds if self.seconds else 0.0
        steps = self.counts["steps"] / self.seconds if self.seconds else 0.0
        made = max(self.executions, 1)
        ended = (
            f"  with 95 % confidence a failure of these programs is rarer than 1 in {made / 3:,.0f} "
            "executions; load buffering is outside the memory model"
            if self.failure is None
            else f"  failed in {self.found}"
        )
        return [
            f"{self.suite}: {self.executions:,} executions of {self.programs} programs in "
            f"{self.seconds:.1f} s ({rate:,.0f} executions/s, {steps:,.0f} steps/s)",
            f"  classes seen: {self.counts['classes']:,}; unseen mass about "
            f"{self.counts['once'] / made:.2%}; cut by the step limit: {self.counts['cut'] / made:.2%}; "
            f"made twice and equal: {self.rechecked}",
            ended,
        ]

    def as_data(self) -> dict[str, Any]:
        return {
            "suite": self.suite,
            "programs": self.programs,
            "executions": self.executions,
            "seconds": self.seconds,
            "rechecked": self.rechecked,
            "exhausted": self.exhausted,
            "counts": dict(self.counts),
            "failure": None if self.failure is None else json.loads(self.failure.to_json()),
        }


def checked_subject(name: str, module: str = CHECKED, mutant: str | None = None) -> Subject:
    """A subject of a checked module: an importable name, or the path of a shared object.

    Raises UsageError when the module has no such subject or mutant.
    """
    native = load_native(module)  # the engine is there already, imported above
    select_mutant(native, mutant)
    subjects: Mapping[str, Subject] = getattr(native, "SUBJECTS", {})
    if name not in subjects:
        known = ", ".join(subjects) or "none"
        raise UsageError(f"the checked module {module} has no subject {name!r}; it has: {known}")
    return subjects[name]


def explore_suite(
    suite: Suite,
    total: Total,
    *,
    threads: int,
    operations: int,
    executions: int,
    per_program: int,
    seed: int,
    progress: Progress,
    module: str,
    mutant: str | None,
    **options: Any,
) -> None:
    """Programs of seed, seed+1, ... until ``executions`` were made or one failed, added to ``total``."""
    subject = checked_subject(suite.subject, module, mutant)
    if subject.max_threads:
        threads = min(threads, subject.max_threads)
    progress.begin_exploring(suite.name, executions, seed)
    try:
        while total.executions < executions and total.failure is None:
            program = generate(
                subject,
                seed + total.programs,
                threads=threads,
                operations=operations,
                mix=suite.mix or None,
                settings=suite.settings,
                noise=False,
            )
            rest = min(per_program, executions - total.executions)
            total.add(explore(subject, program, executions=rest, seed=seed, **options))
            progress.explored(total.executions, total.programs)
    finally:
        progress.end()


def read_failure(path: Path) -> Failure:
    try:
        return Failure.from_text(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the failure {path} cannot be read: {error}") from None
    except BadRecordError as error:
        raise BadRecordError(f"{path}: {error}") from None


def show(failure: Failure, subject: Subject, *, table: bool) -> None:
    again = replay(failure, subject)
    click.echo(summary(failure, again))
    if table:
        click.echo(lane_table(failure, again.trace))


def in_module(command: Command) -> Command:
    """Options that say which checked module a command is about."""
    name = click.option(
        "--module",
        default=CHECKED,
        show_default=True,
        help="Checked module: a name or the path of a .so file.",
    )
    mutant = click.option("--mutant", metavar="ID", help="Select this mutant in a module that has mutants.")
    return name(mutant(command))


@click.command("explore")
@click.argument("suite")
@click.option("--strategy", type=click.Choice(OFFERED), default="portfolio", show_default=True)
@click.option("--mode", type=click.Choice(MODES), default="c11", show_default=True, help="Memory model.")
@click.option("--executions", type=click.IntRange(1), default=100_000, show_default=True)
@click.option("--seed", type=click.IntRange(0, 2**63), default=0, show_default=True)
@click.option("--threads", type=click.IntRange(1, 63), default=3, show_default=True)
@click.option("--operations", type=click.IntRange(1, 1000), default=4, show_default=True, help="Per thread.")
@click.option("--per-program", type=click.IntRange(1), default=PER_PROGRAM, show_default=True)
@click.option(
    "--fault", "faults", multiple=True, type=click.Choice(tuple(FAULTS)), help="Faults that may happen."
)
@click.option(
    "--reuse", type=click.Choice(tuple(REUSE)), default="mixed", show_default=True, help="Freed memory."
)
@click.option(
    "--bound", type=click.IntRange(0), default=2, show_default=True, help="Of exhaustive strategies."
)
@in_module
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--records", type=click.Path(file_okay=False, path_type=Path), help="Default: a folder in runs/explore."
)
@click.pass_obj
def explore_command(context: Any, /, suite: str, as_json: bool, records: Path | None, **options: Any) -> int:
    """Run SUITE, or "all", on fibers under the engine: small programs, many executions of each.

    \b
    python -m stress explore mpsc_queue --executions 1000000
    python -m stress explore refcount --strategy preemptions --bound 3 --mode sc
    """
    suites = list(context.suites.values()) if suite == "all" else [context.suite(suite)]
    totals: list[Total] = []
    interrupted = False
    for each in suites:
        total = Total(each.name)
        totals.append(total)
        try:
            explore_suite(each, total, progress=context.progress, **options)
        except KeyboardInterrupt:  # what was made so far is kept and shown
            interrupted = True
        path = keep(total, records, options["module"])
        if not as_json:
            click.echo("\n".join(total.lines()))
            if path is not None and total.failure is not None:
                show(
                    total.failure,
                    checked_subject(each.subject, options["module"], options["mutant"]),
                    table=False,
                )
                click.echo(f"  written to {path}; {trace_line(path, options['module'], options['mutant'])}")
        if interrupted:
            break
    code = EXIT_INTERRUPTED if interrupted else exit_code(totals)
    if as_json:
        click.echo(json.dumps({"exit_code": code, "suites": [total.as_data() for total in totals]}, indent=2))
    return code


def trace_line(path: Path, module: str, mutant: str | None) -> str:
    """The command that makes the failure again."""
    chosen = "" if module == CHECKED else f" --module {module}" + (f" --mutant {mutant}" if mutant else "")
    return f"python -m stress trace {path}{chosen}"


def keep(total: Total, records: Path | None, module: str) -> Path | None:
    """Shrink the failure of a suite, if there is one, and write it; its path."""
    if total.failure is None:
        return None
    folder = records or Path("runs/explore") / time.strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{total.suite}-{total.failure.execution}.json"
    path.write_text(total.failure.to_json() + "\n")  # before shrinking: that may be interrupted
    subjects = load_native(module).SUBJECTS  # with the mutant still selected
    total.failure = shrink(total.failure, subjects[total.failure.subject])
    path.write_text(total.failure.to_json() + "\n")
    return path


def exit_code(totals: Sequence[Total]) -> int:
    """One exit code for several suites: a violation before "nothing exercised"."""
    found = {total.exit_code() for total in totals}
    return next((code for code in (EXIT_VIOLATION, EXIT_NOTHING_EXERCISED) if code in found), EXIT_CLEAN)


@click.command("trace")
@click.argument("failure", type=click.Path(path_type=Path))
@in_module
def trace_command(failure: Path, module: str, mutant: str | None) -> int:
    """Make a FAILURE of ``explore`` again, step by step, and print one column per thread."""
    read = read_failure(failure)
    show(read, checked_subject(read.subject, module, mutant), table=True)
    return EXIT_VIOLATION


@click.command("shrink")
@click.argument("failure", type=click.Path(path_type=Path))
@in_module
def shrink_command(failure: Path, module: str, mutant: str | None) -> int:
    """Make a FAILURE of ``explore`` smaller, in place, while it stays the same failure."""
    before = read_failure(failure)
    subject = checked_subject(before.subject, module, mutant)
    after = shrink(before, subject)
    failure.write_text(after.to_json() + "\n")
    show(after, subject, table=False)
    return EXIT_VIOLATION


def register(cli: click.Group) -> None:
    """Add the commands of this module to the command line."""
    for command in (explore_command, trace_command, shrink_command):
        cli.add_command(command)
