"""Hunts one automatic mutant blind: with the generated programs of suites, and no others.

The suites that use the changed structure take turns, its own suite first. Each technique runs in a
child process: a mutant may crash it or run for ever, and both count as found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from types import ModuleType
from typing import Any

from pulsar_ml.campaign.trial.controlled import program_of, steps_of
from pulsar_ml.campaign.trial.judging import LINEARIZABILITY, judge_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions, load_native, run_trial
from pulsar_ml.errors import LimitsError, NondeterminismError
from pulsar_ml.harness.search.child import Limits, LostError
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import WRONG_ANSWERS
from pulsar_ml.harness.search.sandbox import watch
from pulsar_ml.suites.registry import SUITES
from stress.mutants.automatic.allocations import NEVER, failing_allocations
from stress.mutants.automatic.points import PACKAGE, Point
from stress.mutants.catalogue import CATALOGUE
from stress.mutants.faults.weakened_orders import order_of
from stress.mutants.sources.digests import reached
from stress.mutants.table.techniques import verdict_of

SINGLE = 60  # programs of one thread
SINGLE_OPERATIONS = 20
LARGE = 40  # larger programs of one thread, as the suite sizes them
EACH, ALLOCATIONS = 6, 64  # programs of which each allocation fails; so many at most, twice
EACH_LARGE = 4  # likewise, of larger programs
SINGLE_FAULTY, TIMES_FAULTY = 15, 20  # programs of one thread in which allocations fail
# Of the engine: programs of a suite, executions of each. Most failures show in the first few.
PROGRAMS, EXECUTIONS = 40, 50
FAULTY_EXECUTIONS = 25  # of each program, with an allocation that may fail
NEAREST = 2  # suites with the whole budget; each of the others has a third of the programs
AGAIN, LONGER = 1, 2  # so many suites have so many times the programs again in the end
TRIALS = 3  # long programs of the nearest suite, with one thread and with all
# From one execution to the next.
ENGINE_LIMITS = Limits(wall=120.0, cpu=5.0)
# A program on real threads takes a few seconds; the clock goes on while other work is done.
THREAD_LIMITS = Limits(wall=120.0, cpu=30.0)

# Techniques, in the order in which they are tried.
MODEL, ONE, ALLOCATION, ENGINE, LINEAR, FAULT, THREADS = (
    "sequential model",
    "one thread",
    "each allocation",
    "engine c11",
    "linearizability",
    "allocation failure",
    "real threads",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The first report about a mutant, or its survival.

    Attributes:
        technique, suite, verdict: the first finder, and its report; "" for a survivor.
        executions: executions of the engine until then, or in all.
        seconds: time until then, or in all.
        reached: true if some program executed the mutant.
    """

    technique: str
    suite: str
    verdict: str
    executions: int
    seconds: float
    reached: bool


@dataclass(frozen=True, slots=True)
class Stage:
    """One technique on one suite: its programs in the engine and their options.

    Attributes:
        first: the first seed.
        sizes: of the programs, where they are not the suite's own.
        each: true if the programs run once for each of their allocations, which fails.
        options: of the engine.
    """

    technique: str
    suite: Suite
    programs: int
    executions: int
    first: int = 0
    sizes: TrialOptions = field(default_factory=TrialOptions)
    each: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answers(self) -> str:
        """The name of the technique for a failure that only the model sees."""
        if self.technique == ONE:
            return MODEL
        return LINEAR if self.technique == ENGINE else self.technique


@cache
def suites_of(file: str) -> tuple[Suite, ...]:
    """The suites whose operations use a source, the nearest first.

    Near is its own suite, then those that the catalogue has for mistakes of this source.
    """
    path = PACKAGE / file
    using = [suite for suite in SUITES.values() if path in reached(suite.subject)]
    named = {mutant.suite for mutant in CATALOGUE if mutant.file == file}
    using.sort(key=lambda suite: order_of(suite, path.stem))
    return tuple(sorted(using, key=lambda suite: suite.name not in named | {path.stem}))


def stages(suites: tuple[Suite, ...]) -> Iterator[Stage]:
    """The techniques of each suite, cheap ones first; then more programs of the nearest suites."""
    for number, suite in enumerate(suites):
        yield from techniques(suite, 0, 1 if number < NEAREST else 1 / 3)
    for suite in suites[:AGAIN]:
        yield from techniques(suite, 1, LONGER)


def techniques(suite: Suite, first: int, times: float) -> Iterator[Stage]:
    """One technique after the other, with so many times the usual programs."""
    short = TrialOptions(threads=1, operations=SINGLE_OPERATIONS)
    large = TrialOptions(threads=1)
    usual = TrialOptions()
    fails = {"faults": ("no_memory",)}

    def stage(technique: str, programs: int, executions: int, **rest: Any) -> Stage:
        return Stage(
            technique, suite, max(1, int(programs * times)), executions, first * programs, **rest
        )

    yield stage(ONE, SINGLE, 1, sizes=short)
    yield stage(ALLOCATION, EACH, ALLOCATIONS, sizes=short, each=True)
    yield stage(FAULT, SINGLE_FAULTY, TIMES_FAULTY, sizes=short, options=fails)
    yield stage(ENGINE, PROGRAMS, EXECUTIONS, sizes=usual)
    yield stage(ONE, LARGE, 1, sizes=large)
    yield stage(ALLOCATION, EACH_LARGE, ALLOCATIONS, sizes=large, each=True)
    yield stage(FAULT, PROGRAMS, FAULTY_EXECUTIONS, sizes=usual, options=fails)


def run_each(module: ModuleType, stage: Stage, send: Callable[[Any], Any]) -> None:
    """Runs programs with their first, second, ... allocation failing: refused, and no leaks."""
    subject = module.SUBJECTS[stage.suite.subject]
    # A larger program may have operations that only the exact model knows, which needs memory.
    judge = judge_of(stage.suite.model) if stage.sizes.operations else None
    for seed in range(stage.first, stage.first + stage.programs):
        program = program_of(subject, stage.suite, seed, stage.sizes)
        done = failing_allocations(
            subject,
            program,
            module.fail_allocation_after,
            stage.executions,
            judge=judge,
            steps=steps_of(stage.sizes),
        )
        found = (stage.technique, done.verdict) if done.verdict else ()
        send((done.executions, found, module.was_reached()))
        if found:
            return


def run_stage(
    module: ModuleType, stage: Stage, mutant: str | None, send: Callable[[Any], Any]
) -> None:
    """Sends the count of executions after each program, and the report of the first failure."""
    module.select_mutant(mutant)
    if stage.each:
        run_each(module, stage, send)
        return
    suite = stage.suite
    subject = module.SUBJECTS[suite.subject]
    judge = judge_of(suite.model)
    for seed in range(stage.first, stage.first + stage.programs):
        program = program_of(subject, suite, seed, stage.sizes)
        found: tuple[str, ...] = ()
        executions = 0
        try:
            done = explore(
                subject,
                program,
                executions=stage.executions,
                seed=seed,
                reuse="mixed",
                judge=judge.brief if judge else None,
                step_limit=steps_of(stage.sizes),
                **stage.options,
            )
            executions = done.executions
            if done.failure is not None:
                only_model = done.failure.kind == WRONG_ANSWERS
                technique = stage.answers if only_model else stage.technique
                found = technique, done.failure.rule or done.failure.kind
        except NondeterminismError:
            found = stage.technique, "nondeterminism"
        except MemoryError:
            found = stage.technique, NEVER
        except LimitsError:
            pass  # a program that is too large for the engine says nothing
        send((executions, found, module.was_reached()))
        if found:
            return


def hunt(module: ModuleType, point: Point | None, suites: tuple[Suite, ...]) -> Outcome:
    """Hunts a mutant in the engine until the first report; None: the unchanged core."""
    start = time.perf_counter()
    executions, reached_once = 0, False

    def outcome(technique: str = "", suite: str = "", verdict: str = "") -> Outcome:
        seconds = time.perf_counter() - start
        return Outcome(technique, suite, verdict, executions, seconds, reached_once)

    for stage in stages(suites):
        reports: list[tuple[int, tuple[str, ...], bool]] = []
        ended = None
        work = partial(run_stage, module, stage, point.id if point else None)
        try:
            watch(work, reports.append, limits=ENGINE_LIMITS)
        except LostError as error:
            ended = error
        executions += sum(count for count, _, _ in reports)
        reached_once |= any(seen for _, _, seen in reports)
        if ended is not None:
            executions += min(ended.execution + 1, stage.executions)
            reached_once = True
            return outcome(stage.technique, stage.suite.name, verdict_of(ended))
        if reports and reports[-1][1]:
            technique, verdict = reports[-1][1]
            return outcome(technique, stage.suite.name, verdict)
    return outcome()


def hunt_on_threads(path: str, point: Point | None, suite: Suite) -> Outcome:
    """Hunts a mutant on real threads, in long programs of one suite: first one thread, then all."""
    start = time.perf_counter()
    found: list[str] = []
    reached_by: list[bool] = []

    def work(send: Callable[[Any], Any]) -> None:
        module = load_native(path)
        mutant = point.id if point else None
        single = TrialOptions(module=path, mutant=mutant, threads=1, noise=False)
        many = TrialOptions(module=path, mutant=mutant)
        for options in (single, many):
            for seed in range(TRIALS):
                done = run_trial(suite, seed, options)
                seen = [violation.invariant for violation in done.violations]
                send((seen, module.was_reached()))
                if seen:
                    return

    def keep(report: tuple[list[str], bool]) -> None:
        seen, reached_now = report
        found.extend(WRONG_ANSWERS if name == LINEARIZABILITY else name for name in seen[:1])
        reached_by.append(reached_now)

    try:
        watch(work, keep, limits=THREAD_LIMITS)
    except LostError as error:
        found.append(verdict_of(error))
    except MemoryError:
        found.append(NEVER)
    seconds = time.perf_counter() - start
    if not found:
        return Outcome("", "", "", 0, seconds, any(reached_by))
    return Outcome(THREADS, suite.name, found[0], 0, seconds, True)
