"""The loop of a run on real threads: programs of increasing seeds until the budget is spent."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pulsar_ml.campaign.local.leaks import CANDIDATES, confirmed_leak
from pulsar_ml.campaign.local.records import Records
from pulsar_ml.campaign.local.watch import MemorySeries, ProcessWatch, Usage, sanitized
from pulsar_ml.campaign.trial import trial as trials
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.signature import signature
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import (
    LEAK,
    STUCK,
    TrialOptions,
    TrialResult,
    Violation,
    find_subject,
    load_native,
    run_trial,
)
from pulsar_ml.exit_codes import CLEAN, INTERRUPTED, NOTHING_EXERCISED, VIOLATION, ExitCode
from pulsar_ml.harness.subjects.program import possible_pairs
from pulsar_ml.harness.testing.known import Baseline
from pulsar_ml.terminal.progress import ProgressDisplay

GROWTH = "growth"


@dataclass(frozen=True, slots=True)
class Budget:
    """The end of a suite's run: after ``seconds`` or after ``programs``; the other one is None."""

    seconds: float | None
    programs: int | None

    def share(self, suites: int) -> Budget:
        """The budget of each of several suites: an equal share, at least one program."""
        return Budget(
            None if self.seconds is None else self.seconds / suites,
            None if self.programs is None else max(1, self.programs // suites),
        )


@dataclass(frozen=True, slots=True)
class FailedProgram:
    """A failed program: its violations and the file from which it can be replayed."""

    seed: int
    violations: tuple[Violation, ...]
    record: Path


@dataclass(slots=True)
class SuiteRun:
    """The counts and failures of one suite's programs so far."""

    suite: str
    build_id: str
    threads: int
    first_seed: int
    possible: list[tuple[str, str]]
    module: str = ""
    programs: int = 0
    operations: int = 0
    overlaps: int = 0
    nothing_exercised: int = 0
    judged: int = 0
    unknown: int = 0
    native_ns: int = 0
    elapsed: float = 0.0
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[FailedProgram] = field(default_factory=list)
    known: Counter[str] = field(default_factory=Counter)  # failed programs by known signature
    signatures: set[str] = field(default_factory=set)  # of all violations
    interrupted: bool = False
    memory_judged: bool = False
    usage: Usage | None = None

    def add(self, result: TrialResult) -> None:
        self.programs += 1
        self.operations += result.operations
        self.overlaps += result.overlaps
        self.nothing_exercised += result.verdict == trials.NOTHING_EXERCISED
        self.judged += result.judged
        self.unknown += result.unknown
        self.native_ns += result.duration_ns
        self.pairs.update(result.pairs)

    def add_failure(
        self,
        seed: int,
        violations: tuple[Violation, ...],
        record: Callable[[], Path],
        baseline: Baseline | None,
    ) -> None:
        """Note a failed program; one whose violations are all known is only counted."""
        found = {
            signature(self.suite, one.invariant, one.message, one.places) for one in violations
        }
        self.signatures |= found
        if baseline is not None and all(map(baseline.is_known, found)):
            self.known.update(found)
        else:
            self.failures.append(FailedProgram(seed, violations, record()))

    def exit_code(self) -> ExitCode:
        if self.interrupted:
            return INTERRUPTED
        if self.failures:
            return VIOLATION
        return NOTHING_EXERCISED if self.programs == self.nothing_exercised else CLEAN


def run_suite(
    suite: Suite,
    *,
    seed: int,
    budget: Budget,
    options: TrialOptions,
    records: Records,
    progress: ProgressDisplay,
    most_failures: int,
    leak_threshold: int,
    on_result: Callable[[TrialResult], object] = lambda result: None,
    baseline: Baseline | None = None,
) -> SuiteRun:
    """Runs programs of ``seed``, ``seed + 1``, ... until the budget is spent.

    Ends early after ``most_failures`` failed programs, when threads hang, and at Ctrl-C, which
    sets ``interrupted``. Memory that grows by more than ``leak_threshold`` bytes, and goes on
    growing when one of the last programs is repeated, is one more failure; 0 turns that off, and so
    does a sanitizer, which keeps freed memory. ``on_result`` gets each result once, the last one
    with the failure of memory. Programs whose violations the ``baseline`` knows are counted and end
    nothing.
    """
    subject = find_subject(load_native(options.module), suite)
    threads = suite.threads if options.threads is None else options.threads
    run = SuiteRun(
        suite=suite.name,
        build_id=subject.build_id,
        threads=threads,
        first_seed=seed,
        possible=possible_pairs(subject, suite.mix, threads),
        module=options.module,
    )
    memory = MemorySeries()
    last: TrialResult | None = None
    candidates: deque[ReplayRecord] = deque(maxlen=CANDIDATES)
    started = time.monotonic()
    with ProcessWatch() as watch:
        try:
            total = budget.seconds or budget.programs
            goal = f"{budget.programs} programs" if budget.programs else f"{budget.seconds:g} s"
            headline = f"{suite.name}: {goal} from seed {seed} on {threads} threads"
            progress.begin(suite.name, total, headline)
            while not spent(run, budget, started) and len(run.failures) < most_failures:
                number = seed + run.programs
                records.announce(in_flight(suite, number, options, run))
                result = run_trial(suite, number, options)
                run.add(result)
                if last is not None:
                    on_result(last)
                last = result
                candidates.appendleft(result.replay)
                memory.add(watch.resident())
                if result.violations:
                    keep = partial(records.keep, result.replay)
                    run.add_failure(number, result.violations, keep, baseline)
                done = time.monotonic() - started if budget.seconds else run.programs
                progress.update(done, f"{suite.name}: {counts(run)}")
                if any(violation.invariant == STUCK for violation in result.violations):
                    break
        except KeyboardInterrupt:
            run.interrupted = True
        run.elapsed = time.monotonic() - started
        run.usage = watch.usage()
    if leak_threshold and not sanitized() and not run.interrupted:
        try:
            last = judge_memory(
                suite, run, memory, leak_threshold, last, candidates, records, baseline
            )
        except KeyboardInterrupt:
            run.interrupted = True
    if last is not None:
        on_result(last)
    progress.end()
    return run


def counts(run: SuiteRun) -> str:
    failed = len(run.failures) + run.known.total()
    return f"{run.programs:,} programs, {run.operations:,} operations, {failed} failed"


def spent(run: SuiteRun, budget: Budget, started: float) -> bool:
    if budget.programs is not None:
        return run.programs >= budget.programs
    # At least one program, however short the time.
    return run.programs > 0 and time.monotonic() - started >= (budget.seconds or 0)


def in_flight(suite: Suite, seed: int, options: TrialOptions, run: SuiteRun) -> ReplayRecord:
    """The record of a program that is about to run; its settings follow from seed and suite."""
    return ReplayRecord(
        suite=suite.name,
        seed=seed,
        threads=run.threads,
        operations=suite.operations if options.operations is None else options.operations,
        noise=options.noise,
        settings={},
        build_id=run.build_id,
        module=options.module,
        mutant=options.mutant,
    )


def judge_memory(
    suite: Suite,
    run: SuiteRun,
    memory: MemorySeries,
    threshold: int,
    last: TrialResult | None,
    candidates: Iterable[ReplayRecord],
    records: Records,
    baseline: Baseline | None,
) -> TrialResult | None:
    """The last result, with one more violation when memory grows with each repeat of a program.

    Growth that no repeated program shows is not judged: the programs differ.
    """
    suspected = memory.leak(threshold) is not None
    run.memory_judged = memory.judged() and not suspected
    if not suspected or last is None:
        return last
    found = confirmed_leak(suite, candidates, programs=run.programs, threshold=threshold)
    if found is None:
        return last
    run.memory_judged = True
    record = replace(found[0], invariant=LEAK, message=found[1])
    grown = Violation(LEAK, found[1], GROWTH, record=record.to_json())
    run.add_failure(record.seed, (grown,), partial(records.keep, record), baseline)
    return replace(last, violations=(*last.violations, grown), verdict=trials.VIOLATION)
