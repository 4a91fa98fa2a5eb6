"""``explore``, ``trace`` and ``shrink``: the suites in the controlled world, where one integer decides
every switch, stale read and fault.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from pulsar_ml.campaign.local import saving
from pulsar_ml.campaign.local.progress import Progress
from pulsar_ml.campaign.trial.controlled import program_of, to_result
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import (
    TrialOptions,
    TrialResult,
    load_native,
    select_mutant,
)
from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.engine import FAULTS, MODES, OFFERED, REUSE, SAMPLERS
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.search.child import Limits, LostError
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.search.failure import Failure, replay
from pulsar_ml.harness.search.lanes import lane_table, summary
from pulsar_ml.harness.search.sandbox import (
    call,
    lost_exploration,
    replay_lost,
    watch,
)
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.input_files import bounded_text
from pulsar_ml.harness.building.unseen import warn_of_unseen_code

EXIT_CLEAN = 0
EXIT_VIOLATION = 1
EXIT_NOTHING_EXERCISED = 3
EXIT_INTERRUPTED = 130
PER_PROGRAM = 2_000
MOST_REMARKS = 5
CHECKED = "pulsar_ml.operations._checked"
Command = Callable[..., int]
T = TypeVar("T")


@dataclass(slots=True)
class Total:
    """The counts of all programs of one suite."""

    suite: str
    strategy: str
    programs: int = 0
    executions: int = 0
    seconds: float = 0.0
    rechecked: int = 0
    exhausted: Counter[str] = field(default_factory=Counter)  # programs by what was proved of them
    missed: tuple[float, float, float] = (
        0.0,
        0.0,
        0.0,
    )  # of depth 1 to 3, in the worst of the programs
    counts: Counter[str] = field(default_factory=Counter)
    failure: Failure | None = None
    failed: TrialResult | None = None  # its program as a trial, still without the failure
    remarks: list[str] = field(default_factory=list)
    found: str = ""  # where: a shrunk failure does not say it any more

    def add(self, done: Exploration) -> None:
        self.programs += 1
        self.executions += done.executions
        self.seconds += done.seconds
        self.rechecked += done.rechecked
        if done.exhausted:
            self.exhausted[done.exhausted] += 1
        first, second, third = (
            max(self.missed[depth - 1], done.missed(depth)) for depth in (1, 2, 3)
        )
        self.missed = (first, second, third)
        self.counts.update(done.statistics)
        self.remarks += [f"  program {self.programs}: {remark}" for remark in done.remarks]
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
        return [
            f"{self.suite}: {self.executions:,} executions of {self.programs} programs in "
            f"{self.seconds:.1f} s ({rate:,.0f} executions/s, {steps:,.0f} steps/s)",
            f"  classes seen: {self.counts['classes']:,}; "
            + (f"unseen mass about {self.counts['once'] / made:.2%}; " if self.sampled else "")
            + f"cut by the step limit: {self.counts['cut'] / made:.2%}; "
            f"made twice and equal: {self.rechecked}",
            *(
                f"  exhausted {what}: {programs} programs"
                for what, programs in self.exhausted.items()
            ),
            *self.answers(),
            *self.remarks[:MOST_REMARKS],
            *more_than(self.remarks),
            *([f"  failed in {self.found}"] if self.failure else self.risks()),
        ]

    @property
    def sampled(self) -> bool:
        """The executions are a sample of all; those of a search are none."""
        return self.strategy in SAMPLERS

    def answers(self) -> list[str]:
        """How many histories the suite's model was asked about."""
        if not self.counts["judged"]:
            return ["  answers: not compared with a model"]
        unknown = self.counts["unknown"]
        return [
            f"  answers: {self.counts['judged']:,} histories compared with the model"
            + (f", {unknown:,} of them too long to tell" if unknown else "")
        ]

    def risks(self) -> list[str]:
        """The claims that the executions allow about those that were not made."""
        if not self.sampled:
            left = self.programs - self.exhausted.total()
            return (
                [
                    f"  the search of {left} programs did not end; its executions are no sample, so they "
                    "say nothing of those that were not made"
                ]
                if left
                else ["  load buffering is outside the memory model"]
            )
        lines = [
            f"  with 95 % confidence a failure of these programs is rarer than 1 in "
            f"{max(self.executions, 1) / 3:,.0f} executions; load buffering is outside the memory model"
        ]
        made = [self.counts[f"pct_{depth}"] for depth in (1, 2, 3)]
        if any(made):
            told = "; ".join(
                f"depth {depth}: {missed:.2g} ({executions:,} executions)"
                for depth, missed, executions in zip((1, 2, 3), self.missed, made, strict=True)
            )
            lines.append(
                f"  PCT missed a bug of the schedule with probability at most, by program: {told}"
            )
        return lines

    def as_data(self) -> dict[str, Any]:
        return {
            "suite": self.suite,
            "programs": self.programs,
            "executions": self.executions,
            "seconds": self.seconds,
            "rechecked": self.rechecked,
            "exhausted": dict(self.exhausted),
            "pct_missed": self.missed,
            "counts": dict(self.counts),
            "failure": None if self.failure is None else json.loads(self.failure.to_json()),
        }


def more_than(remarks: list[str]) -> list[str]:
    left = len(remarks) - MOST_REMARKS
    return [f"  {left} more remarks of this kind"] if left > 0 else []


def checked_subject(name: str, module: str = CHECKED, mutant: str | None = None) -> Subject:
    """A subject of a checked module: an importable name, or the path of a shared object.

    Raises UsageError when the module has no such subject or mutant.
    """
    native = load_native(module)  # the engine is there already, imported above
    if module != CHECKED and native.__file__:
        warn_of_unseen_code(Path(native.__file__))
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
    threads: int | None,
    operations: int | None,
    executions: int,
    per_program: int,
    seed: int,
    progress: Progress,
    module: str,
    mutant: str | None,
    limits: Limits | None,
    answers: bool = True,
    told: Callable[[TrialResult], object] | None = None,
    **options: Any,
) -> None:
    """Programs of seed, seed+1, ... until ``executions`` were made or one failed, added to ``total``.

    In a child process when there are ``limits``. ``told`` gets each program that did not fail as a trial.
    """
    subject = checked_subject(suite.subject, module, mutant)
    size = TrialOptions(threads=threads, operations=operations)
    judge = judge_of(suite.model) if answers else None

    def program_of_number(number: int) -> Program:
        return program_of(subject, suite, seed + number, size)

    def search(tell: Callable[[Exploration], object]) -> None:
        made = number = 0
        while made < executions:
            rest = min(per_program, executions - made)
            before = None if judge is None else dataclasses.replace(judge.counts)
            done = explore(
                subject,
                program_of_number(number),
                executions=rest,
                seed=seed,
                judge=judge,
                **options,
            )
            if judge is not None and before is not None:
                counted = dict(done.statistics)
                counted["judged"] = judge.counts.judged - before.judged
                counted["unknown"] = judge.counts.unknown - before.unknown
                done = dataclasses.replace(done, statistics=counted)
            tell(done)
            if done.failure is not None:
                break
            made += done.executions
            number += 1

    def add(done: Exploration) -> None:
        if told is not None:
            program = program_of_number(total.programs)
            silent = dataclasses.replace(done, failure=None)
            named = TrialOptions(module=module, mutant=mutant, noise=False)
            result = to_result(suite, named, subject, program, silent)
            if done.failure is None:
                told(result)
            else:
                total.failed = result
        total.add(done)
        progress.explored(total.executions, total.programs)

    progress.begin_exploring(suite.name, executions, seed)
    try:
        if limits is None:
            search(add)
        else:
            watch(search, add, limits=limits)
    except LostError as lost:
        add(
            lost_exploration(
                lost, subject, program_of_number(total.programs), {"seed": seed, **options}
            )
        )
    finally:
        progress.end()


def read_failure(path: Path) -> Failure:
    text = bounded_text(path, "the failure")
    try:
        return Failure.from_text(text)
    except BadRecordError as error:
        raise BadRecordError(f"{path}: {error}") from None


def show(
    failure: Failure,
    subject: Subject,
    *,
    table: bool,
    limits: Limits | None,
    judge: Judge | None = None,
    sources: bool = True,
) -> None:
    """Make the failure again and print it; one whose process was lost always in a child."""
    if failure.lost:
        again = replay_lost(failure, subject, limits=limits)
    else:
        again = guarded(lambda: replay(failure, subject, judge), limits)
    click.echo(summary(failure, again))
    if table and again.trace:
        click.echo(lane_table(failure, again.trace, subject=subject, sources=sources))


def guarded(work: Callable[[], T], limits: Limits | None) -> T:
    """What ``work`` returns, made in a child process when there are limits."""
    return work() if limits is None else call(work, limits=limits)


def in_sandbox(command: Command) -> Command:
    """Options that say whether code under test runs in a child process, and how long that may be silent."""
    sandbox = click.option(
        "--sandbox/--no-sandbox",
        default=True,
        show_default=True,
        help="Run in a child process: code that ends or blocks it is a failure and does no other harm.",
    )
    patience = click.option(
        "--patience",
        metavar="SECONDS",
        type=click.FloatRange(0, min_open=True),
        default=Limits().wall,
        show_default=True,
        help="How long one execution may take before the child process is called stuck.",
    )
    return sandbox(patience(command))


def limits_of(sandbox: bool, patience: float) -> Limits | None:
    return Limits(wall=patience, cpu=min(patience, Limits().cpu)) if sandbox else None


def in_module(command: Command) -> Command:
    """Options that say which checked module a command is about."""
    name = click.option(
        "--module",
        default=CHECKED,
        show_default=True,
        help="Checked module: a name or the path of a .so file.",
    )
    mutant = click.option(
        "--mutant", metavar="ID", help="Select this mutant in a module that has mutants."
    )
    return name(mutant(command))


@click.command("explore")
@click.argument("suite")
@click.option("--strategy", type=click.Choice(OFFERED), default="portfolio", show_default=True)
@click.option(
    "--mode", type=click.Choice(MODES), default="c11", show_default=True, help="Memory model."
)
@click.option("--executions", type=click.IntRange(1), default=100_000, show_default=True)
@click.option("--seed", type=click.IntRange(0, 2**63), default=0, show_default=True)
@click.option(
    "--threads", type=click.IntRange(1, 63), help="Default: drawn from the suite's range."
)
@click.option(
    "--operations",
    type=click.IntRange(1, 1000),
    help="Per thread. Default: drawn from the suite's range.",
)
@click.option("--per-program", type=click.IntRange(1), default=PER_PROGRAM, show_default=True)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    type=click.Choice(tuple(FAULTS)),
    help="Faults that may happen.",
)
@click.option(
    "--reuse",
    type=click.Choice(tuple(REUSE)),
    default="mixed",
    show_default=True,
    help="Freed memory.",
)
@click.option(
    "--races/--no-races",
    default=True,
    show_default=True,
    help="Report data races. Without, only what code does is judged, not the orders it declares.",
)
@click.option(
    "--suppress",
    multiple=True,
    metavar="PLACE",
    help="A known race to pass over and count: file:line, or the function of one of its accesses.",
)
@click.option(
    "--answers/--no-answers",
    default=True,
    show_default=True,
    help="Compare answers with the suite's model, where it has one.",
)
@click.option(
    "--bound",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    help="Of exhaustive strategies.",
)
@in_module
@in_sandbox
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--records",
    type=click.Path(file_okay=False, path_type=Path),
    help="Default: a folder in runs/explore.",
)
@saving.option
@click.pass_obj
def explore_command(
    context: Any,
    /,
    suite: str,
    as_json: bool,
    records: Path | None,
    out: Path | None,
    sandbox: bool,
    patience: float,
    **options: Any,
) -> int:
    """Run SUITE, or "all", on fibers under the engine: small programs, many executions of each.

    \b
    python -m stress explore mpsc_queue --executions 1000000
    python -m stress explore refcount --strategy preemptions --bound 3 --mode sc
    """
    suites = list(context.suites.values()) if suite == "all" else [context.suite(suite)]
    limits = limits_of(sandbox, patience)
    totals: list[Total] = []
    interrupted = False
    saved = None
    if out:
        first = checked_subject(suites[0].subject, options["module"], options["mutant"])
        saved = saving.of_exploration(out, str(first.build_id), options, context.foreign)
    with saved or nullcontext():
        for each in suites:
            total = Total(each.name, options["strategy"])
            totals.append(total)
            told = {"told": saved.add} if saved else {}
            try:
                explore_suite(
                    each, total, progress=context.progress, limits=limits, **options, **told
                )
            except KeyboardInterrupt:  # what was made so far is kept and shown
                interrupted = True
            path = keep(total, records, options["module"], limits, judge_of(each.model))
            if saved and total.failed and total.failure:
                saved.add(saving.with_failure(total.failed, total.failure, options))
            if not as_json:
                click.echo("\n".join(total.lines()))
                if path is not None and total.failure is not None:
                    show(
                        total.failure,
                        checked_subject(each.subject, options["module"], options["mutant"]),
                        table=False,
                        limits=limits,
                        judge=judge_of(each.model),
                    )
                    told_by = trace_line(path, options["module"], options["mutant"])
                    click.echo(f"  written to {path}; {told_by}")
            if interrupted:
                break
        if saved and interrupted:
            saved.status = "interrupted"
    if saved and not as_json:
        click.echo(saved.where())
    code = EXIT_INTERRUPTED if interrupted else exit_code(totals)
    if as_json:
        click.echo(
            json.dumps(
                {"exit_code": code, "suites": [total.as_data() for total in totals]}, indent=2
            )
        )
    return code


def trace_line(path: Path, module: str, mutant: str | None) -> str:
    """The command that makes the failure again."""
    chosen = (
        ""
        if module == CHECKED
        else f" --module {module}" + (f" --mutant {mutant}" if mutant else "")
    )
    return f"python -m stress trace {path}{chosen}"


def keep(
    total: Total,
    records: Path | None,
    module: str,
    limits: Limits | None,
    judge: Judge | None = None,
) -> Path | None:
    """Shrink the failure of a suite, if there is one, and write it; its path."""
    if total.failure is None:
        return None
    folder = records or Path("runs/explore") / time.strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{total.suite}-{total.failure.execution}.json"
    path.write_text(total.failure.to_json() + "\n")  # before shrinking: that may be interrupted
    subjects = load_native(module).SUBJECTS  # with the mutant still selected
    total.failure = shrunk(total.failure, subjects[total.failure.subject], limits, judge)
    path.write_text(total.failure.to_json() + "\n")
    return path


def shrunk(
    failure: Failure, subject: Subject, limits: Limits | None, judge: Judge | None = None
) -> Failure:
    """The failure made smaller; as it is when that loses the process."""
    try:
        return guarded(lambda: shrink(failure, subject, judge=judge), limits)
    except LostError:
        return failure


def judge_for(suites: Mapping[str, Suite], subject: str) -> Judge | None:
    """The judge of the first suite about this subject that has a model."""
    models = [suite.model for suite in suites.values() if suite.subject == subject and suite.model]
    return judge_of(models[0]) if models else None


def exit_code(totals: Sequence[Total]) -> int:
    """One exit code for several suites: a violation before "nothing exercised"."""
    found = {total.exit_code() for total in totals}
    return next(
        (code for code in (EXIT_VIOLATION, EXIT_NOTHING_EXERCISED) if code in found), EXIT_CLEAN
    )


@click.command("trace")
@click.argument("failure", type=click.Path(path_type=Path))
@in_module
@in_sandbox
@click.pass_obj
def trace_command(
    context: Any, /, failure: Path, module: str, mutant: str | None, sandbox: bool, patience: float
) -> int:
    """Make a FAILURE of ``explore`` again, step by step, and print one column per thread."""
    read = read_failure(failure)
    subject = checked_subject(read.subject, module, mutant)
    show(
        read,
        subject,
        table=True,
        limits=limits_of(sandbox, patience),
        judge=judge_for(context.suites, read.subject),
        sources=mutant is None,
    )
    return EXIT_VIOLATION


@click.command("shrink")
@click.argument("failure", type=click.Path(path_type=Path))
@in_module
@in_sandbox
@click.pass_obj
def shrink_command(
    context: Any, /, failure: Path, module: str, mutant: str | None, sandbox: bool, patience: float
) -> int:
    """Make a FAILURE of ``explore`` smaller, in place, while it stays the same failure."""
    limits = limits_of(sandbox, patience)
    before = read_failure(failure)
    subject = checked_subject(before.subject, module, mutant)
    judge = judge_for(context.suites, before.subject)
    after = shrunk(before, subject, limits, judge)
    failure.write_text(after.to_json() + "\n")
    show(after, subject, table=False, limits=limits, judge=judge)
    return EXIT_VIOLATION


def register(cli: click.Group) -> None:
    """Add the commands of this module to the command line."""
    for command in (explore_command, trace_command, shrink_command):
        cli.add_command(command)
