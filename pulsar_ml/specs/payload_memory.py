"""Blocks of memory, each with one holder or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, unknown

DONE, NO_MEMORY, NOT_HELD, HANDS_FULL = range(4)
MOST_HELD = 8  # blocks of a thread


class Model:
    """The number of blocks that each thread holds."""

    scarce = False
    allocates = frozenset({"take", "take_large"})
    weak: ClassVar[Mapping[str, str]] = {}

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.held = [0] * threads

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        status = DONE
        if operation in ("take", "take_large"):
            if self.held[thread] == MOST_HELD:
                status = HANDS_FULL
            else:
                self.held[thread] += 1
        elif operation not in ("give", "give_chain", "read"):
            raise unknown("payload_memory", operation)
        elif not self.held[thread]:
            status = NOT_HELD
        elif operation != "read":
            most = arguments[0] if operation == "give_chain" else 1
            self.held[thread] -= min(most, self.held[thread])
        return answer(status, self.held[thread])

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int = 0, result: Answer
    ) -> bool:
        if operation in self.allocates and result == answer(NO_MEMORY, self.held[thread]):
            return self.scarce and self.held[thread] < MOST_HELD
        return self.step(operation, arguments, thread=thread) == result

    def canonical(self) -> object:
        return tuple(self.held)
