"""A first-in first-out queue of handles: which producer, and the number it gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, unknown

DONE, EMPTY, BEHIND, NO_MEMORY = range(4)

NOTHING_THERE = answer(EMPTY)

PRODUCERS = 64  # at most
PENDING = 64  # handles that one producer may have in the queue


class Model:
    """The queue and how many handles each producer offered."""

    fresh = False
    scarce = False
    allocates = frozenset({"offer", "offer_after"})
    weak: ClassVar[Mapping[str, str]] = {
        "poll": "EMPTY: the queue was empty at one moment; every offer that the consumer knows of "
        "had been polled. A handle is the oldest one.",
        "poll_known": "As poll.",
        "size": "At least the handles that the consumer knows of, and at most those in the queue.",
    }

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.queue: tuple[int, ...] = ()  # number * PRODUCERS + producer
        self.offered = (0,) * threads

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        if operation == "offer" or operation == "offer_after":
            if len(self.queue) >= PENDING and self.waiting(thread) == PENDING:
                return answer(BEHIND)
            number = self.offered[thread] + 1
            self.offered = (*self.offered[:thread], number, *self.offered[thread + 1 :])
            self.queue = (*self.queue, number * PRODUCERS + thread)
            return DONE, (number, 0, 0, 0)
        if operation == "poll" or operation == "poll_known":
            if not self.queue:
                return answer(EMPTY)
            number, producer = divmod(self.queue[0], PRODUCERS)
            self.queue = self.queue[1:]
            return DONE, (number, producer, 0, 0)
        if operation == "size":
            return answer(DONE, len(self.queue))
        raise unknown("mpsc_queue", operation)

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int = 0, result: Answer
    ) -> bool:
        if result == answer(NO_MEMORY) and operation in self.allocates:
            return self.scarce and self.waiting(thread) < PENDING
        if not self.fresh:
            # The handles up to its own last one the consumer has seen queued.
            if result == NOTHING_THERE:
                return not self.waiting(thread)
            if operation == "size":
                size = result[1][0]
                return result[1] == (size, 0, 0, 0) and self.last_own(thread) <= size <= len(
                    self.queue
                )
        return self.step(operation, arguments, thread=thread) == result

    def waiting(self, thread: int) -> int:
        """The number of the producer's handles in the queue."""
        return sum([handle % PRODUCERS == thread for handle in self.queue])

    def last_own(self, thread: int) -> int:
        """Where the last one of them is, counted from 1; 0: there is none."""
        place = len(self.queue)
        while place and self.queue[place - 1] % PRODUCERS != thread:
            place -= 1
        return place

    def canonical(self) -> object:
        return self.queue, self.offered
