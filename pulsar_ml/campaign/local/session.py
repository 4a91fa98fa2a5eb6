"""The loop of a run: programs of increasing seeds until the budget is spent, and their tally."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from pulsar_ml.campaign.local.progress import Progress
from pulsar_ml.campaign.local.records import Records
from pulsar_ml.campaign.local.watch import MemorySeries, ProcessWatch, Usage, sanitized
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import (
    NOTHING_EXERCISED,
    STUCK,
    VIOLATION,
    TrialOptions,
    TrialResult,
    Violation,
    find_subject,
    load_native,
    run_trial,
)
from pulsar_ml.harness.subjects.program import possible_pairs

EXIT_CLEAN = 0
EXIT_VIOLATION = 1
EXIT_USAGE = 2
EXIT_NOTHING_EXERCISED = 3
EXIT_FAILED = 4
EXIT_INTERRUPTED = 130

LEAK = "leak"
GROWTH = "growth"


@dataclass(frozen=True, slots=True)
class Budget:
    """When a suite has run enough: after ``seconds`` or after ``programs``, one of which is None."""

    seconds: float | None
    programs: int | None

    def share(self, parts: int) -> Budget:
        """An equal part of it, at least one program."""
        return Budget(
            None if self.seconds is None else self.seconds / parts,
            None if self.programs is None else max(1, self.programs // parts),
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed program: its violations and the file from which it can be replayed."""

    seed: int
    violations: tuple[Violation, ...]
    record: Path


@dataclass(slots=True)
class Tally:
    """What the programs of one suite did so far."""

    suite: str
    build_id: str
    threads: int
    first_seed: int
    possible: list[tuple[str, str]]
    programs: int = 0
    operations: int = 0
    overlaps: int = 0
    nothing_exercised: int = 0
    judged: int = 0
    unknown: int = 0
    native_ns: int = 0
    elapsed: float = 0.0
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    interrupted: bool = False
    memory_judged: bool = False
    usage: Usage | None = None

    def add(self, result: TrialResult) -> None:
        self.programs += 1
        self.operations += result.operations
        self.overlaps += result.overlaps
        self.nothing_exercised += result.verdict == NOTHING_EXERCISED
        self.judged += result.judged
        self.unknown += result.unknown
        self.native_ns += result.duration_ns
        self.pairs.update(result.pairs)

    def exit_code(self) -> int:
        if self.interrupted:
            return EXIT_INTERRUPTED
        if self.failures:
            return EXIT_VIOLATION
        if self.programs == self.nothing_exercised:
            return EXIT_NOTHING_EXERCISED
        return EXIT_CLEAN


def run_suite(
    suite: Suite,
    *,
    seed: int,
    budget: Budget,
    options: TrialOptions,
    records: Records,
    progress: Progress,
    most_failures: int,
    leak_threshold: int,
    told: Callable[[TrialResult], object] = lambda result: None,
) -> Tally:
    """Run programs of ``seed``, ``seed + 1``, ... until the budget is spent.

    Ends early after ``most_failures`` failed programs, when threads hang, and at Ctrl-C, which the
    tally then says. Memory that grows by more than ``leak_threshold`` bytes is one more failure; 0
    turns that off, and so does a sanitizer, which keeps freed memory. ``told`` gets each result once, the
    last one with that failure.
    """
    subject = find_subject(load_native(options.module), suite)
    threads = suite.threads if options.threads is None else options.threads
    tally = Tally(
        suite=suite.name,
        build_id=subject.build_id,
        threads=threads,
        first_seed=seed,
        possible=possible_pairs(subject, suite.mix, threads),
    )
    memory = MemorySeries()
    last: TrialResult | None = None
    started = time.monotonic()
    with ProcessWatch() as watch:
        try:
            progress.begin(suite.name, budget.seconds, budget.programs, seed, threads)
            while not spent(tally, budget, started) and len(tally.failures) < most_failures:
                number = seed + tally.programs
                records.announce(in_flight(suite, number, options, tally))
                result = run_trial(suite, number, options)
                tally.add(result)
                if last is not None:
                    told(last)
                last = result
                memory.add(watch.resident())
                if result.violations:
                    tally.failures.append(
                        Failure(number, result.violations, records.keep(result.replay))
                    )
                progress.advance(tally.programs, tally.operations, len(tally.failures))
                if any(violation.invariant == STUCK for violation in result.violations):
                    break
        except KeyboardInterrupt:
            tally.interrupted = True
        tally.elapsed = time.monotonic() - started
        tally.usage = watch.usage()
    if leak_threshold and not sanitized():
        tally.memory_judged = memory.judged()
        last = judge_memory(tally, memory, leak_threshold, last, records)
    if last is not None:
        told(last)
    progress.end()
    return tally


def spent(tally: Tally, budget: Budget, started: float) -> bool:
    if budget.programs is not None:
        return tally.programs >= budget.programs
    # At least one program, however short the time.
    return tally.programs > 0 and time.monotonic() - started >= (budget.seconds or 0)


def in_flight(suite: Suite, seed: int, options: TrialOptions, tally: Tally) -> ReplayRecord:
    """The record of a program before it runs; its settings follow from seed and suite."""
    return ReplayRecord(
        suite=suite.name,
        seed=seed,
        threads=tally.threads,
        operations=suite.operations if options.operations is None else options.operations,
        noise=options.noise,
        settings={},
        build_id=tally.build_id,
        module=options.module,
        mutant=options.mutant,
    )


def judge_memory(
    tally: Tally, memory: MemorySeries, threshold: int, last: TrialResult | None, records: Records
) -> TrialResult | None:
    """The last result, with a violation more when memory grew without end."""
    message = memory.leak(threshold)
    if message is None or last is None:
        return last
    grown = Violation(LEAK, message, GROWTH)
    record = replace(last.replay, invariant=LEAK, message=message)
    tally.failures.append(Failure(record.seed, (grown,), records.keep(record)))
    return replace(last, violations=(*last.violations, grown), verdict=VIOLATION)
