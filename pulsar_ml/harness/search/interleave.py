"""Explores many small programs of a subject under the engine, within one budget of a test."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Unpack

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.budgets.passing import IsKnown
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.search.explore import (
    EngineOptions,
    Exploration,
    check_options,
    explore,
    rule_of_three,
)
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.partition import bounds_met
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.wording import counted

SHRINK_EXECUTIONS = 50_000
TIMED_EXECUTIONS = 2_000  # executions of each program, when the budget is a time


class InterleavingFailure(AssertionError):
    """An execution failed; the message shows it with a column for each thread.

    Attributes:
        failure: the :class:`Failure`; its method ``replay`` repeats the execution.
    """

    def __init__(self, failure: Failure, text: str) -> None:
        super().__init__(text)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Interleavings:
    """The result of :func:`interleave`: the counts of all its programs, and the first failure.

    Attributes:
        subject, mode, strategy: options of the call.
        seed: the first seed; program i has seed ``seed + i * stride``.
        programs, executions: how many of each.
        seconds: the processor time that they took.
        classes: executions that differ in which store each load read, summed over the programs.
        once: classes that occurred once.
        cut: executions that reached the limit of steps.
        exercised: True when two threads accessed the same location in some execution.
        idle: number of programs in which no two threads did.
        discarded: executions in which an assumption did not hold.
        failure: the first failure, shrunk, or None.
        exhausted: the proof of a search that finished for each program; "" when the budget ended
            first.
        remarks: sentences about single programs, each once.
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
    idle: int = 0
    discarded: int = 0

    @property
    def residual_risk(self) -> float | None:
        """With 95 % confidence a failure of these programs is rarer than this (the rule of three).

        None for a search: its executions are no sample.
        """
        return rule_of_three(self.strategy, self.executions - self.discarded)

    def describe(self) -> str:
        """Describe the exploration in one line."""
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
    is_known: IsKnown | None = None,
    **options: Unpack[EngineOptions],
) -> Interleavings:
    """Explore random programs of ``subject`` under the engine, within one budget.

    ``programs`` is their number; ``program`` is a single one to explore instead. A random program
    has ``threads`` threads, 1 to 63, with ``operations`` calls each; ``mix`` gives
    operations their weights, and ``settings`` narrows the ranges of creation settings. The budget
    is ``executions``, shared by the programs; or ``seconds`` of wall time, for as many programs as
    fit. Program i has seed ``seed + i * stride``: calls with the same stride and different seeds
    below the stride share no program. ``mode``, ``strategy``, ``judge`` and the other options are
    those of :func:`explore`; ``is_known``, too: programs follow one with a known failure.

    The exploration ends at the first failure that is not known, which is shrunk and returned; it
    is not raised.
    ``subject`` belongs to a checked build. Only one thread of a process may use the engine at a
    time. Raises UsageError for an option that is unknown or does not fit the subject, LimitsError
    for a program that is too large for the engine, and NondeterminismError when something outside
    the engine's control decides what the code does.
    """
    check_options(interleave, options)
    for name, value in (("executions", executions), ("programs", programs), ("stride", stride)):
        if value < 1:
            raise UsageError(f"{name} is {value}; it should be 1 or more")
    if seconds is not None and not 0 < seconds < math.inf:
        raise UsageError(f"seconds is {seconds}; it should be a number above 0")
    engine_options = {
        "mode": mode,
        "strategy": strategy,
        "reuse": reuse,
        "faults": tuple(faults),
        "judge": judge,
        "is_known": is_known,
        **options,
    }

    def program_of(number: int) -> Program:
        return program or Program.generate(
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
        results = _explore_programs(
            subject,
            program_of,
            shares.__getitem__,
            lambda number: number < planned,
            seed,
            engine_options,
        )
    else:
        deadline = time.monotonic() + seconds
        results = _explore_programs(
            subject,
            program_of,
            lambda _: TIMED_EXECUTIONS,
            lambda _: time.monotonic() < deadline,
            seed,
            engine_options,
        )
    return _sum(subject, results, seed, mode, strategy, judge)


def _explore_programs(
    subject: Subject,
    program_of: Callable[[int], Program],
    share: Callable[[int], int],
    more: Callable[[int], bool],
    seed: int,
    options: Mapping[str, Any],
) -> list[Exploration]:
    """Explore program 0, 1, ... while ``more(number)``, each for ``share(number)`` executions."""
    results: list[Exploration] = []
    first = 0
    while more(len(results)):
        number = len(results)
        done = explore(
            subject, program_of(number), executions=share(number), seed=seed, first=first, **options
        )
        results.append(done)
        first += done.executions
        known = options["is_known"]
        if done.failure is not None and not (known and known(done.failure)):
            break
    return results


def _sum(
    subject: Subject,
    results: list[Exploration],
    seed: int,
    mode: str,
    strategy: str,
    judge: Judge | None,
) -> Interleavings:
    failures = [result.failure for result in results if result.failure is not None]
    new = results[-1].failure if results else None
    failure = new or (failures[0] if failures else None)
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
        discarded=sum(result.statistics["discarded"] for result in results),
        idle=sum(result.verdict == "nothing_exercised" for result in results),
        failure=failure,
        exhausted=exhausted(results),
        remarks=remarks(results),
    )


def remarks(results: list[Exploration]) -> tuple[str, ...]:
    """Return sentences about single programs, each once, and the bounds that all of them met."""
    said = dict.fromkeys(remark for result in results for remark in result.remarks)
    met: Counter[str] = Counter()
    for result in results:
        if not result.exhausted:
            met.update(result.bounds)
    return (*said, bounds_met(met)) if met else tuple(said)


def exhausted(results: list[Exploration]) -> str:
    proved = {result.exhausted for result in results}
    if not proved or "" in proved:
        return ""
    return "; ".join(sorted(proved))
