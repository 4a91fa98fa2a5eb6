"""A number of equal objects, each with one holder or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pulsar_ml.specs import Answer, answer, unknown

DONE, EXHAUSTED, NOT_HELD = range(3)


class Model:
    """How many objects each thread holds, and whether it ever gave one back."""

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.objects = settings["limit"] - 1
        self.held = [0] * threads
        self.gave = [False] * threads

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        status = DONE
        if operation == "take":
            if sum(self.held) == self.objects:
                status = EXHAUSTED
            else:
                self.held[thread] += 1
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
