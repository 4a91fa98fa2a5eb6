"""The active cursors, one call after the other: a rank is counted, nothing is put off."""

from __future__ import annotations

from collections.abc import Mapping

from pulsar_ml.specs import Answer, answer
from pulsar_ml.specs.cursor_world import DONE, UNKNOWN, UNTRACKED, CursorModel


class Model(CursorModel):
    """The operations of the subject ``active_cursors``."""

    structure = "active_cursors"
    operations = CursorModel.operations | {"update", "rank", "should_cache", "churn"}

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        super().__init__(settings, threads)
        self.grace = settings["grace"]

    def update(self, thread: int, number: int, value: int) -> Answer:
        cursor = self.cursors.get(self.name(thread, number))
        if cursor is None:
            return answer(UNKNOWN)
        self.changes += 1
        cursor.value = self.place(value)
        return answer(DONE)

    def rank(self, thread: int, number: int) -> Answer:
        cursor = self.cursors.get(self.name(thread, number))
        if cursor is None or cursor.value == UNTRACKED:
            return answer(DONE, 0)
        return answer(DONE, sum(value <= cursor.value for value in self.tracked()))

    def should_cache(self, thread: int, now: int) -> Answer:
        in_grace = self.grace > 0 and now - self.left_at < self.grace
        return answer(DONE, bool(self.cursors) or in_grace)

    def churn(self, thread: int, count: int, value: int, now: int) -> Answer:
        """So many cursors come and go, each before the next."""
        self.changes += 2 * count
        if not self.cursors:
            self.left_at = now
        return answer(DONE)
