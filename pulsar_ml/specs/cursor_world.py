"""What the models of both cursor containers share: registered cursors by name, the latest place of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pulsar_ml.specs import Answer, answer, unknown

DONE, UNKNOWN = 0, 1
OWN = 3  # the first numbers name cursors of the calling thread's own
UNTRACKED = -1

# Whose cursor it is (-1: everybody's) and its number.
Name = tuple[int, int]


@dataclass(slots=True)
class Cursor:
    """A registered cursor; its value is -1 while it has no position."""

    value: int
    durable: bool


class CursorModel:
    """The operations that both containers have. Iteration is in the order of registration."""

    structure = ""
    operations: frozenset[str] = frozenset(
        {"add", "remove", "slowest", "size", "version", "iterate", "update_stale", "inspect"}
    )

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.named = settings["cursors"]
        self.values = settings["values"]
        self.cursors: dict[Name, Cursor] = {}
        self.changes = 0
        self.left_at = 0

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        if operation not in self.operations:
            raise unknown(self.structure, operation)
        call: Callable[..., Answer] = getattr(self, operation)
        return call(thread, *arguments)

    def name(self, thread: int, number: int) -> Name:
        number %= self.named
        return (thread if number < OWN else -1, number)

    def place(self, value: int) -> int:
        return UNTRACKED if value == UNTRACKED else value % self.values

    def tracked(self) -> list[int]:
        return sorted(cursor.value for cursor in self.cursors.values() if cursor.value != UNTRACKED)

    def slowest_value(self) -> int:
        return next(iter(self.tracked()), UNTRACKED)

    def add(self, thread: int, number: int, value: int, durable: int) -> Answer:
        self.changes += 1
        self.cursors[self.name(thread, number)] = Cursor(self.place(value), bool(durable))
        return answer(DONE)

    def remove(self, thread: int, number: int, now: int = 0) -> Answer:
        if self.cursors.pop(self.name(thread, number), None) is None:
            return answer(UNKNOWN)
        self.changes += 1
        if not self.cursors:
            self.left_at = now
        return answer(DONE)

    def slowest(self, thread: int) -> Answer:
        return answer(DONE, self.slowest_value())

    def size(self, thread: int) -> Answer:
        return answer(DONE, len(self.cursors), any(cursor.durable for cursor in self.cursors.values()))

    def version(self, thread: int) -> Answer:
        return answer(DONE, self.changes)

    def iterate(self, thread: int) -> Answer:
        return answer(DONE, len(self.cursors))

    def update_stale(self, thread: int, value: int) -> Answer:
        return answer(UNKNOWN)

    def inspect(self, thread: int) -> Answer:
        return answer(DONE)
