"""The cursor heap: the slowest position is looked for among all."""

from __future__ import annotations

from pulsar_ml.specs import Answer, answer
from pulsar_ml.specs.cursor_moments import UNTRACKED
from pulsar_ml.specs.cursor_world import DONE, UNKNOWN, CursorModel, least


class Model(CursorModel):
    """The operations of the subject ``cursor_heap``."""

    structure = "cursor_heap"

    def update(self, thread: int, number: int, value: int) -> Answer:
        """The slowest value before and after; a cursor that is not tracked is not touched."""
        tag = self.tag_of(self.name(thread, number))
        return self.updated(tag, value, self.changes + 1)

    def updated(self, tag: int, value: int, version: int) -> Answer:
        cursor = self.find(tag)
        if cursor is None or cursor.value == UNTRACKED:
            return answer(UNKNOWN, 0, 0, 0, tag)
        others = [other.value for other in self.cursors if other.tag != tag]
        previous = least([*others, cursor.value])
        return answer(DONE, previous, least([*others, self.place(value)]), version, tag)

    def may_update(self, thread: int, result: Answer, number: int, value: int) -> bool:
        version, tag = result[1][2:]
        if not self.right_tag(self.name(thread, number), tag) or result != self.updated(
            tag, value, version
        ):
            return False
        if result[0] == UNKNOWN:
            return self.was_inside(thread)
        cursor = self.find(tag)
        if cursor is None or not self.comes_next(version):
            return False
        self.put(cursor._replace(value=self.place(value)), cursor)
        self.count(version)
        return self.happened(thread)
