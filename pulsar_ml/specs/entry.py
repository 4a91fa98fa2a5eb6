"""Entries whose copies share their bytes and their expected reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, unknown
from pulsar_ml.specs.hands import Hands

DONE, NO_MEMORY, NOT_HELD, HANDS_FULL, LAST = range(5)


@dataclass(eq=False, slots=True)
class Reads:
    """Expected reads, shared by an entry and its copies."""

    expected: int
    at_start: bool = False  # of the entry that all threads have from the start


@dataclass(eq=False, slots=True)
class Entry:
    reads: Reads | None
    counts: bool
    parsed: bool = False
    unsure: bool = False  # of another thread's parsed value, which a copy may have missed
    parser: int = -1  # the thread that parsed it
    at_start: bool = False  # all threads had it from the start, with no order between their calls


class Model:
    """References to entries. The last one that goes marks a read if the entry counts."""

    scarce = False
    allocates = frozenset({"parse"})
    weak: ClassVar[Mapping[str, str]] = {
        "new": "NO_MEMORY: every object was taken at least once, by a call that succeeded or by "
        "one that is under way in another thread, and none was free at one moment.",
        "copy": "NO_MEMORY as for new. Of an entry that all threads have from the start, and that "
        "another thread parsed, the copy may have the parsed value or not.",
        "parse": "1 or 0 for a copy that may have the parsed value.",
        "expected": "1 of an entry that all threads have from the start, or of its copies: so it was "
        "before a read that another thread marked.",
        "release": "DONE instead of LAST: another thread held a reference at that moment, through "
        "a stale handle.",
        "release_all": "DONE instead of LAST, as for release.",
    }

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.below_zero = bool(settings["counts_of_4"])
        self.entries = settings["limit"] - 1
        self.takes = 0  # up to the number of objects
        self.others = threads - 1  # each may hold an object for the moment that its call takes
        self.hands: Hands[Entry] = Hands(threads)
        self.released = [False] * threads
        self.trying: frozenset[int] = frozenset()  # threads whose latest call tried a stale handle
        if settings["shared"]:
            first = Entry(Reads(1, at_start=True), counts=True, at_start=True)
            self.takes = 1
            for held in self.hands.threads:
                held.append(first)

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        self.trying -= {thread}
        status, word = self.apply(operation, arguments, thread)
        return answer(status, len(self.hands.threads[thread]), word)

    def apply(self, operation: str, arguments: Sequence[int], thread: int) -> tuple[int, int]:
        hands = self.hands
        held = hands.threads[thread]
        if operation == "new":
            if hands.full(thread):
                return HANDS_FULL, 0
            return self.new_entry(
                thread, Reads(arguments[1]) if arguments[1] else None, arguments[2]
            )
        if operation == "pass_on":
            return DONE, hands.exchange(thread, arguments[0])
        if operation == "retain_stale":
            if not self.released[thread]:
                return NOT_HELD, 0
            self.trying |= {thread}
            return DONE, 0
        if not held:
            return NOT_HELD, 0
        entry = hands.at(thread, arguments[0])
        if operation in ("copy", "retain"):
            if hands.full(thread):
                return HANDS_FULL, 0
            if operation == "copy":
                return self.new_entry(thread, entry.reads, arguments[1], of=entry)
            held.append(entry)
        elif operation == "expected":
            return DONE, entry.reads is not None and entry.reads.expected >= 1
        elif operation == "parse":
            first, entry.parsed, entry.unsure = not entry.parsed, True, False
            entry.parser = thread if first else entry.parser
            return DONE, first
        elif operation == "release":
            return self.gone(thread, hands.pick(thread, arguments[0])), 0
        elif operation == "release_all":
            hands.pick(thread, arguments[0])
            for index in range(len(held) - 1, -1, -1):
                if held[index] is entry:
                    hands.pick(thread, index)
            return self.gone(thread, entry), 0
        elif operation not in ("read", "release_too_often", "has_callback"):
            raise unknown("entry", operation)
        return DONE, 0

    def new_entry(
        self, thread: int, reads: Reads | None, counts: int, *, of: Entry | None = None
    ) -> tuple[int, int]:
        """Puts a new entry into the thread's hands, if there is an object left for it."""
        if len(set(self.hands.everywhere())) == self.entries:
            return NO_MEMORY, 0
        fresh = Entry(reads, bool(counts))
        if of is not None:
            fresh.parsed = of.parsed
            fresh.unsure = of.unsure or (of.at_start and of.parsed and of.parser != thread)
        self.hands.threads[thread].append(fresh)
        self.takes = min(self.takes + 1, self.entries)
        return DONE, 0

    def without_memory(
        self, operation: str, arguments: Sequence[int], thread: int, result: Answer
    ) -> bool:
        """True if the call may get no memory: nothing changed, unless a counting copy was made.

        Such a copy goes again and marks its read, as the second word says.
        """
        marked = result[1][1]
        counts = arguments[-1] if operation in ("new", "copy") else 0
        if result != answer(NO_MEMORY, len(self.hands.threads[thread]), marked):
            return False
        if operation == "parse":
            entry = self.hands.at(thread, arguments[0])
            unordered = entry.unsure or (entry.at_start and entry.parser != thread)
            return not marked and (not entry.parsed or unordered)
        if marked not in (0, counts) or self.hands.full(thread):
            return False
        if operation == "copy" and marked:
            self.mark_read(self.hands.at(thread, arguments[0]).reads)
        return True

    def gone(self, thread: int, entry: Entry) -> int:
        """The status of a release that took away what the thread's hands no longer have."""
        self.released[thread] = True
        if entry in self.hands.everywhere():
            return DONE
        if entry.counts:
            self.mark_read(entry.reads)
        return LAST

    def mark_read(self, reads: Reads | None) -> None:
        """One read was delivered; one that was not expected takes nothing."""
        if reads is not None and (self.below_zero or reads.expected > 0):
            reads.expected -= 1

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int = 0, result: Answer
    ) -> bool:
        if self.scarce and result[0] == NO_MEMORY:
            return self.without_memory(operation, arguments, thread, result)
        if result == answer(NO_MEMORY, len(self.hands.threads[thread])):
            # Nothing changed, and every refused object would have been tried. It cannot be exact:
            # an entry takes an object each of up to three pools, one after the other, and gives
            # back what it has when the next one is empty; and a pool looks at its free list and its
            # limit at two moments (see object_pool). Meanwhile each of the others holds one object
            # more than its calls say, at most.
            return self.takes + self.others >= self.entries
        if operation == "parse" and self.hands.threads[thread]:
            entry = self.hands.at(thread, arguments[0])
            if entry.unsure:
                entry.parsed = result[1][1] == 0
        expected = self.step(operation, arguments, thread=thread)
        if (
            operation.startswith("release")
            and expected == answer(LAST, *expected[1][:2])
            and self.trying
        ):
            # Such a call is only known to have run beside this one: it is put just before.
            return result in (expected, answer(DONE, *expected[1][:2]))
        if operation == "expected" and self.hands.threads[thread]:
            reads = self.hands.at(thread, arguments[0]).reads
            if reads is not None and reads.at_start:
                return result in (expected, answer(DONE, expected[1][0], 1))
        return expected == result
