"""The techniques of the kill table: what each does with one seed, in a child process.

A mutant may end its process or never come to an end: both are findings, not accidents.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType

from pulsar_ml.campaign.trial.judging import judge_of as model_judge
from pulsar_ml.campaign.trial.suite import ControlledSize
from pulsar_ml.campaign.trial.trial import TrialOptions, load_native, run_trial
from pulsar_ml.harness.engine import SEARCHES
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.search.child import Limits, LostError
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import STUCK, Failure
from pulsar_ml.harness.search.sandbox import watch
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.suites.registry import SUITES
from stress.mutants.catalogue import CATALOGUE, Mutant
from stress.mutants.engine import PER_PROGRAM, hunt, program_of, program_of_calls, size

SHRINKING = 5_000  # executions
CORE_TIMES, CORE_SEEDS = 10, 3  # a larger budget for each seed of the true core, and fewer of them
SANITIZED_OPERATIONS = 500  # of each thread: the sanitizer is some thirty times slower
CORE = "true core"
STUCK_SEEDS = 3  # after so many seeds in a row that came to no end the others are not tried
# From one program or execution to the next.
LIMITS = {"threads": Limits(wall=10.0, cpu=2.0), "engine": Limits(wall=20.0, cpu=3.0)}


@dataclass(frozen=True, slots=True)
class Case:
    """Something to try: a mutant, or the true core in the programs of one.

    Attributes:
        label: the mutant's id, or "true core, SUITE" or "true core, programs of MUTANT".
        mutant: whose suite and programs are used.
        selected: the mutant that is active; None: the true core.
    """

    label: str
    mutant: Mutant
    selected: str | None


@dataclass(frozen=True, slots=True)
class Trial:
    """What one technique said with one seed.

    Attributes:
        found: whether it noticed anything.
        made, seconds: programs or executions, and time, until then or in all.
        verdict: the broken invariant, or what else was noticed.
        size: of the failure after shrinking, where that was done.
    """

    seed: int
    found: bool
    made: int
    seconds: float
    verdict: str = ""
    size: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """What a technique is asked for: one seed of a case.

    Attributes:
        module: with the mutants; from ``path``.
        budget: programs or executions.
        small: whether a failure is made smaller, outside the measured time.
        alive: to be called after each program on real threads; the engine tells of its executions itself.
    """

    module: ModuleType
    path: Path
    case: Case
    seed: int
    budget: int
    small: bool
    alive: Callable[[], object]

    def found(
        self, made: int, seconds: float, verdict: str, size: Mapping[str, int] | None = None
    ) -> Trial:
        return Trial(self.seed, True, made, seconds, verdict, size)

    def silent(self, made: int, seconds: float) -> Trial:
        return Trial(self.seed, False, made, seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Technique:
    """One column of the table.

    Attributes:
        name: on the command line; ``title`` in the page.
        unit: what the budget of each seed counts; ``built`` for whom the module is built.
        what: one sentence for the page.
    """

    name: str
    title: str
    what: str
    unit: str
    budget: int
    built: str
    attempt: Callable[[Task], Trial]


def own_programs(mutant: Mutant) -> Mutant:
    """The mutant with its suite's sizes for the engine, where it has none of its own."""
    if mutant.programs == ControlledSize() and not mutant.within:
        return replace(mutant, programs=SUITES[mutant.suite].controlled)
    return mutant


# Real threads ------------------------------------------------------------------------------------------


def on_threads(
    task: Task, *, threads: int | None = None, operations: int | None = None, seen: bool = True
) -> Trial:
    """Programs 1000 * seed, ... of the suite, until an invariant is broken (if broken ones are ``seen``)."""
    # Noise disturbs the schedule; one thread has none.
    options = TrialOptions(
        module=str(task.path),
        mutant=task.case.selected,
        threads=threads,
        operations=operations,
        noise=threads != 1,
    )
    suite = replace(SUITES[task.case.mutant.suite], model="")  # the model has a column of its own
    start = time.perf_counter()
    for number in range(task.budget):
        done = run_trial(suite, 1000 * task.seed + number, options)
        if done.violations and seen:
            return task.found(number + 1, time.perf_counter() - start, done.violations[0].invariant)
        task.alive()
    return task.silent(task.budget, time.perf_counter() - start)


def one_thread(task: Task) -> Trial:
    return on_threads(task, threads=1)


def real_threads(task: Task) -> Trial:
    return on_threads(task)


def thread_sanitizer(task: Task) -> Trial:
    # A report ends the process. What the suite itself notices is the business of another column.
    return on_threads(task, operations=SANITIZED_OPERATIONS, seen=False)


# The engine ----------------------------------------------------------------------------------------------


def in_engine(mode: str, task: Task) -> Trial:
    task.module.select_mutant(task.case.selected)
    start = time.perf_counter()
    done = hunt(
        task.module,
        own_programs(task.case.mutant),
        seed=task.seed,
        mode=mode,
        budget=task.budget,
        judged=False,
    )
    return engine_trial(task, done.executions, time.perf_counter() - start, done.failure)


def engine_trial(
    task: Task, made: int, spent: float, failure: Failure | None, judge: Judge | None = None
) -> Trial:
    if failure is None:
        return task.silent(made, spent)
    measures = None
    if task.small:
        subject = task.module.SUBJECTS[failure.subject]
        measures = size(shrink(failure, subject, budget=SHRINKING, judge=judge))
    return task.found(made, spent, failure.rule or failure.kind, measures)


def sequentially(task: Task) -> Trial:
    return in_engine("sc", task)


def weakly(task: Task) -> Trial:
    return in_engine("c11", task)


def judge_of(case: Case) -> Judge | None:
    """The judge of the answers of the case's suite, None if it has no model."""
    return model_judge(SUITES[case.mutant.suite].model)


def answers(task: Task) -> Trial:
    """Executions until the suite's model refuses the answers of one; what else fails is passed over."""
    task.module.select_mutant(task.case.selected)
    mutant = own_programs(task.case.mutant)
    suite = SUITES[mutant.suite]
    subject = task.module.SUBJECTS[suite.subject]
    judge = judge_of(task.case)
    searching = mutant.strategy in SEARCHES
    start = time.perf_counter()
    made = number = 0
    while made < task.budget:
        if mutant.calls:
            program, rest = program_of_calls(suite, subject, mutant), task.budget - made
        else:
            drawn = 1000 * task.seed + number
            program = program_of(suite, subject, drawn, mutant.programs, mutant.settings)
            rest = min(PER_PROGRAM, task.budget - made)
        done = explore(
            subject,
            program,
            executions=rest,
            seed=task.seed,
            strategy=mutant.strategy,
            reuse="quarantine" if searching else "mixed",
            races=False,
            judge=judge,
            answers_only=True,
        )
        made += done.executions
        if done.failure is not None:
            return engine_trial(task, made, time.perf_counter() - start, done.failure, judge)
        if searching and mutant.calls:
            break  # the same search again
        number += 1
    return engine_trial(task, made, time.perf_counter() - start, None)


# All -----------------------------------------------------------------------------------------------------

THREADS, ENGINE, SANITIZER = "threads", "engine", "sanitizer"

TECHNIQUES: Mapping[str, Technique] = {
    technique.name: technique
    for technique in (
        Technique(
            name="one",
            title="one thread",
            what="The suite's programs with one thread, every invariant checked.",
            unit="programs",
            budget=5,
            built=THREADS,
            attempt=one_thread,
        ),
        Technique(
            name="threads",
            title="real threads",
            what="The suite's programs with its number of threads, on the processors that there are.",
            unit="programs",
            budget=5,
            built=THREADS,
            attempt=real_threads,
        ),
        Technique(
            name="sc",
            title="engine sc",
            what="Small programs under the engine in mode sc, with the race detector.",
            unit="executions",
            budget=2_000,
            built=ENGINE,
            attempt=sequentially,
        ),
        Technique(
            name="c11",
            title="engine c11",
            what="The same programs in mode c11.",
            unit="executions",
            budget=2_000,
            built=ENGINE,
            attempt=weakly,
        ),
        Technique(
            name="tsan",
            title="thread sanitizer",
            what=f"The suite's programs on real threads, {SANITIZED_OPERATIONS} operations each, in a build "
            "with the compiler's thread sanitizer; only its reports and crashes count, not the invariants.",
            unit="programs",
            budget=1,
            built=SANITIZER,
            attempt=thread_sanitizer,
        ),
        Technique(
            name="linear",
            title="linearizability",
            what="The programs of the engine in mode c11, judged by the suite's sequential model alone.",
            unit="executions",
            budget=2_000,
            built=ENGINE,
            attempt=answers,
        ),
    )
}


def budget_of(technique: Technique, case: Case) -> int:
    """Programs or executions of each seed."""
    return technique.budget if case.selected else CORE_TIMES * technique.budget


def seeds_of(case: Case, seeds: int) -> int:
    """How many of the seeds are for this case."""
    return seeds if case.selected else min(seeds, CORE_SEEDS)


def attempts(
    technique: Technique, module: ModuleType, path: Path, case: Case, seeds: int
) -> list[Trial]:
    """One trial of each seed, in a child process. A child that was lost has found something; the next one
    goes on with the seed after. Where the first few come to no end, the others would not either."""
    limits = LIMITS["engine" if technique.built == ENGINE else "threads"]
    budget = budget_of(technique, case)
    done: list[Trial] = []

    def live(tell: Callable[[Trial | None], object]) -> None:
        # The first failure of each child is made smaller.
        small = True
        for seed in range(len(done), seeds):
            trial = technique.attempt(
                Task(module, path, case, seed, budget, small, lambda: tell(None))
            )
            small = small and trial.size is None
            tell(trial)

    stuck = 0
    while len(done) < seeds and not stuck == len(done) == STUCK_SEEDS:
        start = time.perf_counter()
        try:
            watch(live, lambda trial: trial is not None and done.append(trial), limits=limits)
        except LostError as lost:
            # Of the child's life; where it was lost early, that is the seed's own time.
            stuck += lost.kind == STUCK
            made = (
                lost.execution + 1 if technique.built == ENGINE and lost.execution < budget else 1
            )
            lost_task = Task(module, path, case, len(done), budget, False, lambda: None)
            done.append(lost_task.found(made, time.perf_counter() - start, verdict_of(lost)))
    return done


def verdict_of(lost: LostError) -> str:
    """How a process was lost, in a few words."""
    text = lost.message
    for signal in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE"):
        if signal in text:
            return signal
    if "exit status 66" in text:  # tools/sanitized.py asks for this status
        return "data race"
    return text.partition(":")[0]


@cache
def cases() -> tuple[Case, ...]:
    """All mutants; then the true core on each suite, and in each programs of their own that mutants have."""
    found = [Case(mutant.id, mutant, mutant.id) for mutant in CATALOGUE]
    found += [Case(f"{CORE}, {name}", nothing(name), None) for name in SUITES]
    known = set()
    for mutant in CATALOGUE:
        key = repr((mutant.suite, mutant.programs, mutant.calls, mutant.settings, mutant.strategy))
        if (
            mutant.programs != ControlledSize() or mutant.calls or mutant.settings
        ) and key not in known:
            known.add(key)
            found.append(Case(f"{CORE}, programs of {mutant.id}", mutant, None))
    return tuple(found)


def nothing(suite: str) -> Mutant:
    """The mutant that changes nothing, for the programs of a suite."""
    return Mutant(id="", title="", origin="", file="", old="", new="", suite=suite, breaks="")


def applies(technique: Technique, case: Case) -> bool:
    """Whether the technique has something to say: a model is needed, and programs of a mutant's own are for
    the engine."""
    if technique.name == "linear" and judge_of(case) is None:
        return False
    return technique.built == ENGINE or not case.label.startswith(f"{CORE}, programs")


def load(path: Path) -> ModuleType:
    return load_native(str(path))
