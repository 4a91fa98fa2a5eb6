"""The model of a suite, asked about the answers of its trials.

Answers that no order of the calls explains are a violation of :data:`LINEARIZABILITY`. The judge of a suite
is kept for all trials of this process; what its model said before, for those under the engine.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.histories.recording import record_run
from pulsar_ml.harness.subjects.program import Program, generate, words
from pulsar_ml.harness.subjects.subject import Subject

if TYPE_CHECKING:
    from pulsar_ml.harness.judges.judge import ModelJudge

LINEARIZABILITY = "linearizability"

RECORDED = 6  # programs of one trial on real threads
OPERATIONS = 12  # of each of their threads; a search of all of them is short
MOST_THREADS = 4
SEED_STREAM = 4  # of the seed's random numbers


@functools.cache
def judge_of(model: str) -> ModelJudge | None:
    """The judge of the model in the module of that name, None for none; UsageError when it cannot be."""
    if not model:
        return None
    from pulsar_ml.harness.judges.judge import ModelJudge

    try:
        factory = importlib.import_module(model).Model
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"no model in {model!r}: {error}; the module should define a class Model"
        ) from None
    return ModelJudge(factory)


def asked(suite: Suite) -> tuple[int, int]:
    """Histories that the suite's judge was asked about so far, and those that it could not tell."""
    judge = judge_of(suite.model)
    return (0, 0) if judge is None else (judge.counts.judged, judge.counts.unknown)


def recorded_programs(
    subject: Subject,
    suite: Suite,
    seed: int,
    settings: Mapping[str, int],
    *,
    threads: int,
    noise: bool,
) -> Iterator[Program]:
    """The short programs of a seed, whose histories a trial on real threads records."""
    threads = min(threads, MOST_THREADS)
    for number, drawn in enumerate(words(seed, SEED_STREAM, RECORDED)):
        yield generate(
            subject,
            int(drawn) >> 1,
            threads=threads,
            operations=OPERATIONS,
            mix=number % 2 and suite.controlled.mix or suite.mix,
            settings={name: (value, value) for name, value in settings.items()},
            noise=noise,
        )


def wrong_answers(subject: Subject, suite: Suite, whole: Program, *, noise: bool) -> str:
    """Why the answers of a short program beside ``whole`` cannot be; "" for right ones or no model."""
    judge = judge_of(suite.model)
    if judge is None:
        return ""
    # Real threads hardly ever make a history twice: remembered for all programs, states would only pile up.
    judge.checkers.clear()
    threads = len(whole.threads)
    for program in recorded_programs(
        subject, suite, whole.seed, whole.settings, threads=threads, noise=noise
    ):
        instance = subject.create(threads=len(program.threads), settings=program.settings)
        result, history = record_run(instance, program)
        if result.stuck or result.violations:
            continue  # the long program is there for those
        if message := judge.message(history, len(program.threads)):
            return f"{message}; in a program of seed {program.seed}"
    return ""
