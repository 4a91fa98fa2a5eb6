"""Judges the answers of a suite's trials by the suite's sequential model.

Answers that no order of the calls explains are a violation of :data:`LINEARIZABILITY`. A process
keeps one judge for each suite; under the engine the judge also remembers earlier verdicts.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pulsar_ml.campaign.trial.phases import Phases
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.histories.recording import record_run
from pulsar_ml.harness.subjects.program import Program, words
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.harness.subjects.threads import draw_program

if TYPE_CHECKING:
    from pulsar_ml.harness.judges.judge import ModelJudge

LINEARIZABILITY = "linearizability"

RECORDED = 6  # programs that one trial on real threads records
MOST_THREADS = 4
SEED_STREAM = 4  # of the seed's random numbers


@functools.cache
def judge_of(model: str) -> ModelJudge | None:
    """Return the judge of the model in module ``model``, None for "".

    UsageError when there is none.
    """
    if not model:
        return None
    from pulsar_ml.harness.judges.judge import ModelJudge

    try:
        module = importlib.import_module(model)
        factory = module.Model
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"no model in {model!r}: {error}; the module should define a class Model"
        ) from None
    return ModelJudge(factory, exact=getattr(module, "Exact", None))


def judge_counts(suite: Suite) -> tuple[int, int]:
    """Return how many histories the suite's judge has judged so far, and how many are unknown."""
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
    """Make the short programs of a seed whose histories a trial on real threads records."""
    threads = min(threads, MOST_THREADS)
    for number, drawn in enumerate(words(seed, SEED_STREAM, RECORDED)):
        yield draw_program(
            subject,
            int(drawn) >> 1,
            threads=threads,
            operations=suite.recorded,
            mix=(number % 2 and suite.controlled.mix) or suite.mix,
            settings={name: (value, value) for name, value in settings.items()},
            noise=noise,
        )


def wrong_answers(
    subject: Subject, suite: Suite, whole: Program, spent: Phases, *, noise: bool
) -> str:
    """Explain why answers of a short program of ``whole``'s seed are illegal; "" if none is.

    The time of each phase is added to ``spent``.
    """
    judge = judge_of(suite.model)
    if judge is None:
        return ""
    # Real threads hardly ever make a history twice, so remembering verdicts would only use memory.
    judge.checkers.clear()
    threads = len(whole.threads)
    programs = recorded_programs(
        subject, suite, whole.seed, whole.settings, threads=threads, noise=noise
    )
    while True:
        with spent.of("draw"):
            program = next(programs, None)
        if program is None:
            return ""
        with spent.of("create"):
            instance = subject.create(threads=len(program.threads), settings=program.settings)
        with spent.of("record"):
            result, history = record_run(instance, program)
        if result.stuck or result.violations:
            continue  # the long program reports those
        with spent.of("judge"):
            message = judge.message(history, len(program.threads))
        if message:
            return f"{message}; in the program of seed {program.seed}"
