"""Plain sentences on the cause of a failure, from the steps of the failing execution alone.

Nothing is explored, so the sentences are there as soon as the failure was replayed. They say what
the steps show and nothing else: a failure whose steps show no cause has no sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pulsar_ml.harness.causes.sentences.races import race_sentences
from pulsar_ml.harness.causes.sentences.steps import Steps
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.subjects.subject import Subject

Sentences = Callable[[Failure, Steps], Iterator[str]]

OF_KIND: Mapping[str, Sentences] = {"data race": race_sentences}


def why(failure: Failure, subject: Subject, events: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return sentences on the cause of ``failure``, the most direct one first.

    ``events`` is the trace of an exact replay, :attr:`Replayed.trace`; for any other trace the
    sentences would be of another execution. Each sentence begins in lower case and has no full
    stop, as messages have. None for a failure that ended its process.
    """
    if failure.ended_process or not events:
        return ()
    found = OF_KIND.get(failure.kind)
    return tuple(found(failure, Steps(events))) if found else ()
