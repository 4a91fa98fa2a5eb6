"""Counts of expected reads, shared by a thread that holds a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, unknown
from pulsar_ml.specs.hands import Hands

DONE, EXHAUSTED, NOT_HELD, HANDS_FULL = range(4)
MOST = 2**31 - 1


@dataclass(eq=False, slots=True)
class Count:
    """A number, with those it had before, and what threads know of them."""

    values: list[int]  # in the order of its changes
    known: dict[int, int] = field(default_factory=dict)  # by thread: the latest index it knows
    sent: dict[int, int] = field(default_factory=dict)  # by mailbox: what its giver knew

    @property
    def expected(self) -> int:
        return self.values[-1]

    def change(self, thread: int, by: int) -> None:
        """A read-modify-write: it follows the latest change."""
        if by:
            self.values.append(self.expected + by)
        self.know(thread, len(self.values) - 1)

    def know(self, thread: int, index: int) -> None:
        self.known[thread] = max(index, self.known.get(thread, 0))

    def may_show(self, thread: int, value: int) -> bool:
        """True if a relaxed load of the thread may find ``value``; then it did."""
        for index in range(self.known.get(thread, 0), len(self.values)):
            if self.values[index] == value:
                self.known[thread] = index
                return True
        return False


class Model:
    """References to counts; a count lives as long as one of them."""

    fresh = False
    scarce = False
    weak: ClassVar[Mapping[str, str]] = {
        "new": "EXHAUSTED: every object was taken at least once, and none was free at one moment.",
        "value": "A number that the count had, not before the latest change that the caller made, "
        "saw or got to know with the reference.",
        "mark_read": "Nothing was taken: value could answer 0. One was taken: the number "
        "was above 0 at one moment of the call.",
    }

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.counts = settings["limit"] - 1
        self.below_zero = bool(settings["below_zero"])
        self.near_limit = bool(settings.get("near_limit"))
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
            held.append(Count([MOST - arguments[0] if self.near_limit else arguments[0]]))
            self.takes = min(self.takes + 1, self.counts)
            return DONE, 0
        if operation == "pass_on":
            return DONE, self.pass_on(thread, arguments[0])
        if not held:
            return NOT_HELD, 0
        count = hands.at(thread, arguments[0])
        if operation == "retain":
            if hands.full(thread):
                return HANDS_FULL, 0
            held.append(count)
        elif operation == "increment":
            count.change(thread, int(count.expected < MOST))
        elif operation == "mark_read":
            took = self.below_zero or count.expected > 0
            count.change(thread, -took)
            return DONE, took
        elif operation == "value":
            count.change(thread, 0)
            return DONE, count.expected
        elif operation == "release":
            hands.pick(thread, arguments[0])
        else:
            raise unknown("read_count", operation)
        return DONE, 0

    def pass_on(self, thread: int, mailbox: int) -> bool:
        """Passes a reference on, and with it what its giver knows of the count."""
        held, theirs = self.hands.threads[thread], self.hands.mailboxes[mailbox]
        known = theirs.sent.pop(mailbox) if theirs is not None else 0
        if held:
            held[-1].sent[mailbox] = held[-1].known.get(thread, 0)
        took = self.hands.exchange(thread, mailbox)
        if took:
            held[-1].know(thread, known)
        return took

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int = 0, result: Answer
    ) -> bool:
        held = self.hands.threads[thread]
        if operation == "new" and result == answer(EXHAUSTED, len(held)):
            # Nothing changed, and every refused object would have been tried.
            return self.takes == self.counts or (self.scarce and not self.hands.full(thread))
        if operation in ("value", "mark_read") and held and not self.fresh:
            status, (hands, word, *rest) = result
            if (status, hands, *rest) != (DONE, len(held), 0, 0):
                return False
            count = self.hands.at(thread, arguments[0])
            if operation == "value":
                return count.may_show(thread, word)
            if not word and not self.below_zero:
                return count.may_show(thread, 0)
        return self.step(operation, arguments, thread=thread) == result
