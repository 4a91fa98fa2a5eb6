"""Small programs of a suite for the engine, drawn from a seed."""

from __future__ import annotations

from collections.abc import Sequence

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.harness.engine import STEP_LIMIT
from pulsar_ml.harness.subjects.colliding import colliding_program
from pulsar_ml.harness.subjects.program import Program, resolve_mix
from pulsar_ml.harness.subjects.subject import Subject

STEPS_ALONE = 500_000  # of an execution with one thread


def program_of(subject: Subject, suite: Suite, seed: int, options: TrialOptions) -> Program:
    """Make the small program of a seed, whose threads are likely to meet; no noise.

    A program of one thread is larger, unless the options say how many operations it has.
    """
    if options.threads == 1 and options.operations is None:
        return program_alone(subject, suite, seed)
    size = suite.controlled
    threads = size.threads if options.threads is None else (options.threads,) * 2
    operations = size.operations if options.operations is None else (options.operations,) * 2
    if options.threads is None and subject.max_threads:
        threads = min(threads[0], subject.max_threads), min(threads[1], subject.max_threads)
    return colliding_program(
        subject,
        seed,
        threads=threads,
        operations=operations,
        mix=size.mix or suite.mix,
        others=rare_operations(subject, suite),
        sources=size.sources,
        settings={**suite.settings, **size.settings},
        kinds=size.kinds,
        lives=lives_alone(suite) if options.threads == 1 else size.lives,
        spans=size.spans,
        places=size.places,
        duels=size.duels,
    )


def program_alone(subject: Subject, suite: Suite, seed: int) -> Program:
    """Make the program of one thread of a seed, with the suite's sizes for it."""
    size = suite.alone
    weights = zip(subject.operations, resolve_mix(subject, size.mix or suite.mix), strict=True)
    return colliding_program(
        subject,
        seed,
        threads=(1, 1),
        operations=size.operations,
        mix={
            **{one.name: weight for one, weight in weights if one.name not in size.left_out},
            **size.added,
        },
        sources=size.sources or suite.controlled.sources,
        settings={**suite.settings, **size.settings},
        kinds=size.kinds or suite.controlled.kinds,
        lives=lives_alone(suite),
        spans=size.spans,
    )


def lives_alone(suite: Suite) -> Sequence[Sequence[str]]:
    """Return the lives in a program of one thread: its own, or those that threads meet."""
    return suite.alone.lives or suite.controlled.lives


def steps_of(options: TrialOptions) -> int:
    """Return the steps after which an execution is cut: one thread may make many."""
    return STEPS_ALONE if options.threads == 1 else STEP_LIMIT


def rare_operations(subject: Subject, suite: Suite) -> list[str]:
    """Return the suite's operations that small programs call besides those of their own mix."""
    small = resolve_mix(subject, suite.controlled.mix or suite.mix)
    return [
        operation.name
        for operation, weight in zip(
            subject.operations, resolve_mix(subject, suite.mix), strict=True
        )
        if weight and not small[operation.code] and operation.name not in suite.controlled.left_out
    ]
