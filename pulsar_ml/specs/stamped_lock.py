"""Write sections that change a number, and stamps that outlive none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pulsar_ml.specs import Answer, answer, unknown

DONE, CHANGED = range(2)


class Model:
    """The guarded number, the count of write sections, and the section each thread's stamp is of."""

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.value = 0
        self.sections = 0
        self.stamps: list[int | None] = [None] * threads

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        if operation == "write":
            self.value += arguments[0]
            self.sections += 1
            return answer(DONE, self.value, self.sections)
        if operation in ("read_shared", "read_optimistic"):
            return answer(DONE, self.value)
        if operation == "stamp_keep":
            self.stamps[thread] = self.sections
            return answer(DONE, self.value)
        if operation == "stamp_check":
            if self.stamps[thread] != self.sections:
                return answer(CHANGED)
            return answer(DONE, self.value)
        if operation == "read_crowd":
            return answer(DONE, 1)  # shared holders do not invalidate a stamp
        raise unknown("stamped_lock", operation)
