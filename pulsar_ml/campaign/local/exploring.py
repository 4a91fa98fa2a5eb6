"""Explores the programs of a suite under the engine, and writes the failures."""

from __future__ import annotations

import dataclasses
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulsar_ml.campaign.local.failures import checked_subject, shrink_failure
from pulsar_ml.campaign.store.counts import ProofCounts
from pulsar_ml.campaign.trial.controlled import program_of, steps_of, to_result
from pulsar_ml.campaign.trial.guidance import Guide
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import NOTHING_EXERCISED as IDLE
from pulsar_ml.campaign.trial.trial import TrialOptions, TrialResult
from pulsar_ml.errors import naming
from pulsar_ml.exit_codes import CLEAN, NOTHING_EXERCISED, VIOLATION, ExitCode
from pulsar_ml.harness.engine import REDUCING, SAMPLERS
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.search.child import Limits, LostError
from pulsar_ml.harness.search.explore import Exploration, explore, lost_exploration
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.partition import Left, bounds_met, summary_of
from pulsar_ml.harness.search.sandbox import watch
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.terminal.progress import ProgressDisplay
from pulsar_ml.wording import counted

MOST_REMARKS = 5


@dataclass(slots=True)
class SuiteExploration:
    """The counts of all programs of one suite, and its first failure."""

    suite: str
    strategy: str
    programs: int = 0
    executions: int = 0
    idle: int = 0  # programs in which no two threads touched one location
    under_way: int = 0  # executions of the program that an interrupt ended
    seconds: float = 0.0
    rechecked: int = 0
    exhausted: Counter[str] = field(default_factory=Counter)  # programs by the proof
    bounds: Counter[str] = field(default_factory=Counter)  # that left something out
    missed: tuple[float, float, float] = (0.0, 0.0, 0.0)  # depth 1 to 3, the worst program's
    counts: Counter[str] = field(default_factory=Counter)
    reduced: Counter[str] = field(default_factory=Counter)  # counts of programs with reduction
    failure: Failure | None = None
    failed: TrialResult | None = None  # the trial of its program, without the failure
    remarks: list[str] = field(default_factory=list)
    found: str = ""  # the place of the failure, which a shrunk failure no longer knows

    def add(self, done: Exploration) -> None:
        self.programs += 1
        self.idle += done.verdict == IDLE
        self.executions += done.executions
        self.seconds += done.seconds
        self.rechecked += done.rechecked
        if done.exhausted:
            self.exhausted[done.exhausted] += 1
        self.bounds.update(done.bounds)
        first, second, third = (
            max(self.missed[depth - 1], done.missed(depth)) for depth in (1, 2, 3)
        )
        self.missed = (first, second, third)
        self.counts.update(done.statistics)
        if done.strategy in REDUCING and not done.statistics["unreduced"]:
            self.reduced.update(done.statistics)
        self.remarks += [f"  program {self.programs}: {remark}" for remark in done.remarks]
        self.failure = done.failure
        if done.failure is not None:
            found = done.failure
            self.found = (
                f"execution {found.execution} of program {self.programs} "
                f"(strategy {found.strategy})"
            )

    def exit_code(self) -> ExitCode:
        if self.failure is not None:
            return VIOLATION
        return CLEAN if self.counts["shared"] else NOTHING_EXERCISED

    def lines(self) -> list[str]:
        if not self.executions:
            return [f"{self.suite}: no program was complete; {self.under_way:,} executions, silent"]
        rate = self.executions / self.seconds if self.seconds else 0.0
        steps = self.counts["steps"] / self.seconds if self.seconds else 0.0
        total = max(self.executions, 1)
        return [
            f"{self.suite}: {self.executions:,} executions of {self.programs} programs in "
            f"{self.seconds:.1f} s ({rate:,.0f} executions/s, {steps:,.0f} steps/s)",
            f"  classes seen: {self.counts['classes']:,}; "
            + (f"unseen mass about {self.counts['once'] / total:.2%}; " if self.sampled else "")
            + "cut by the step limit: "
            f"{self.counts['cut'] / total:.2%}; made twice and equal: {self.rechecked}",
            *(
                f"  exhausted {what}: {programs} programs"
                for what, programs in self.exhausted.items()
            ),
            *self.reductions(),
            *self.bounds_met(),
            *self.answers(),
            *self.remarks[:MOST_REMARKS],
            *more_than(self.remarks),
            *([f"  failed in {self.found}"] if self.failure else self.risks()),
        ]

    @property
    def sampled(self) -> bool:
        """The executions are a sample of all; those of a search are none."""
        return self.strategy in SAMPLERS

    def bounds_met(self) -> list[str]:
        """The bounds that left something out, unless each program's proof names them."""
        proved = self.exhausted.total() == self.programs
        return [f"  {bounds_met(self.bounds)}"] if self.bounds and not proved else []

    def reductions(self) -> list[str]:
        """The counts of searches that were reduced."""
        count = self.reduced
        if not count["executions"]:
            return []
        whole = count["executions"] - count["blocked"] - count["pruned"]
        return [f"  {summary_of(whole, count['classes'], count['blocked'], count['pruned'])}"]

    def answers(self) -> list[str]:
        """The number of histories that were compared with the suite's model."""
        if not self.counts["judged"]:
            return ["  answers: not compared with a model"]
        unknown = self.counts["unknown"]
        return [
            f"  answers: {self.counts['judged']:,} histories compared with the model"
            + (f", {unknown:,} of them too long to tell" if unknown else "")
        ]

    def risks(self) -> list[str]:
        """Bounds on the failures that the executions may have missed; a search has none."""
        if not self.sampled:
            left = self.programs - self.exhausted.total()
            if not left:
                return ["  load buffering is outside the memory model"]
            return [
                f"  the search of {counted(left, 'program')} did not end; its executions are no "
                "sample and bound no risk"
            ]
        lines = [
            f"  with 95 % confidence a failure of these programs is rarer than 1 in "
            f"{max(self.executions, 1) / 3:,.0f} executions; load buffering is outside the memory "
            "model"
        ]
        outcome = [self.counts[f"pct_{depth}"] for depth in (1, 2, 3)]
        if any(outcome):
            bounds = "; ".join(
                f"depth {depth}: {missed:.2g} ({executions:,} executions)"
                for depth, missed, executions in zip((1, 2, 3), self.missed, outcome, strict=True)
            )
            lines.append(
                f"  PCT missed a bug of the schedule with probability at most, by program: {bounds}"
            )
        return lines

    def as_data(self) -> dict[str, Any]:
        return {
            "suite": self.suite,
            "programs": self.programs,
            "idle": self.idle,
            "executions": self.executions,
            "seconds": self.seconds,
            "rechecked": self.rechecked,
            "exhausted": dict(self.exhausted),
            "bounds": dict(self.bounds),
            "remarks": self.remarks,
            "pct_missed": self.missed,
            "counts": dict(self.counts),
            "failure": None if self.failure is None else json.loads(self.failure.to_json()),
        }


def counts_of(totals: Sequence[SuiteExploration]) -> ProofCounts:
    return ProofCounts(
        trials=sum(total.programs for total in totals),
        idle=sum(total.idle for total in totals),
        judged=sum(total.counts["judged"] for total in totals),
        unknown=sum(total.counts["unknown"] for total in totals),
        executions=sum(total.executions for total in totals),
        cut=sum(total.counts["cut"] for total in totals),
        noun="program",
    )


def more_than(remarks: list[str]) -> list[str]:
    """One line for the remarks past those that are shown."""
    left = len(remarks) - MOST_REMARKS
    return [f"  {left} more remarks of this kind"] if left > 0 else []


def explore_suite(
    suite: Suite,
    total: SuiteExploration,
    *,
    threads: int | None,
    operations: int | None,
    seeds: int,
    seconds: float | None = None,
    executions: int,
    seed: int,
    progress: ProgressDisplay,
    module: str,
    mutant: str | None,
    limits: Limits | None,
    answers: bool = True,
    guided: bool = False,
    on_result: Callable[[TrialResult], object] | None = None,
    **options: Any,
) -> None:
    """Explores programs of ``seeds`` seeds until one fails; adds the counts to ``total``.

    After ``seconds`` no more programs begin. With ``guided`` some programs are made from earlier
    ones (:class:`Guide`), and a program ends early when its executions are known; guidance is for
    samplers. Runs in a child process when there are ``limits``. ``on_result`` gets the trial of
    each program that did not fail.
    """
    subject = checked_subject(suite.subject, module, mutant)
    size = TrialOptions(threads=threads, operations=operations)
    judge = judge_of(suite.model) if answers else None

    guide = Guide(subject, suite, seed, size) if guided and total.sampled else None
    under_way: list[Program] = []  # the program that the child explores

    started = time.monotonic()

    def search(tell: Callable[[Exploration | Program | Left | int], object]) -> None:
        for number in range(seeds):
            if number and seconds is not None and time.monotonic() - started >= seconds:
                break
            drawn = seed + number
            program = guide.program(number) if guide else program_of(subject, suite, drawn, size)
            tell(program)
            before = None if judge is None else dataclasses.replace(judge.counts)
            done = explore(
                subject,
                program,
                executions=executions,
                seed=seed,
                judge=judge,
                on_batch=tell,
                on_left=tell,
                look=guide.look if guide else None,
                step_limit=steps_of(size),
                **options,
            )
            if guide:
                guide.learn(program)
            if judge is not None and before is not None:
                statistics = dict(done.statistics)
                statistics["judged"] = judge.counts.judged - before.judged
                statistics["unknown"] = judge.counts.unknown - before.unknown
                done = dataclasses.replace(done, statistics=statistics)
            tell(done)
            if done.failure is not None:
                break

    def add(done: Exploration | Program | Left | int) -> None:
        if isinstance(done, Left):
            show(total.executions + total.under_way, f"; {done}")
            return
        if isinstance(done, Program):
            under_way[:] = [done]
            return
        if isinstance(done, int):  # executions of the program under way
            total.under_way = done
            show(total.executions + done)
            return
        if on_result is not None:
            program = under_way[0]
            silent = dataclasses.replace(done, failure=None)
            trial = TrialOptions(module=module, mutant=mutant, noise=False)
            result = to_result(suite, trial, subject, program, silent)
            if done.failure is None:
                on_result(result)
            else:
                total.failed = result
        total.add(done)
        show(total.executions)

    def show(count: int, left: str = "") -> None:
        programs = counted(total.programs, "program")
        text = f"{suite.name}: {count:,} executions, {programs} done{left}"
        done = total.programs if seconds is None else time.monotonic() - started
        progress.update(done, text)

    bound = counted(seeds, "program") if seconds is None else f"{seconds:,.0f} s of programs"
    goal = f"{bound} from seed {seed} under the engine"
    length = seeds if seconds is None else seconds
    progress.begin(suite.name, length, f"{suite.name}: {goal}, {executions:,} executions each")
    try:
        if limits is None:
            search(add)
        else:
            watch(search, add, limits=limits)
    except LostError as crash:
        # The child may die before it has told of a program.
        program = under_way[0] if under_way else program_of(subject, suite, seed, size)
        add(lost_exploration(crash, subject, program, {"seed": seed, **options}))
    finally:
        progress.end()


def keep_failure(
    total: SuiteExploration,
    records: Path | None,
    module: str,
    mutant: str | None,
    limits: Limits | None,
    judge: Judge | None = None,
) -> Path | None:
    """Shrinks and writes the failure of a suite, if it has one; returns the path of the file."""
    if total.failure is None:
        return None
    folder = records or Path("runs/explore") / time.strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{total.suite}-{total.failure.execution}.json"
    failure = dataclasses.replace(total.failure, module=module, mutant=mutant)
    with naming(path):  # before shrinking, which may be interrupted
        path.write_text(failure.to_json() + "\n")
    subject = checked_subject(failure.subject, module, mutant)
    total.failure = shrink_failure(failure, subject, limits, judge)
    with naming(path):
        path.write_text(total.failure.to_json() + "\n")
    return path
