"""The techniques of the kill table. Each runs one seed at a time, in a child process.

A mutant may crash its process or run for ever: both count as found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from pulsar_ml.campaign.trial.guidance import EXECUTIONS, SEEDS
from pulsar_ml.campaign.trial.judging import judge_of as model_judge
from pulsar_ml.campaign.trial.suite import ControlledSize
from pulsar_ml.campaign.trial.trial import TrialOptions, load_native, run_trial
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.search.child import STUCK, Limits, LostError
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.sandbox import watch
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.suites.registry import SUITES
from stress.mutants.catalogue import CATALOGUE, Mutant
from stress.mutants.hunting import hunt, size
from stress.mutants.table.blind import SINGLE_OPERATIONS, hunt_blind, hunt_guided

SHRINKING = 5_000  # executions
CORE_TIMES, CORE_SEEDS = 10, 3  # the true core: a larger budget for each seed, and fewer seeds
SANITIZED_OPERATIONS = 500  # of each thread: the sanitizer is some thirty times slower
CORE = "true core"
USUAL_STRATEGY = "portfolio"
STUCK_SEEDS = 3  # if this many seeds run out of time, one after the other, no more are tried
# Time from one program or execution to the next.
LIMITS = {"threads": Limits(wall=10.0, cpu=2.0), "engine": Limits(wall=20.0, cpu=3.0)}


@dataclass(frozen=True, slots=True)
class Case:
    """A mutant, or the true core in the programs of a mutant.

    Attributes:
        label: the mutant's id, or "true core, SUITE" or "true core, programs of MUTANT".
        mutant: the mutant whose suite and programs are used.
        selected: id of the mutant that is active; None: the true core.
    """

    label: str
    mutant: Mutant
    selected: str | None


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of one seed of one technique.

    Attributes:
        found: true if the technique reported something.
        spent, seconds: programs or executions, and time, until the report or in all.
        verdict: the broken invariant, or the kind of failure.
        size: of the failure after shrinking; None if it was not shrunk.
    """

    seed: int
    found: bool
    spent: int
    seconds: float
    verdict: str = ""
    size: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One seed of a case, to be run by a technique.

    Attributes:
        module: the native module with the mutants, loaded from ``path``.
        budget: programs or executions.
        shrinks: true if a failure is shrunk, outside the measured time.
        alive: called after each program on real threads; the engine reports executions itself.
    """

    module: ModuleType
    path: Path
    case: Case
    seed: int
    budget: int
    shrinks: bool
    alive: Callable[[], object]

    def found(
        self, spent: int, seconds: float, verdict: str, size: Mapping[str, int] | None = None
    ) -> Trial:
        return Trial(self.seed, True, spent, seconds, verdict, size)

    def silent(self, spent: int, seconds: float) -> Trial:
        return Trial(self.seed, False, spent, seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Technique:
    """One column of the table.

    Attributes:
        name: on the command line; ``title`` in the page.
        unit: what the budget of a seed counts.
        build: THREADS, ENGINE or SANITIZER: how the module is compiled.
        summary: one sentence for the page.
        core_times: the true core has so many times the budget.
    """

    name: str
    title: str
    summary: str
    unit: str
    budget: int
    build: str
    attempt: Callable[[Task], Trial]
    core_times: int = CORE_TIMES


def is_directed(mutant: Mutant) -> bool:
    """Returns true if the mutant's entry has programs of its own."""
    usual = mutant.programs == ControlledSize() and mutant.strategy == USUAL_STRATEGY
    return not usual or bool(mutant.calls or mutant.settings)


# Real threads -------------------------------------------------------------------------


# How each technique runs real threads. Noise disturbs the schedule; one thread has no schedule.
THREAD_OPTIONS: Mapping[str, TrialOptions] = {
    "one": TrialOptions(threads=1, noise=False),
    "threads": TrialOptions(),
    "tsan": TrialOptions(operations=SANITIZED_OPERATIONS),
}


def on_threads(name: str, task: Task) -> Trial:
    """Runs programs 1000 * seed, ... of the suite on real threads until an invariant is broken.

    Under the thread sanitizer only its report counts, which ends the process: broken invariants
    have columns of their own.
    """
    options = replace(THREAD_OPTIONS[name], module=str(task.path), mutant=task.case.selected)
    suite = replace(SUITES[task.case.mutant.suite], model="")  # the model has a column of its own
    start = time.perf_counter()
    for number in range(task.budget):
        done = run_trial(suite, 1000 * task.seed + number, options)
        if done.violations and name != "tsan":
            return task.found(number + 1, time.perf_counter() - start, done.violations[0].invariant)
        task.alive()
    return task.silent(task.budget, time.perf_counter() - start)


# The engine ---------------------------------------------------------------------------


def blindly(mode: str, task: Task, **options: Any) -> Trial:
    """Hunts in the engine with the suite's generated programs."""
    task.module.select_mutant(task.case.selected)
    start = time.perf_counter()
    suite = SUITES[task.case.mutant.suite]
    done = hunt_blind(task.module, suite, seed=task.seed, mode=mode, budget=task.budget, **options)
    judged = options.get("answers_only") or options.get("faults")
    judge = judge_of(task.case) if judged else None
    return engine_trial(task, done.executions, time.perf_counter() - start, done.failure, judge)


def guided(task: Task) -> Trial:
    """Hunts as ``pulsar-ml explore`` does: guided programs, and all oracles at once."""
    task.module.select_mutant(task.case.selected)
    start = time.perf_counter()
    suite = SUITES[task.case.mutant.suite]
    done = hunt_guided(task.module, suite, seed=task.seed, budget=task.budget)
    seconds = time.perf_counter() - start
    return engine_trial(task, done.executions, seconds, done.failure, judge_of(task.case))


def directed(task: Task) -> Trial:
    """Hunts in the engine with the programs of the mutant's entry, by all oracles."""
    task.module.select_mutant(task.case.selected)
    start = time.perf_counter()
    done = hunt(task.module, task.case.mutant, seed=task.seed, mode="c11", budget=task.budget)
    judge = judge_of(task.case)
    return engine_trial(task, done.executions, time.perf_counter() - start, done.failure, judge)


def engine_trial(
    task: Task, spent: int, seconds: float, failure: Failure | None, judge: Judge | None = None
) -> Trial:
    if failure is None:
        return task.silent(spent, seconds)
    measures = None
    if task.shrinks:
        subject = task.module.SUBJECTS[failure.subject]
        measures = size(shrink(failure, subject, budget=SHRINKING, judge=judge))
    return task.found(spent, seconds, failure.rule or failure.kind, measures)


def judge_of(case: Case) -> Judge | None:
    """The judge of the suite's answers; None for a suite without a model."""
    return model_judge(SUITES[case.mutant.suite].model)


# All ----------------------------------------------------------------------------------

THREADS, ENGINE, SANITIZER = "threads", "engine", "sanitizer"
DIRECTED = "directed"
GUIDED = "explore"

TECHNIQUES: Mapping[str, Technique] = {
    technique.name: technique
    for technique in (
        Technique(
            name="one",
            title="one thread",
            summary="The suite's programs with one thread, every invariant checked.",
            unit="programs",
            budget=5,
            build=THREADS,
            attempt=partial(on_threads, "one"),
        ),
        Technique(
            name="threads",
            title="real threads",
            summary="The suite's programs with its number of threads, on all processors.",
            unit="programs",
            budget=5,
            build=THREADS,
            attempt=partial(on_threads, "threads"),
        ),
        Technique(
            name="sc",
            title="engine sc",
            summary="Small programs that the suite generates, under the engine in mode sc: "
            "invariants, races, leaks, deadlocks.",
            unit="executions",
            budget=2_000,
            build=ENGINE,
            attempt=partial(blindly, "sc"),
        ),
        Technique(
            name="c11",
            title="engine c11",
            summary="The same programs in mode c11.",
            unit="executions",
            budget=2_000,
            build=ENGINE,
            attempt=partial(blindly, "c11"),
        ),
        Technique(
            name="tsan",
            title="thread sanitizer",
            summary="The suite's programs on real threads, "
            f"{SANITIZED_OPERATIONS} operations each, in a build with the compiler's thread "
            "sanitizer; only its reports and crashes count, not the invariants.",
            unit="programs",
            budget=1,
            build=SANITIZER,
            attempt=partial(on_threads, "tsan"),
        ),
        Technique(
            name="linear",
            title="linearizability",
            summary="The programs of the engine in mode c11, judged by the suite's sequential "
            "model alone.",
            unit="executions",
            budget=2_000,
            build=ENGINE,
            attempt=partial(blindly, "c11", answers_only=True),
        ),
        Technique(
            name="model",
            title="sequential model",
            summary=f"Programs of one thread with {SINGLE_OPERATIONS} operations, judged by the "
            "suite's sequential model alone.",
            unit="executions",
            budget=100,
            build=ENGINE,
            attempt=partial(blindly, "c11", answers_only=True, single=True),
        ),
        Technique(
            name="fault",
            title="allocation failure",
            summary="The programs of the engine in mode c11, in which an allocation may fail; "
            "the model judges the answers as well.",
            unit="executions",
            budget=2_000,
            build=ENGINE,
            attempt=partial(blindly, "c11", faults=("no_memory",)),
        ),
        Technique(
            name=GUIDED,
            title="explore",
            summary="`pulsar-ml explore` with its usual settings: guided programs in mode c11, by "
            "all of these oracles. For what the columns before it rarely find or miss. Executions that "
            "scout or search a program count when they fail.",
            unit="executions",
            budget=SEEDS * EXECUTIONS,
            build=ENGINE,
            attempt=guided,
            core_times=1,
        ),
        Technique(
            name=DIRECTED,
            title="directed",
            summary="Not blind: programs, settings or a strategy that the catalogue has for this "
            "mutant, in mode c11 by all of these oracles.",
            unit="executions",
            budget=2_000,
            build=ENGINE,
            attempt=directed,
        ),
    )
}


def budget_of(technique: Technique, case: Case) -> int:
    """Programs or executions of each seed."""
    return technique.budget if case.selected else technique.core_times * technique.budget


def seeds_of(case: Case, seeds: int) -> int:
    """The number of seeds of this case, where a mutant gets ``seeds``."""
    return seeds if case.selected else min(seeds, CORE_SEEDS)


def attempts(
    technique: Technique, module: ModuleType, path: Path, case: Case, seeds: int
) -> list[Trial]:
    """Runs one trial of each seed in a child process.

    A child that dies has found something; the next child continues with the next seed. If the first
    STUCK_SEEDS all run out of time, the other seeds are left out.
    """
    limits = LIMITS["engine" if technique.build == ENGINE else "threads"]
    budget = budget_of(technique, case)
    done: list[Trial] = []

    def run_seeds(report: Callable[[Trial | None], object]) -> None:
        shrinks = True  # the first failure of each child
        for seed in range(len(done), seeds):
            trial = technique.attempt(
                Task(module, path, case, seed, budget, shrinks, lambda: report(None))
            )
            shrinks = shrinks and trial.size is None
            report(trial)

    def keep(trial: Trial | None) -> None:
        if trial is not None:
            done.append(trial)

    stuck = 0
    while len(done) < seeds and not stuck == len(done) == STUCK_SEEDS:
        start = time.perf_counter()
        try:
            watch(run_seeds, keep, limits=limits)
        except LostError as error:
            stuck += error.kind == STUCK
            known = technique.build == ENGINE and error.execution < budget
            spent = error.execution + 1 if known else 1
            task = Task(module, path, case, len(done), budget, False, lambda: None)
            # The child's life, which is the seed's own time if the child died at its first seed.
            seconds = time.perf_counter() - start
            done.append(task.found(spent, seconds, verdict_of(error)))
    return done


def verdict_of(error: LostError) -> str:
    """The way in which a process died, in a few words."""
    text = error.message
    for signal in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE"):
        if signal in text:
            return signal
    if "exit status 66" in text:  # tools/sanitized.py sets this status
        return "data race"
    return text.partition(":")[0]


@cache
def cases() -> tuple[Case, ...]:
    """All mutants; then the true core on each suite, and in the special programs of mutants."""
    found = [Case(mutant.id, mutant, mutant.id) for mutant in CATALOGUE]
    found += [Case(f"{CORE}, {name}", nothing(name), None) for name in SUITES]
    known = set()
    for mutant in CATALOGUE:
        key = repr((mutant.suite, mutant.programs, mutant.calls, mutant.settings, mutant.strategy))
        if is_directed(mutant) and key not in known:
            known.add(key)
            found.append(Case(f"{CORE}, programs of {mutant.id}", mutant, None))
    return tuple(found)


def nothing(suite: str) -> Mutant:
    """A mutant that changes nothing, for the programs of a suite."""
    return Mutant(id="", title="", origin="", file="", old="", new="", suite=suite, breaks="")


def applies(technique: Technique, case: Case) -> bool:
    """Returns true if the technique can run the case.

    Judges of answers need a model, and the programs of mutants are for the directed column alone.
    """
    if technique.name == DIRECTED:
        return is_directed(case.mutant)
    if technique.name in {"linear", "model"} and judge_of(case) is None:
        return False
    return not case.label.startswith(f"{CORE}, programs")


def load(path: Path) -> ModuleType:
    return load_native(str(path))
