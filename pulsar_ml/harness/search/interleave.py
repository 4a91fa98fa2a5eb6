"""Many small programs of a subject under the engine, within one budget: what a test asks for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.search.explore import Exploration, explore, rule_of_three
from pulsar_ml.harness.search.failure import Failure, replay
from pulsar_ml.harness.search.lanes import WIDTH, counted, lane_table, summary
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.subjects.program import Program, generate
from pulsar_ml.harness.subjects.subject import Subject

SHRINK_EXECUTIONS = 50_000
TIMED_EXECUTIONS = 2_000  # of a program, when the budget is a time


class InterleavingFailure(AssertionError):
    """An execution failed. ``failure`` makes it again; the message shows it."""

    def __init__(self, failure: Failure, text: str) -> None:
        super().__init__(text)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Interleavings:
    """What was explored.

    Attributes:
        subject, mode, strategy, seed: what was asked for; program number i has seed ``seed + i * stride``.
        programs, executions, seconds: made, and the processor time they took.
        classes, once: distinct executions by what read from what, summed over programs, and those seen once.
        cut: executions that a bound ended.
        exercised: whether two threads ever touched one location.
        failure: the first one, shrunk, or None.
        exhausted: what an exhaustive strategy has shown of every program, "" when a budget ended first.
        remarks: of single programs, each sentence once.
    """

    subject: str
    mode: str
    strategy: str
    seed: int
    programs: int
    executions: int
    seconds: float
    classes: int
    once: int
    cut: int
    exercised: bool
    failure: Failure | None
    exhausted: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def residual_risk(self) -> float | None:
        """With 95 % confidence a failure of these programs is rarer than this (the rule of three).

        None for a search: its executions are no sample.
        """
        return rule_of_three(self.strategy, self.executions)

    def describe(self) -> str:
        """One line."""
        return (
            f"{self.subject}: {counted(self.executions, 'execution')} of {counted(self.programs, 'program')} "
            f"from seed {self.seed}, mode {self.mode}, {counted(self.classes, 'class')}, {self.cut:,} cut; "
            + "; ".join((self.outcome(), *self.remarks))
        )

    def outcome(self) -> str:
        if self.failure is not None:
            return self.failure.kind
        if self.exhausted:
            return f"all were tried {self.exhausted}"
        if self.residual_risk is None:
            return "no failure; the search did not end, and its executions are no sample"
        return f"a failure is rarer than {self.residual_risk:.2g}"


def interleave(
    subject: Subject,
    *,
    threads: int = 2,
    operations: int = 4,
    executions: int = 20_000,
    seconds: float | None = None,
    programs: int = 20,
    program: Program | None = None,
    seed: int = 0,
    stride: int = 1,
    mode: str = "c11",
    strategy: str = "portfolio",
    mix: Mapping[str, int] | None = None,
    settings: Mapping[str, tuple[int, int]] | None = None,
    reuse: str = "mixed",
    faults: Iterable[str] = (),
    judge: Judge | None = None,
    **options: Any,
) -> Interleavings:
    """Explore ``programs`` random programs, or the one given, until the budget is spent or one fails.

    The budget is ``executions`` in all, or, when given, ``seconds`` of time, within which programs go on
    being made. Program i is that of seed ``seed + i * stride``: runs with the same stride and different seeds
    below it have no program in common. The rest of the options are those of :func:`explore`. A failure is
    shrunk. Raises UsageError for what does not fit the subject, NondeterminismError when something is not
    under the engine's control.
    """
    for name, value in (("executions", executions), ("programs", programs), ("stride", stride)):
        if value < 1:
            raise UsageError(f"{name} is {value}; it should be 1 or more")
    if seconds is not None and not 0 < seconds < math.inf:
        raise UsageError(f"seconds is {seconds}; it should be a number above 0")
    chosen = {
        "mode": mode,
        "strategy": strategy,
        "reuse": reuse,
        "faults": tuple(faults),
        "judge": judge,
        **options,
    }

    def made(number: int) -> Program:
        return program or generate(
            subject,
            seed + number * stride,
            threads=threads,
            operations=operations,
            mix=mix,
            settings=settings,
            noise=False,
        )

    planned = 1 if program is not None else min(programs, executions)
    if seconds is None:
        shares = [
            executions // planned + (number < executions % planned) for number in range(planned)
        ]
        results = _played(
            subject, made, shares.__getitem__, lambda number: number < planned, seed, chosen
        )
    else:
        deadline = time.monotonic() + seconds
        results = _played(
            subject,
            made,
            lambda _: TIMED_EXECUTIONS,
            lambda _: time.monotonic() < deadline,
            seed,
            chosen,
        )
    return _summed(subject, results, seed, mode, strategy, judge)


def _played(
    subject: Subject,
    made: Callable[[int], Program],
    share: Callable[[int], int],
    more: Callable[[int], bool],
    seed: int,
    options: Mapping[str, Any],
) -> list[Exploration]:
    results: list[Exploration] = []
    first = 0
    while more(len(results)):
        number = len(results)
        done = explore(
            subject, made(number), executions=share(number), seed=seed, first=first, **options
        )
        results.append(done)
        first += done.executions
        if done.failure is not None:
            break
    return results


def _summed(
    subject: Subject,
    results: list[Exploration],
    seed: int,
    mode: str,
    strategy: str,
    judge: Judge | None,
) -> Interleavings:
    failure = results[-1].failure if results else None
    if failure is not None:
        failure = shrink(failure, subject, budget=SHRINK_EXECUTIONS, judge=judge)
    return Interleavings(
        subject=subject.name,
        mode=mode,
        strategy=strategy,
        seed=seed,
        programs=len(results),
        executions=sum(result.executions for result in results),
        seconds=sum(result.seconds for result in results),
        classes=sum(result.statistics["classes"] for result in results),
        once=sum(result.statistics["once"] for result in results),
        cut=sum(result.statistics["cut"] for result in results),
        exercised=any(
            result.statistics["shared"] and result.statistics["hooks"] for result in results
        ),
        failure=failure,
        exhausted=exhausted(results),
        remarks=tuple(dict.fromkeys(said for result in results for said in result.remarks)),
    )


def exhausted(results: list[Exploration]) -> str:
    proved = {result.exhausted for result in results}
    if not proved or "" in proved:
        return ""
    return "; ".join(sorted(proved))


def failure_text(
    failure: Failure, subject: Subject, *, width: int = WIDTH, judge: Judge | None = None
) -> str:
    """What failed and one column for each thread, from a replay."""
    again = replay(failure, subject, judge)
    return f"{summary(failure, again)}\n{lane_table(failure, again.trace, subject=subject, width=width)}"
