"""A number of equal objects, each with one holder or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, unknown

DONE, EXHAUSTED, NOT_HELD = range(3)


class Model:
    """How many objects each thread holds, and whether it ever gave one back."""

    weak: ClassVar[Mapping[str, str]] = {
        "take": "EXHAUSTED says that every object was taken at least once and that the free list was "
        "empty at one moment; objects may have come back since.",
    }

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.objects = settings["limit"] - 1
        self.held = [0] * threads
        self.gave = [False] * threads
        self.takes = 0  # up to the number of objects

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        status = DONE
        if operation == "take":
            if sum(self.held) == self.objects:
                status = EXHAUSTED
            else:
                self.held[thread] += 1
                self.takes = min(self.takes + 1, self.objects)
        elif operation == "look_stale":
            status = DONE if self.gave[thread] else NOT_HELD
        elif not self.held[thread]:
            status = NOT_HELD
        elif operation in ("give", "give_chain"):
            self.held[thread] -= 1 if operation == "give" else min(arguments[0], self.held[thread])
            self.gave[thread] = True
        elif operation != "read":
            raise unknown("object_pool", operation)
        return answer(status, self.held[thread])

    def concurrent(self, operation: str, arguments: Sequence[int], *, thread: int = 0, given: Answer) -> bool:
        if given == answer(EXHAUSTED, self.held[thread]):
            return self.takes == self.objects
        return self.step(operation, arguments, thread=thread) == given

    def canonical(self) -> object:
        return tuple(self.held), tuple(self.gave), self.takes
