"""Receive buffers, entries cut from them, and the size of a connection's next buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, unknown
from pulsar_ml.specs.hands import Hands

DONE, NO_MEMORY, NOT_HELD, HANDS_FULL, LAST, TAKEN, EMPTY, NO_ROOM = range(8)

SLOTS = 4
STEP = 16  # bytes between the small sizes
FIRST_CAPACITY = 64  # bytes of the buffer that each thread has from the start

# The sizes that buffers may have, as Netty has them.
SIZES = [*range(16, 512, 16), *(2**power for power in range(9, 31))]


class Guess:
    """The size of the next buffer: up by four when a read filled it, down by one after two small
    ones.
    """

    def __init__(self, minimum: int, initial: int, maximum: int) -> None:
        self.minimum, self.maximum = minimum, maximum
        self.allowed = [size for size in SIZES if minimum <= size <= maximum]
        self.size = next(size for size in SIZES if size >= initial)
        self.small_before = False

    def next(self) -> int:
        return int(min(max(self.size, self.minimum), self.maximum))

    def record(self, read: int) -> None:
        index = SIZES.index(self.size)
        if read <= SIZES[max(0, index - 1)]:
            lower = SIZES[max(0, index - 1)]
            if self.small_before and lower >= min(self.allowed, default=self.size):
                self.size = lower
            self.small_before = not self.small_before
        elif read >= self.next():
            top = max(self.allowed, default=self.size)
            self.size = max(self.size, min(SIZES[min(index + 4, len(SIZES) - 1)], top))
            self.small_before = False


@dataclass(eq=False, slots=True)
class Entry:
    is_slice: bool


class Model:
    """The entries that threads hold and those in the slots. A thread cuts entries while its buffer
    has room.
    """

    fresh = False
    scarce = False
    allocates = frozenset({"receive"})
    weak: ClassVar[Mapping[str, str]] = {
        "cut": "NO_MEMORY: every object was taken at least once, and none was free at one moment.",
        "cache": "TAKEN: an entry was in the slot at one moment, not before the caller's own last "
        "removal from it: the suite's exchange may fail on an old value.",
        "copy": "NO_MEMORY as for cut.",
        "copy_bytes": "NO_MEMORY as for cut.",
    }

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.entries = settings["limit"] - 1
        self.takes = 0  # up to the number of objects
        self.hands: Hands[Entry] = Hands(threads)
        self.room = [FIRST_CAPACITY] * threads  # bytes left in the thread's buffer
        self.size_shift = settings["size_shift"]
        least = settings["least"]
        first = least + STEP * settings["first_above"]
        most = first + STEP * settings["most_above"]
        sizes = [min(size << self.size_shift, SIZES[-1]) for size in (least, first, most)]
        self.guesses = [Guess(*sizes) for _ in range(threads)]
        self.slots: list[Entry | None] = [None] * SLOTS
        self.filled = [False] * SLOTS  # ever
        self.emptied = [-1] * SLOTS  # the thread that took out of each last

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        status, word = self.apply(operation, arguments, thread)
        return answer(status, len(self.hands.threads[thread]), word)

    def apply(self, operation: str, arguments: Sequence[int], thread: int) -> tuple[int, int]:
        if operation == "receive":
            self.room[thread] = arguments[0]
            return DONE, 0
        if operation == "guess":
            read = (STEP * arguments[0] << self.size_shift) + arguments[1]
            self.guesses[thread].record(max(read, 0))
            return DONE, self.guesses[thread].next()
        if operation == "pass_on":
            return DONE, self.hands.exchange(thread, arguments[0])
        if operation in ("cut", "uncache") and self.hands.full(thread):
            return HANDS_FULL, 0
        if operation == "cut":
            return self.cut(thread, arguments[0]), 0
        if operation == "uncache":
            return self.uncache(thread, arguments[0]), 0
        if not self.hands.threads[thread]:
            return NOT_HELD, 0
        return self.with_entry(operation, arguments, thread)

    def cut(self, thread: int, length: int) -> int:
        if self.room[thread] < length:
            return NO_ROOM
        status = self.take_new(thread, is_slice=True)
        if status == DONE:
            self.room[thread] -= length
        return status

    def uncache(self, thread: int, slot: int) -> int:
        entry, self.slots[slot] = self.slots[slot], None
        if entry is None:
            return EMPTY
        self.hands.threads[thread].append(entry)
        self.emptied[slot] = thread
        return DONE

    def with_entry(self, operation: str, arguments: Sequence[int], thread: int) -> tuple[int, int]:
        entry = self.hands.at(thread, arguments[0])
        if operation in ("copy", "copy_bytes"):
            if self.hands.full(thread):
                return HANDS_FULL, 0
            return self.take_new(thread, is_slice=entry.is_slice and operation == "copy"), 0
        if operation == "cache":
            if self.slots[arguments[1]] is not None:
                return TAKEN, 0
            self.slots[arguments[1]] = self.hands.pick(thread, arguments[0])
            self.filled[arguments[1]] = True
            return DONE, 0
        if operation == "read":
            return DONE, entry.is_slice
        if operation == "release":
            self.hands.pick(thread, arguments[0])
            return (DONE if entry in self.everywhere() else LAST), 0
        raise unknown("receive_buffer", operation)

    def everywhere(self) -> list[Entry]:
        return [*self.hands.everywhere(), *(entry for entry in self.slots if entry is not None)]

    def take_new(self, thread: int, *, is_slice: bool) -> int:
        """Puts a new entry into the thread's hands, if there is an object left for it."""
        if len(set(self.everywhere())) == self.entries:
            return NO_MEMORY
        self.hands.threads[thread].append(Entry(is_slice))
        self.takes = min(self.takes + 1, self.entries)
        return DONE

    def may_lack_memory(self, operation: str, arguments: Sequence[int], thread: int) -> bool:
        """True if the call allocates here; without memory it changes nothing."""
        if operation == "receive":
            return True
        if self.hands.full(thread):
            return False
        if operation == "cut":
            return self.room[thread] >= arguments[0]
        return operation in ("copy", "copy_bytes") and bool(self.hands.threads[thread])

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int = 0, result: Answer
    ) -> bool:
        held = self.hands.threads[thread]
        if self.scarce and result == answer(NO_MEMORY, len(held)):
            return self.may_lack_memory(operation, arguments, thread)
        if operation == "cache" and result == answer(TAKEN, len(held)) and held:
            slot = arguments[1]
            stale = self.filled[slot] and self.emptied[slot] != thread and not self.fresh
            return self.slots[slot] is not None or stale
        if result == answer(NO_MEMORY, len(held)):
            # Nothing changed, and every refused object would have been tried.
            return self.takes == self.entries
        return self.step(operation, arguments, thread=thread) == result
