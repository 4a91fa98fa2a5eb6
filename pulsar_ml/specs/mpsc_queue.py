"""A first-in first-out queue of (producer, number)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from pulsar_ml.specs import Answer, answer, unknown

DONE, EMPTY, BEHIND = range(3)

PENDING = 64  # handles that one producer may have in the queue


class Model:
    """The queue and how many handles each producer offered."""

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.queue: deque[tuple[int, int]] = deque()
        self.offered = [0] * threads

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        if operation in ("offer", "offer_after"):
            if sum(producer == thread for producer, _ in self.queue) == PENDING:
                return answer(BEHIND)
            self.offered[thread] += 1
            self.queue.append((thread, self.offered[thread]))
            return answer(DONE, self.offered[thread])
        if operation in ("poll", "poll_known"):
            if not self.queue:
                return answer(EMPTY)
            producer, number = self.queue.popleft()
            return answer(DONE, number, producer)
        if operation == "size":
            return answer(DONE, len(self.queue))
        raise unknown("mpsc_queue", operation)
