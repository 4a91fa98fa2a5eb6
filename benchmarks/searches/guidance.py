"""Guidance in numbers: classes, speed, and executions to the first failure of mutants, blind.

Guided and unguided exploration have the same programs of one seed, as ``pulsar-ml explore`` has by
default, without the short search of each, and the executions of both count all, those that scout
programs included.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

from benchmarks.measure import Benchmark
from pulsar_ml.campaign.trial.controlled import program_of
from pulsar_ml.campaign.trial.guidance import Guide, Guided, unsteered
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.operations import _checked
from pulsar_ml.suites.registry import SUITES

NAMES = ("range_cache", "ack_state", "delayed_manager", "mpsc_queue", "stamped_lock", "refcount")
PROGRAMS = 200
EXECUTIONS = 200  # of each, the most
SEED = 1
# A dozen of the catalogue's mutants that blind sampling finds within thousands of executions.
MUTANTS = ("M42", "M45", "M48", "M63", "M39", "H08", "H23b", "H33", "M05", "M25", "H03b", "C02")
SEEDS = range(8)
BUDGET = 10_000  # executions of one seed
NEXT_SEED = 1_000  # between the first programs of two seeds


@dataclass(frozen=True, slots=True)
class Search:
    """The counts of one exploration; ``seconds`` of processor time."""

    classes: int
    executions: int
    seconds: float


def inputs(subject: Subject, suite: Suite, seed: int, guide: Guide | None) -> Iterator[Guided]:
    """Yield the programs of a seed, guided or as they are drawn."""
    if guide is not None:
        return guide.programs(PROGRAMS)
    drawn = (
        program_of(subject, suite, seed + number, TrialOptions()) for number in range(PROGRAMS)
    )
    return (Guided(program, unsteered()) for program in drawn)


def search(name: str, guided: bool) -> Search:
    """Explore the programs of a suite, without its model."""
    suite = SUITES[name]
    subject = _checked.SUBJECTS[suite.subject]
    guide = Guide(subject, suite, SEED, TrialOptions()) if guided else None
    classes: set[tuple[str, int]] = set()
    executions = 0

    started = time.process_time()
    for one in inputs(subject, suite, SEED, guide):
        most = one.executions(EXECUTIONS)
        done = explore(
            subject,
            one.program,
            executions=most,
            seed=SEED,
            reuse="mixed",
            look=guide.look if guide else None,
            **one.steering,
        )
        if done.failure is not None:
            raise RuntimeError(f"{name}: {done.failure.kind}: {done.failure.message}")
        if guide:
            guide.learn(one.program)
        digest = one.program.digest()
        classes.update((digest, each) for each in done.classes.tolist())
        executions += done.executions
    return Search(len(classes), executions, time.process_time() - started)


def first_failure(mutant: str, seed: int, guided: bool) -> int:
    """Return the executions to the first failure of a mutant, or the whole budget."""
    from stress.mutants.catalogue import CATALOGUE
    from stress.mutants.hunting import mutants

    module = mutants()
    module.select_mutant(mutant)
    suite = SUITES[next(one.suite for one in CATALOGUE if one.id == mutant)]
    subject = module.SUBJECTS[suite.subject]
    judge = judge_of(suite.model)
    first = NEXT_SEED * seed
    guide = Guide(subject, suite, first, TrialOptions()) if guided else None
    executions = 0
    for one in inputs(subject, suite, first, guide):
        most = min(one.executions(EXECUTIONS), BUDGET - executions)
        done = explore(
            subject,
            one.program,
            executions=most,
            seed=first,
            reuse="mixed",
            judge=judge.brief if judge else None,
            look=guide.look if guide else None,
            **one.steering,
        )
        if guide:
            guide.learn(one.program)
        executions += done.executions
        if done.failure is not None or executions >= BUDGET:
            break
    module.select_mutant(None)
    return executions


@cache
def medians(guided: bool) -> tuple[float, ...]:
    """Return each mutant's median of the executions to its first failure."""
    return tuple(
        statistics.median(first_failure(mutant, seed, guided) for seed in SEEDS)
        for mutant in MUTANTS
    )


def mean_of_medians(guided: bool) -> float:
    return math.exp(statistics.fmean(map(math.log, medians(guided))))


DONE: dict[tuple[str, bool], Search] = {}  # the last exploration of each kind


def classes_rate(name: str, guided: bool) -> float:
    done = DONE[name, guided] = search(name, guided)
    return done.classes / done.seconds / 1e3


def of_last(name: str, guided: bool, number: Callable[[Search], float]) -> float:
    """Return a number of the exploration of the row before, or of a new one without that row."""
    if (name, guided) not in DONE:
        classes_rate(name, guided)
    return number(DONE[name, guided])


ROWS = (
    ("classes per thousand", "n", lambda done: 1000 * done.classes / done.executions),
    ("executions", "k/s", lambda done: done.executions / done.seconds / 1e3),
)


def rows(name: str, guided: bool) -> tuple[Benchmark, ...]:
    title = f"search: {name}, {'guided' if guided else 'unguided'}"
    return (
        Benchmark(f"{title}, classes", partial(classes_rate, name, guided), "k/s"),
        *(
            Benchmark(f"{title}, {what}", partial(of_last, name, guided, number), unit)
            for what, unit, number in ROWS
        ),
    )


BENCHMARKS = (
    *(row for name in NAMES for guided in (False, True) for row in rows(name, guided)),
    *(
        Benchmark(
            f"search: first failure of {len(MUTANTS)} mutants, {title}",
            partial(mean_of_medians, guided),
            "n",
        )
        for guided, title in ((False, "unguided"), (True, "guided"))
    ),
)
