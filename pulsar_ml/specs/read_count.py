"""Counts of expected reads, shared by a thread that holds a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, unknown
from pulsar_ml.specs.hands import Hands

DONE, EXHAUSTED, NOT_HELD, HANDS_FULL = range(4)


@dataclass(eq=False, slots=True)
class Count:
    expected: int


class Model:
    """References to counts; a count lives as long as one of them."""

    scarce = False
    weak: ClassVar[Mapping[str, str]] = {
        "new": "EXHAUSTED: every object was taken at least once, and none was free at one moment.",
    }

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.counts = settings["limit"] - 1
        self.below_zero = bool(settings["below_zero"])
        self.takes = 0  # up to the number of objects
        self.hands: Hands[Count] = Hands(threads)

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        status, word = self.apply(operation, arguments, thread)
        return answer(status, len(self.hands.threads[thread]), word)

    def apply(self, operation: str, arguments: Sequence[int], thread: int) -> tuple[int, int]:
        hands = self.hands
        held = hands.threads[thread]
        if operation == "new":
            if hands.full(thread):
                return HANDS_FULL, 0
            if len(set(hands.everywhere())) == self.counts:
                return EXHAUSTED, 0
            held.append(Count(arguments[0]))
            self.takes = min(self.takes + 1, self.counts)
            return DONE, 0
        if operation == "pass_on":
            return DONE, hands.exchange(thread, arguments[0])
        if not held:
            return NOT_HELD, 0
        count = hands.at(thread, arguments[0])
        if operation == "retain":
            if hands.full(thread):
                return HANDS_FULL, 0
            held.append(count)
        elif operation == "increment":
            count.expected += 1
        elif operation == "mark_read":
            took = self.below_zero or count.expected > 0
            count.expected -= took
            return DONE, took
        elif operation == "value":
            return DONE, count.expected
        elif operation == "release":
            hands.pick(thread, arguments[0])
        else:
            raise unknown("read_count", operation)
        return DONE, 0

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int = 0, result: Answer
    ) -> bool:
        if result == answer(EXHAUSTED, len(self.hands.threads[thread])):
            # Nothing changed, and every refused object would have been tried.
            if self.takes == self.counts:
                return True
            return self.scarce and operation == "new" and not self.hands.full(thread)
        return self.step(operation, arguments, thread=thread) == result
