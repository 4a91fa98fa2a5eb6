"""Plain sentences on the cause of a failure, from the steps of the failing execution alone.

Nothing is explored, so the sentences are there as soon as the failure was replayed. They say what
the steps show and nothing else: a failure whose steps show no cause has no sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pulsar_ml.harness.causes.sentences.answers import answer_sentences
from pulsar_ml.harness.causes.sentences.blocks import block_sentences
from pulsar_ml.harness.causes.sentences.races import race_sentences
from pulsar_ml.harness.causes.sentences.stale_reads import stale_sentences
from pulsar_ml.harness.causes.sentences.steps import Steps
from pulsar_ml.harness.causes.sentences.values import value_sentences
from pulsar_ml.harness.causes.sentences.waits import loop_sentences, wait_sentences
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.search.failure import WRONG_ANSWERS, Failure, replay_explorer
from pulsar_ml.harness.subjects.subject import Subject

OF_BLOCKS = ("use after free", "double free", "leak", "out of bounds")


def why(
    failure: Failure,
    subject: Subject,
    events: Sequence[dict[str, Any]],
    *,
    judge: Judge | None = None,
    rule: str = "",
) -> tuple[str, ...]:
    """Return sentences on the cause of ``failure``, the most direct one first.

    ``events`` is the trace of an exact replay, :attr:`Replayed.trace`; for any other trace the
    sentences would be of another execution. ``judge`` is that of the replay, which explains wrong
    answers, and ``rule`` the sentence of the broken invariant. Each sentence begins in lower case
    and has no full stop, as messages have. None for a failure that ended its process.
    """
    if failure.ended_process or not events:
        return ()
    first = [f"{failure.rule} says: {rule.removesuffix('.')}"] if failure.rule and rule else []
    return tuple(dict.fromkeys((*first, *sentences(failure, subject, Steps(events), judge))))


def sentences(
    failure: Failure, subject: Subject, steps: Steps, judge: Judge | None
) -> Iterator[str]:
    if failure.kind == "data race":
        yield from race_sentences(failure, steps)
    elif failure.kind == "deadlock":
        raw = ended(failure, subject)
        yield from wait_sentences(steps, raw)
        yield from loop_sentences(steps, raw)
    elif failure.kind == "livelock":
        yield from loop_sentences(steps, ended(failure, subject))
    elif failure.kind in OF_BLOCKS:
        yield from block_sentences(failure, steps, ended(failure, subject))
    elif failure.kind == WRONG_ANSWERS:
        yield from answer_sentences(failure, subject, judge)
        yield from stale_sentences(steps)
    elif failure.kind in ("assertion", "invariant"):
        yield from stale_sentences(steps)
        yield from value_sentences(failure, failure.replay(subject, judge), steps)


def ended(failure: Failure, subject: Subject) -> Mapping[str, Any]:
    """The fields of EngineFailure of the failing execution, which is made once more."""
    explorer = replay_explorer(failure, subject)
    explorer.again(0)
    return cast("Mapping[str, Any]", explorer.failure())
