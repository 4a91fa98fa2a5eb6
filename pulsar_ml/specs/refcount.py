"""Counts of objects that die and are published anew, one thread at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, unknown

DONE, REFUSED, NOT_HELD, LAST = range(4)


class Model:
    """References by object and thread; an object whose references are all zero is dead."""

    fresh = False
    weak: ClassVar[Mapping[str, str]] = {
        "publish": "REFUSED says that the object had an owner who may not have published it yet, or who "
        "may still be tearing it down.",
        "retain": "REFUSED is about a zero that may be over, unless the caller knows of the reference "
        "that ended it.",
    }

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.held = [[0] * threads for _ in range(settings["objects"])]
        self.incarnation = [0] * settings["objects"]

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        if operation == "retain_full":
            return answer(REFUSED)
        which = arguments[0] % len(self.held)
        held = self.held[which]
        alive = sum(held) > 0
        if operation == "publish":
            if alive:
                return answer(REFUSED)
            self.incarnation[which] += 1
            held[thread] = 1
            return answer(DONE, self.incarnation[which], 1)
        if operation == "retain":
            if not alive:
                return answer(REFUSED)
            held[thread] += 1
            return answer(DONE, self.incarnation[which], held[thread])
        if operation == "release_too_often":
            return answer(REFUSED)
        if not held[thread]:
            return answer(NOT_HELD)
        if operation == "read":
            return answer(DONE, self.incarnation[which], held[thread])
        if operation == "release":
            held[thread] -= min(arguments[1], held[thread])
            return answer(DONE if sum(held) else LAST, 0, held[thread])
        raise unknown("refcount", operation)

    def concurrent(self, operation: str, arguments: Sequence[int], *, thread: int = 0, given: Answer) -> bool:
        if given == answer(REFUSED):
            held = self.held[arguments[0] % len(self.held)]
            if operation == "publish" or (not self.fresh and not held[thread]):
                return True
        return self.step(operation, arguments, thread=thread) == given

    def canonical(self) -> object:
        return tuple(map(tuple, self.held)), tuple(self.incarnation)
