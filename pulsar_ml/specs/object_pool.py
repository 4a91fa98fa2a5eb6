"""A number of equal objects, each with one holder or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, unknown

DONE, EXHAUSTED, NOT_HELD = range(3)


class Model:
    """The number of objects that each thread holds, and whether it ever gave one back."""

    scarce = False
    weak: ClassVar[Mapping[str, str]] = {
        "take": "EXHAUSTED: every object was taken at least once, and none was free at one moment "
        "since the caller last gave one back; objects may have come back since.",
    }

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.objects = settings["limit"] - 1
        self.held = [0] * threads
        self.gave = [False] * threads
        self.takes = 0  # up to the number of objects
        # No object was free if as many were held as ever before, for no others had been made then.
        # A thread sees that until it gives something back itself, after which it sees its own
        # object come or go.
        self.most_held = 0
        self.none_free = [True] * threads

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
            self.none_free[thread] = False
        elif operation != "read":
            raise unknown("object_pool", operation)
        self.most_held = max(self.most_held, sum(self.held))
        if sum(self.held) == self.most_held:
            self.none_free = [True] * len(self.held)
        return answer(status, self.held[thread])

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int = 0, result: Answer
    ) -> bool:
        if result == answer(EXHAUSTED, self.held[thread]):
            # The free list was empty when it was looked at, and later, in the same call, no object
            # was new any more: the two need not have been true at once.
            if self.takes == self.objects:
                return self.none_free[thread]
            return self.scarce  # a chunk of new objects could not be allocated
        return self.step(operation, arguments, thread=thread) == result

    def canonical(self) -> object:
        return tuple(self.held), tuple(self.gave), self.takes, self.most_held, tuple(self.none_free)
