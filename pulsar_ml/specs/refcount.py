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
        "publish": "REFUSED: the object had an owner that had not published it yet, or was still "
        "tearing it down. The caller's own teardown, once it is over, is no reason.",
        "retain": "REFUSED: the count was zero at one moment, before the first publication or "
        "between two; never before an incarnation of which the caller had a reference.",
    }

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.held = [[0] * threads for _ in range(settings["objects"])]
        self.incarnation = [0] * settings["objects"]
        self.known = [
            [0] * settings["objects"] for _ in range(threads)
        ]  # the latest incarnation a thread held
        # The threads that published or released each object last, as long as that call may be under
        # way; and the last releasing thread.
        self.starting: dict[int, int] = {}
        self.ending: dict[int, int] = {}
        self.ended: dict[int, int] = {}

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        self.returned(thread)
        if operation == "retain_full":
            return answer(REFUSED)
        which = arguments[0] % len(self.held)
        held = self.held[which]
        alive = sum(held) > 0
        if operation == "publish":
            if alive:
                return answer(REFUSED)
            self.incarnation[which] += 1
            self.known[thread][which] = self.incarnation[which]
            self.starting[which] = thread
            self.ending.pop(which, None)
            self.ended.pop(which, None)
            held[thread] = 1
            return answer(DONE, self.incarnation[which], 1)
        if operation == "retain":
            if not alive:
                return answer(REFUSED)
            held[thread] += 1
            self.known[thread][which] = self.incarnation[which]
            self.starting.pop(which, None)
            return answer(DONE, self.incarnation[which], held[thread])
        if operation == "release_too_often":
            return answer(REFUSED)
        if not held[thread]:
            return answer(NOT_HELD)
        if operation == "read":
            return answer(DONE, self.incarnation[which], held[thread])
        if operation == "release":
            held[thread] -= min(arguments[1], held[thread])
            if not sum(held):
                self.ending[which] = self.ended[which] = thread
            return answer(DONE if sum(held) else LAST, 0, held[thread])
        raise unknown("refcount", operation)

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int = 0, result: Answer
    ) -> bool:
        self.returned(thread)
        if result == answer(REFUSED) and self.may_refuse(
            operation, arguments[0] % len(self.held), thread
        ):
            return True
        return self.step(operation, arguments, thread=thread) == result

    def may_refuse(self, operation: str, which: int, thread: int) -> bool:
        """True if a publish or retain may be refused though the counts allow it.

        Between the two steps of publish (to own the object, to set its count) a retain is refused
        and so is another publish; between the two of the last release (the count, the ownership) a
        publish is. No single moment of the owner's call fits both. Without sequential consistency
        either may see the past.
        """
        if operation == "publish":
            if self.fresh:
                return which in self.ending
            return self.incarnation[which] > 0 and self.ended.get(which) != thread
        if self.fresh:
            return which in self.starting and not self.held[which][thread]
        return self.known[thread][which] < self.incarnation[which]

    def returned(self, thread: int) -> None:
        """The thread's call before this one is over."""
        for under_way in (self.starting, self.ending):
            for which in [which for which, owner in under_way.items() if owner == thread]:
                del under_way[which]

    def canonical(self) -> object:
        return (
            tuple(map(tuple, self.held)), tuple(self.incarnation), tuple(map(tuple, self.known)),
            *(frozenset(owners.items()) for owners in (self.starting, self.ending, self.ended)),
        )  # fmt: skip
