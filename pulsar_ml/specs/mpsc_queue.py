"""A first-in first-out queue of (producer, number)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, unknown

DONE, EMPTY, BEHIND = range(3)

PENDING = 64  # handles that one producer may have in the queue


class Model:
    """The queue and how many handles each producer offered."""

    fresh = False
    weak: ClassVar[Mapping[str, str]] = {
        "poll": "EMPTY is about a queue that may have been offered to since, unless the offer is known to "
        "the consumer. A handle is the oldest one.",
        "poll_known": "As poll.",
        "size": "Between the handles that the consumer knows of and those in the queue.",
    }

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.queue: tuple[tuple[int, int], ...] = ()
        self.offered = (0,) * threads

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        if operation in ("offer", "offer_after"):
            if sum([producer == thread for producer, _ in self.queue]) == PENDING:
                return answer(BEHIND)
            number = self.offered[thread] + 1
            self.offered = (*self.offered[:thread], number, *self.offered[thread + 1 :])
            self.queue = (*self.queue, (thread, number))
            return answer(DONE, number)
        if operation in ("poll", "poll_known"):
            if not self.queue:
                return answer(EMPTY)
            producer, number = self.queue[0]
            self.queue = self.queue[1:]
            return answer(DONE, number, producer)
        if operation == "size":
            return answer(DONE, len(self.queue))
        raise unknown("mpsc_queue", operation)

    def concurrent(self, operation: str, arguments: Sequence[int], *, thread: int = 0, given: Answer) -> bool:
        if not self.fresh:
            # The handles up to its own last one the consumer has seen queued.
            own = [place for place, (producer, _) in enumerate(self.queue, 1) if producer == thread]
            known = own[-1] if own else 0
            if given == answer(EMPTY):
                return known == 0
            if operation == "size":
                return given[1] == answer(DONE, given[1][0])[1] and known <= given[1][0] <= len(self.queue)
        return self.step(operation, arguments, thread=thread) == given

    def canonical(self) -> object:
        return self.queue, self.offered
