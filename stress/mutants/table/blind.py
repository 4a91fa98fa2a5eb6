"""Hunts in the engine with the programs that a suite generates, and with no others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType

from pulsar_ml.campaign.trial.controlled import REUSE, program_of
from pulsar_ml.campaign.trial.guidance import EXECUTIONS, Guide
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from stress.mutants.hunting import PER_PROGRAM, Hunt

SINGLE_OPERATIONS = 20  # of a program of one thread
NEXT_SEED = 1000  # between the first programs of two seeds


def blind_programs(
    subject: Subject, suite: Suite, seed: int, *, single: bool = False
) -> Iterator[Program]:
    """Yields the programs of a seed as ``pulsar-ml explore`` makes them, or those of one thread."""
    options = TrialOptions(threads=1, operations=SINGLE_OPERATIONS) if single else TrialOptions()
    number = NEXT_SEED * seed
    while True:
        yield program_of(subject, suite, number, options)
        number += 1


def hunt_blind(
    module: ModuleType,
    suite: Suite,
    *,
    seed: int,
    mode: str,
    budget: int,
    single: bool = False,
    answers_only: bool = False,
    faults: Iterable[str] = (),
) -> Hunt:
    """Runs up to ``budget`` executions of the suite's programs until one fails.

    Invariants and races count, and the model's verdict only with ``answers_only`` or ``faults``. A
    program of one thread has one execution.
    """
    subject = module.SUBJECTS[suite.subject]
    faults = tuple(faults)
    judge = judge_of(suite.model) if answers_only or faults else None
    spent = 0
    for program in blind_programs(subject, suite, seed, single=single):
        done = explore(
            subject,
            program,
            executions=1 if single else min(PER_PROGRAM, budget - spent),
            seed=seed,
            mode=mode,
            reuse=REUSE,
            races=not answers_only,
            judge=judge.brief if judge else None,
            answers_only=answers_only,
            faults=faults,
        )
        spent += done.executions
        if done.failure is not None:
            return Hunt(spent, done.failure)
        if spent >= budget:
            break
    return Hunt(spent, None)


def hunt_guided(module: ModuleType, suite: Suite, *, seed: int, budget: int) -> Hunt:
    """Runs ``pulsar-ml explore`` with its usual settings, up to ``budget`` executions.

    Programs are scouted and searched before they are explored, half of those that are explored are
    made from earlier ones that showed something new, and invariants, races, leaks and the model's
    verdict all count. Executions of programs that are scouted or searched count when they fail, as
    in the command.
    """
    subject = module.SUBJECTS[suite.subject]
    judge = judge_of(suite.model)
    guide = Guide(subject, suite, NEXT_SEED * seed, TrialOptions(), searches=True)
    spent = 0
    for one in guide.programs(budget // EXECUTIONS):
        if spent >= budget:
            break
        done = explore(
            subject,
            one.program,
            executions=one.executions(EXECUTIONS),
            seed=NEXT_SEED * seed,
            reuse=REUSE,
            judge=judge.brief if judge else None,
            look=guide.look,
            **one.steering,
        )
        guide.learn(one.program)
        if not one.scouted or done.failure is not None:
            spent += done.executions
        if done.failure is not None:
            return Hunt(spent, done.failure)
    return Hunt(spent, None)
