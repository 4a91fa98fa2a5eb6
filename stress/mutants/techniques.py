"""The techniques of the kill table: what each does with one seed, in a child process.

A mutant may end its process or never come to an end: both are findings, not accidents.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pulsar_ml.campaign.oracle import judge_of as model_judge
from pulsar_ml.campaign.suite import ControlledSize
from pulsar_ml.campaign.trial import TrialOptions, load_native, run_trial
from pulsar_ml.harness.explore import SEARCHES, explore
from pulsar_ml.harness.failure import WRONG_ANSWERS, Failure
from pulsar_ml.harness.oracle import Judge
from pulsar_ml.harness.sandbox import Limits, LostError, call
from pulsar_ml.harness.shrink import shrink
from stress.mutants.catalogue import CATALOGUE, Mutant
from stress.mutants.engine import PER_PROGRAM, hunt, program_of, program_of_calls, size
from stress.registry import SUITES

SHRUNK = 2  # the first so many seeds make their failure smaller, outside the measured time
SHRINKING = 10_000  # executions
CORE = "true core"
LIMITS = {"threads": Limits(wall=20.0, cpu=4.0), "engine": Limits(wall=20.0, cpu=5.0)}


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

    case: str
    technique: str
    seed: int
    found: bool
    made: int
    seconds: float
    verdict: str = ""
    size: Mapping[str, int] | None = None

    def to_data(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Technique:
    """One column of the table.

    Attributes:
        name: on the command line; ``title`` in the page.
        unit: what the budget of each seed counts; ``built`` for whom the module is built.
        seeds: how many at most.
        what: one sentence for the page.
    """

    name: str
    title: str
    what: str
    unit: str
    budget: int
    built: str
    attempt: Callable[[ModuleType, Path, Case, int, int], Trial]
    seeds: int = 1_000


def own_programs(mutant: Mutant) -> Mutant:
    """The mutant with its suite's sizes for the engine, where it has none of its own."""
    if mutant.programs == ControlledSize() and not mutant.within:
        return replace(mutant, programs=SUITES[mutant.suite].controlled)
    return mutant


# Real threads ------------------------------------------------------------------------------------------


def on_threads(
    technique: str,
    threads: int | None,
    module: Path,
    case: Case,
    seed: int,
    budget: int,
    *,
    seen: bool = True,
) -> Trial:
    """Programs 1000 * seed, ... of the suite, until an invariant is broken (if broken ones are ``seen``)."""
    # Noise disturbs the schedule; one thread has none.
    options = TrialOptions(module=str(module), mutant=case.selected, threads=threads, noise=threads != 1)
    suite = replace(SUITES[case.mutant.suite], model="")  # the model has a column of its own
    start = time.perf_counter()
    for number in range(budget):
        done = run_trial(suite, 1000 * seed + number, options)
        if done.violations and seen:
            spent = time.perf_counter() - start
            return Trial(case.label, technique, seed, True, number + 1, spent, done.violations[0].invariant)
    return Trial(case.label, technique, seed, False, budget, time.perf_counter() - start)


def one_thread(module: ModuleType, path: Path, case: Case, seed: int, budget: int) -> Trial:
    return on_threads("one", 1, path, case, seed, budget)


def real_threads(module: ModuleType, path: Path, case: Case, seed: int, budget: int) -> Trial:
    return on_threads("threads", None, path, case, seed, budget)


def thread_sanitizer(module: ModuleType, path: Path, case: Case, seed: int, budget: int) -> Trial:
    # A report ends the process. What the suite itself notices is the business of another column.
    return on_threads("tsan", None, path, case, seed, budget, seen=False)


# The engine ----------------------------------------------------------------------------------------------


def in_engine(mode: str, module: ModuleType, case: Case, seed: int, budget: int) -> Trial:
    module.select_mutant(case.selected)
    start = time.perf_counter()
    done = hunt(module, own_programs(case.mutant), seed=seed, mode=mode, budget=budget, judged=False)
    spent = time.perf_counter() - start
    return engine_trial(mode, module, case, seed, done.executions, spent, done.failure)


def engine_trial(
    technique: str,
    module: ModuleType,
    case: Case,
    seed: int,
    made: int,
    spent: float,
    failure: Failure | None,
    judge: Judge | None = None,
) -> Trial:
    if failure is None:
        return Trial(case.label, technique, seed, False, made, spent)
    measures = None
    if seed < SHRUNK:
        measures = size(shrink(failure, module.SUBJECTS[failure.subject], budget=SHRINKING, judge=judge))
    verdict = failure.rule or failure.kind
    return Trial(case.label, technique, seed, True, made, spent, verdict, measures)


def sequentially(module: ModuleType, path: Path, case: Case, seed: int, budget: int) -> Trial:
    return in_engine("sc", module, case, seed, budget)


def weakly(module: ModuleType, path: Path, case: Case, seed: int, budget: int) -> Trial:
    return in_engine("c11", module, case, seed, budget)


def judge_of(case: Case) -> Judge | None:
    """The judge of the answers of the case's suite, None if it has no model."""
    return model_judge(SUITES[case.mutant.suite].model)


def answers(module: ModuleType, path: Path, case: Case, seed: int, budget: int) -> Trial:
    """Executions until the suite's model refuses the answers of one; what else fails is passed over."""
    module.select_mutant(case.selected)
    mutant = own_programs(case.mutant)
    suite = SUITES[mutant.suite]
    subject = module.SUBJECTS[suite.subject]
    judge = judge_of(case)
    searching = mutant.strategy in SEARCHES
    start = time.perf_counter()
    made = number = 0
    while made < budget:
        if mutant.calls:
            program, rest = program_of_calls(suite, subject, mutant), budget - made
        else:
            program = program_of(suite, subject, 1000 * seed + number, mutant.programs, mutant.settings)
            rest = min(PER_PROGRAM, budget - made)
        first = 0
        while first < rest:
            done = explore(
                subject,
                program,
                executions=rest - first,
                first=first,
                seed=seed,
                strategy=mutant.strategy,
                reuse="quarantine" if searching else "mixed",
                races=False,
                judge=judge,
            )
            made += done.executions
            first += done.executions
            if done.failure is not None and done.failure.kind == WRONG_ANSWERS:
                spent = time.perf_counter() - start
                return engine_trial("linear", module, case, seed, made, spent, done.failure, judge)
            if done.failure is None or searching:
                break
        number += 1
    return engine_trial("linear", module, case, seed, made, time.perf_counter() - start, None)


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
            budget=10,
            built=THREADS,
            attempt=one_thread,
        ),
        Technique(
            name="threads",
            title="real threads",
            what="The suite's programs with its number of threads, on the processors that there are.",
            unit="programs",
            budget=10,
            built=THREADS,
            attempt=real_threads,
        ),
        Technique(
            name="sc",
            title="engine sc",
            what="Small programs under the engine in mode sc, with the race detector.",
            unit="executions",
            budget=3_000,
            built=ENGINE,
            attempt=sequentially,
        ),
        Technique(
            name="c11",
            title="engine c11",
            what="The same programs in mode c11.",
            unit="executions",
            budget=3_000,
            built=ENGINE,
            attempt=weakly,
        ),
        Technique(
            name="tsan",
            title="thread sanitizer",
            what="The suite's programs on real threads in a build with the compiler's thread sanitizer; only "
            "its "
            "reports and crashes count, not the invariants.",
            unit="programs",
            budget=2,
            built=SANITIZER,
            attempt=thread_sanitizer,
            seeds=3,
        ),
        Technique(
            name="linear",
            title="linearizability",
            what="The programs of the engine in mode c11, judged by nothing but the suite's "
            "sequential model.",
            unit="executions",
            budget=2_000,
            built=ENGINE,
            attempt=answers,
        ),
    )
}


def attempt(technique: Technique, module: ModuleType, path: Path, case: Case, seed: int) -> Trial:
    """One trial in a child process. A child that was lost has found something."""
    limits = LIMITS["engine" if technique.built == ENGINE else "threads"]
    budget = max(technique.budget, case.mutant.executions if technique.built == ENGINE else 0)
    start = time.perf_counter()
    try:
        return call(lambda: technique.attempt(module, path, case, seed, budget), limits=limits)
    except LostError as lost:
        made = lost.execution + 1 if technique.built == ENGINE and lost.execution < budget else 1
        return Trial(
            case.label, technique.name, seed, True, made, time.perf_counter() - start, verdict_of(lost)
        )


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
        if (mutant.programs != ControlledSize() or mutant.calls or mutant.settings) and key not in known:
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
