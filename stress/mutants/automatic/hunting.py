"""Hunts one automatic mutant blind: with the suites' generated programs, and nothing written for it.

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

from pulsar_ml.campaign.trial.controlled import program_of
from pulsar_ml.campaign.trial.judging import LINEARIZABILITY, judge_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions, run_trial
from pulsar_ml.errors import LimitsError, NondeterminismError
from pulsar_ml.harness.search.child import Limits, LostError
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import WRONG_ANSWERS
from pulsar_ml.harness.search.sandbox import watch
from pulsar_ml.suites.registry import SUITES
from stress.mutants.automatic.points import PACKAGE, Point
from stress.mutants.faults.weakened_orders import order_of
from stress.mutants.sources.digests import reached
from stress.mutants.table.techniques import LIMITS, verdict_of

SINGLE = 60  # programs of one thread
SINGLE_OPERATIONS = 20
PROGRAMS, EXECUTIONS = 10, 200  # of the engine: programs of a suite, executions of each
FAULTY_EXECUTIONS = 100  # of each program, with an allocation that may fail
NEAREST = 3  # suites with the whole budget; each of the others has a third of the programs
TRIALS = 3  # programs on real threads, of the nearest suite
SURVIVED = ""

# Techniques, in the order in which they are tried.
MODEL, ONE, ENGINE, LINEAR, FAULT, THREADS = (
    "sequential model",
    "one thread",
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
    """One technique on one suite: its programs in the engine and their options."""

    technique: str
    suite: Suite
    programs: int
    executions: int
    single: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answers(self) -> str:
        """The name of the technique for a failure that only the model sees."""
        return MODEL if self.single else LINEAR if self.technique == ENGINE else self.technique


@cache
def suites_of(file: str) -> tuple[Suite, ...]:
    """The suites whose operations use a source, the nearest first."""
    path = PACKAGE / file
    using = [suite for suite in SUITES.values() if path in reached(suite.subject)]
    return tuple(sorted(using, key=lambda suite: order_of(suite, path.stem)))


def stages(suites: tuple[Suite, ...]) -> Iterator[Stage]:
    """The cheap techniques of each suite come before the dear ones of the next."""
    for number, suite in enumerate(suites):
        part = 1 if number < NEAREST else 3
        yield Stage(ONE, suite, SINGLE // part, 1, single=True)
        yield Stage(ENGINE, suite, PROGRAMS // part, EXECUTIONS)
        fails = {"faults": ("no_memory",)}
        yield Stage(FAULT, suite, PROGRAMS // part, FAULTY_EXECUTIONS, options=fails)


def run_stage(module: ModuleType, stage: Stage, mutant: str | None, send: Callable[[Any], Any]) -> None:
    """Sends the count of executions after each program, and the report of the first failure."""
    module.select_mutant(mutant)
    suite = stage.suite
    subject = module.SUBJECTS[suite.subject]
    sizes = {"threads": 1, "operations": SINGLE_OPERATIONS} if stage.single else {}
    for seed in range(stage.programs):
        program = program_of(subject, suite, seed, TrialOptions(**sizes))
        found = ()
        executions = 0
        try:
            done = explore(
                subject,
                program,
                executions=stage.executions,
                seed=seed,
                reuse="mixed",
                judge=judge_of(suite.model),
                **stage.options,
            )
            executions = done.executions
            if done.failure is not None:
                only_model = done.failure.kind == WRONG_ANSWERS
                technique = stage.answers if only_model else stage.technique
                found = technique, done.failure.rule or done.failure.kind
        except NondeterminismError:
            found = stage.technique, "nondeterminism"
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
        lost = None
        work = partial(run_stage, module, stage, point.id if point else None)
        try:
            watch(work, reports.append, limits=LIMITS["engine"])
        except LostError as error:
            lost = error
        executions += sum(count for count, _, _ in reports)
        reached_once |= any(seen for _, _, seen in reports)
        if lost is not None:
            executions += min(lost.execution + 1, stage.executions)
            reached_once = True
            return outcome(stage.technique, stage.suite.name, verdict_of(lost))
        if reports and reports[-1][1]:
            technique, verdict = reports[-1][1]
            return outcome(technique, stage.suite.name, verdict)
    return outcome()


def hunt_on_threads(path: str, point: Point | None, suite: Suite) -> Outcome:
    """Hunts a mutant on real threads with the programs of one suite."""
    start = time.perf_counter()
    found: list[tuple[str, str]] = []

    def work(send: Callable[[Any], Any]) -> None:
        for seed in range(TRIALS):
            done = run_trial(
                suite, seed, TrialOptions(module=path, mutant=point.id if point else None)
            )
            seen = [violation.invariant for violation in done.violations]
            send(seen)
            if seen:
                return

    def keep(seen: list[str]) -> None:
        if seen:
            verdict = "wrong answers" if seen[0] == LINEARIZABILITY else seen[0]
            found.append((THREADS, verdict))

    try:
        watch(work, keep, limits=Limits(wall=20.0, cpu=15.0))
    except LostError as error:
        found.append((THREADS, verdict_of(error)))
    seconds = time.perf_counter() - start
    technique, verdict = found[0] if found else ("", "")
    return Outcome(technique, suite.name if found else "", verdict, 0, seconds, bool(found))
