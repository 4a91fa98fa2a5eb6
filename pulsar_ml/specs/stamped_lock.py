"""Write sections that change a number, and stamps that outlive none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, unknown

DONE, CHANGED = range(2)


class Model:
    """The guarded number after each write section, and the section each thread's stamp is of."""

    fresh = False
    weak: ClassVar[Mapping[str, str]] = {
        "read_optimistic": "CHANGED: the caller has not seen some write section, which may be "
        "over; shared holders are no reason. A number is that of one write section, not earlier "
        "than the last one that the caller wrote or read; it may be old if nothing else orders "
        "the threads.",
        "stamp_keep": "As read_optimistic.",
        "stamp_check": "CHANGED: a write section ended after the stamp was taken. A stamp may "
        "still be accepted after a section that the caller has not seen, as by read_optimistic.",
    }

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.values = [0]
        self.known = [0] * threads  # sections that the thread has seen for sure
        self.stamps: list[int | None] = [None] * threads

    @property
    def sections(self) -> int:
        return len(self.values) - 1

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        if operation == "write":
            self.values.append(self.values[-1] + arguments[0])
        elif operation == "stamp_keep":
            self.stamps[thread] = self.sections
        elif operation == "stamp_check":
            if self.stamps[thread] != self.sections:
                return answer(CHANGED)
        elif operation == "read_crowd":
            return answer(DONE, 1)  # shared holders do not invalidate a stamp
        elif operation not in ("read_shared", "read_optimistic"):
            raise unknown("stamped_lock", operation)
        self.known[thread] = self.sections
        return answer(DONE, self.values[-1], self.sections if operation == "write" else 0)

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int = 0, result: Answer
    ) -> bool:
        value = result[1][0]
        stamp = self.stamps[thread]
        if result == answer(CHANGED):
            # A section counts from the moment at which its writer has the lock. One that the caller
            # read or wrote before is over: its number comes with the lock word behind it.
            unseen = self.known[thread] < self.sections
            if operation == "stamp_keep":
                self.stamps[thread] = None
            return unseen if operation != "stamp_check" else stamp is None or stamp < self.sections
        if result != answer(DONE, value) or value not in self.values:
            return False
        section = self.values.index(value)
        if operation == "stamp_check" and section != stamp:
            return False
        if section < (self.sections if self.fresh else self.known[thread]):
            return False
        self.known[thread] = section
        if operation == "stamp_keep":
            self.stamps[thread] = section
        return True

    def canonical(self) -> object:
        return tuple(self.values), tuple(self.known), tuple(self.stamps)
