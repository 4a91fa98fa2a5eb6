"""The cursor heap, one call after the other: the slowest position is looked for among all."""

from __future__ import annotations

from pulsar_ml.specs import Answer, answer
from pulsar_ml.specs.cursor_world import DONE, UNKNOWN, UNTRACKED, CursorModel


class Model(CursorModel):
    """The operations of the subject ``cursor_heap``."""

    structure = "cursor_heap"
    operations = CursorModel.operations | {"update"}

    def update(self, thread: int, number: int, value: int) -> Answer:
        """The slowest value before and after; a cursor that is not tracked is not touched."""
        cursor = self.cursors.get(self.name(thread, number))
        if cursor is None or cursor.value == UNTRACKED:
            return answer(UNKNOWN)
        previous = self.slowest_value()
        self.changes += 1
        cursor.value = self.place(value)
        return answer(DONE, previous, self.slowest_value())
