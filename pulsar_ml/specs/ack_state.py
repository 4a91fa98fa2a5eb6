"""Acknowledgements of a cursor, one call after the other: a set of indexes, and what derives from
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, unknown
from pulsar_ml.specs.ack_bytes import damaged, decoded, encoded

NEW, KNOWN, NO_MEMORY = 0, 1, 3
DAMAGED = 1  # of bytes that do not come back

REPLAY = 1
KINDS = 3

LEDGERS, ENTRIES, BATCH = 3, 6, 3
SPREAD = 701  # places of entries that do not touch

At = tuple[int, int]


def places_at_once(ledger: int, entry: int, pattern: int) -> list[At]:
    """The entries that one call acknowledges: at a distance, up to the end of the log."""
    first, entries, step = ledger * ENTRIES + entry, 1 + pattern % 4, 1 + pattern // 4
    log = range(first, LEDGERS * ENTRIES, step)[:entries]
    return [(1 + number // ENTRIES, number % ENTRIES) for number in log]


class Past:
    """Values of a cell that is written under a lock and read without: those that a thread may still
    see.
    """

    def __init__(self, value: object, threads: int) -> None:
        self.values: tuple[object, ...] = (value,)
        self.known = (0,) * threads  # the place of the oldest value that the thread may read

    def write(self, value: object) -> None:
        if value != self.values[-1]:
            self.values += (value,)

    def know(self, thread: int) -> None:
        """The thread had the lock: it sees nothing older any more."""
        self.sees(thread, len(self.values) - 1)

    def sees(self, thread: int, place: int) -> None:
        known = (*self.known[:thread], place, *self.known[thread + 1 :])
        if oldest := min(known):
            self.values = self.values[oldest:]
            known = tuple([place - oldest for place in known])
        self.known = known

    def may_be(self, value: object, thread: int) -> bool:
        return value in self.values[self.known[thread] :]

    def read(self, value: object, thread: int, *, fresh: bool = False) -> bool:
        """True if the thread may read this value now; then it reads nothing older from now on."""
        if fresh:
            self.know(thread)
        if not self.may_be(value, thread):
            return False
        self.sees(thread, self.values.index(value, self.known[thread]))
        return True

    def canonical(self) -> object:
        return self.values, self.known


RESUMED = (
    "The status is linearizable. Each kind that is resumed was paused and is answered "
    "once, and the state fitted at one moment after the change. I99 says that some call "
    "resumes it."
)


def ranges_apart(entries: int, step: int, up_to: int) -> tuple[int, int]:
    """The ranges of so many entries that do not touch, and those above one of the places."""
    places = [i * step % SPREAD for i in range(entries)]
    return entries, sum(place > up_to for place in places)


class Model:
    """The operations of the subject ``ack_state``.

    Beside the others a change has two moments: its write section, and the look at dispatchers that
    wait.
    """

    fresh = False
    scarce = False
    foresees = True
    allocates = frozenset({"store", "apart", "restore"})
    weak: ClassVar[Mapping[str, str]] = {
        "ack_entry": RESUMED,
        **dict.fromkeys(
            ("ack_index", "ack_up_to", "end_ledger", "set_metadata", "set_pauses"), "As `ack_entry`."
        ),
        "ack_entries": "As `ack_entry`; the counts are linearizable with the status.",
        "dispatch": "Yes: the state fitted, or pauses were off, at one moment: of the call, or, if "
        "nothing else orders the threads, an earlier one after the thread's own last call "
        "with the lock. No: at such a moment it did not fit. Replays are always allowed.",
        "mark": "A position that was the mark, not before the last one that the thread knows of.",
        "size": "A size that the state had, not before the last one that the thread knows of.",
    }  # fmt: skip
    spans = frozenset(weak) - {"mark", "size"}

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.max_bytes = settings["max_bytes"] if settings["by_bytes"] else None
        self.max_ranges = settings["max_ranges"]
        self.max_batches = settings["max_batches"]
        self.max_store_ranges = settings["max_store_ranges"]
        self.mark: At = (1, -1)
        self.indexes: dict[At, frozenset[int]] = {}
        self.ended: frozenset[int] = frozenset()
        self.metadata = 0
        self.pauses = True
        self.waiting = [
            0
        ] * KINDS  # dispatchers that may have to be resumed, at least those that have to
        self.under_way: dict[
            int, tuple[str, int | tuple[int, int, int]]
        ] = {}  # by thread: the operation, and its kind, or its status and counts
        self.opener = (
            -1
        )  # the thread whose section, the last that opened or closed, is not over for sure
        self.opens = Past(self.open, threads)
        self.marks = Past(self.mark_word, threads)
        self.sizes = Past(0, threads)

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        if operation == "dispatch":
            kind = arguments[0]
            self.waiting[kind] = int(not self.open and kind != REPLAY)
            return answer(NEW, self.open or kind == REPLAY)
        if operation in self.spans:
            status, *counts = self.change(operation, arguments, thread)
            resumed = 0
            if self.open:
                resumed = sum(1 << kind for kind in range(KINDS) if self.waiting[kind])
                self.waiting = [0] * KINDS
            return answer(status, resumed, *counts)
        if operation == "apart":
            return answer(NEW, *ranges_apart(*arguments))
        self.know(thread)
        if operation == "is_acked":
            at = (1 + arguments[0], arguments[1])
            return answer(NEW, at <= self.mark or arguments[2] in self.indexes.get(at, ()))
        if operation == "store":
            return answer(NEW, self.mark_word, *self.store(in_store=bool(arguments[0])))
        if operation == "restore":
            return self.restore(*arguments)
        if operation == "look":
            return answer(NEW, self.mark_word, len(self.ranges) * 64 + len(self.batches), self.size)
        if operation == "mark":
            return answer(NEW, self.mark_word)
        if operation == "size":
            return answer(NEW, self.size)
        raise unknown("ack_state", operation)

    def change(
        self,
        operation: str,
        arguments: Sequence[int],
        thread: int,
        places: Sequence[At] | None = None,
    ) -> tuple[int, int, int]:
        """A write section: its status, and of `ack_entries` all entries and the new ones.

        ``places`` are the entries of `ack_entries` if memory ends before the last one.
        """
        status, entries, new = NEW, 0, 0
        at = (1 + arguments[0], arguments[1]) if len(arguments) > 1 else (0, 0)
        if operation == "ack_entry":
            status = self.acknowledge(at, range(BATCH))
        elif operation == "ack_entries":
            places = places_at_once(*arguments) if places is None else places
            answers = [self.acknowledge(place, range(BATCH)) for place in places]
            status = answers[-1] if answers else NEW
            entries, new = len(answers), answers.count(NEW)
        elif operation == "ack_index":
            status = self.acknowledge(at, [arguments[2]])
        elif operation == "ack_up_to":
            status = KNOWN if at <= self.mark else NEW
            self.advance(max(self.mark, at))
        elif operation == "end_ledger":
            ledger = 1 + arguments[0]
            status = KNOWN if ledger in self.ended or ledger < self.mark[0] else NEW
            self.ended |= {ledger}
            self.advance(self.mark)
        elif operation == "set_metadata":
            self.metadata = arguments[0]
        else:
            self.pauses = bool(arguments[0])
        if self.opens.values[-1] != self.open:
            self.opens.write(self.open)
            self.opener = thread
        self.marks.write(self.mark_word)
        self.sizes.write(self.size)
        self.know(thread)
        return status, entries, new

    # Beside others --------------------------------------------------------------------------------

    def know(self, thread: int) -> None:
        for past in (self.opens, self.marks, self.sizes):
            past.know(thread)

    def begins(
        self,
        operation: str,
        arguments: Sequence[int],
        *,
        thread: int = 0,
        result: Answer | None = None,
    ) -> bool:
        if operation != "dispatch":
            if self.scarce and result is not None and result[0] == NO_MEMORY:
                return self.begins_without_memory(operation, arguments, thread, result[1][1])
            self.under_way[thread] = operation, self.change(operation, arguments, thread)
            return True
        kind = arguments[0]
        self.under_way[thread] = operation, kind
        if kind != REPLAY and self.may_see(False, thread):
            self.waiting[kind] += 1
        return True

    def begins_without_memory(
        self, operation: str, arguments: Sequence[int], thread: int, done: int
    ) -> bool:
        """A change that got no memory; of many entries those ``done`` before are acknowledged."""
        if operation != "ack_entries":
            self.under_way[thread] = operation, (NO_MEMORY, 0, 0)
            self.know(thread)
            return self.allocates_for(operation, arguments)
        places = places_at_once(*arguments)
        if not 0 <= done < len(places):
            return False
        counts = self.change(operation, arguments, thread, places[:done])[1:]
        self.under_way[thread] = operation, (NO_MEMORY, *counts)
        ledger, entry = places[done]
        return self.allocates_for("ack_entry", (ledger - 1, entry))

    def allocates_for(self, operation: str, arguments: Sequence[int]) -> bool:
        """True if the change may need memory now: for a range, a batch or the end of a ledger."""
        if operation == "end_ledger":
            ledger = 1 + arguments[0]
            return ledger not in self.ended and ledger >= self.mark[0]
        if operation not in ("ack_entry", "ack_index"):
            return False
        at = 1 + arguments[0], arguments[1]
        have = self.indexes.get(at, frozenset())
        added = frozenset(range(BATCH) if operation == "ack_entry" else [arguments[2]]) - have
        whole = len(have | added) == BATCH
        return at > self.mark and bool(added) and (whole or not have)

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int = 0, result: Answer
    ) -> bool:
        status, (word, *rest) = result
        if operation == "apart":
            refused = self.scarce and result == answer(NO_MEMORY)
            return refused or self.step(operation, arguments, thread=thread) == result
        if operation in ("store", "restore"):
            if self.scarce and result == answer(NO_MEMORY):
                self.know(thread)
                return True
            return self.step(operation, arguments, thread=thread) == result
        counts = (status, *rest[:2])
        if any(rest) and operation != "ack_entries":
            return False
        if operation == "mark":
            return status == NEW and self.marks.read(word, thread, fresh=self.fresh)
        if operation == "size":
            return status == NEW and self.sizes.read(word, thread, fresh=self.fresh)
        if thread not in self.under_way:
            return False  # an end without its beginning
        _, began = self.under_way.pop(thread)
        if self.opener == thread:
            self.opener = -1
        if operation == "dispatch":
            return status == NEW and isinstance(began, int) and self.dispatched(began, word, thread)
        if counts != began or rest[2:] != [0] or word >> KINDS or word >> REPLAY & 1:
            return False
        if word and not self.opens.may_be(True, thread):
            return False
        for kind in range(KINDS):
            self.waiting[kind] -= word >> kind & 1
        return min(self.waiting) >= 0

    def may_see(self, is_open: bool, thread: int) -> bool:
        """True if the thread may see dispatch open, or closed. The change is visible in the middle
        of a section.
        """
        if self.fresh:
            return is_open == self.open or self.opener >= 0
        return self.opens.may_be(is_open, thread)

    def dispatched(self, kind: int, may: int, thread: int) -> bool:
        if kind == REPLAY:
            return may == 1
        if may not in (0, 1) or not self.may_see(bool(may), thread):
            return False
        if not self.fresh:
            self.opens.read(bool(may), thread)
        # One wake-up is kept for all that wait, and one more may come of each that is under way.
        others = sum(under == ("dispatch", kind) for under in self.under_way.values())
        self.waiting[kind] = min(self.waiting[kind], 1 + others)
        return True

    def canonical(self) -> object:
        return (
            self.mark,
            frozenset(self.indexes.items()),
            self.ended,
            self.metadata,
            self.pauses,
            tuple(self.waiting),
            self.opener,
            frozenset(self.under_way.items()),
            self.opens.canonical(),
            self.marks.canonical(),
            self.sizes.canonical(),
        )

    # The log --------------------------------------------------------------------------------------

    def after(self, at: At) -> At:
        return (
            (at[0] + 1, 0) if at[0] in self.ended and at[1] == ENTRIES - 1 else (at[0], at[1] + 1)
        )

    def is_whole(self, at: At) -> bool:
        return len(self.indexes.get(at, ())) == BATCH

    def acknowledge(self, at: At, indexes: Iterable[int]) -> int:
        have = self.indexes.get(at, frozenset())
        added = frozenset(indexes) - have
        if at <= self.mark or not added:
            return KNOWN
        self.indexes[at] = have | added
        self.advance(self.mark)
        return NEW

    def advance(self, mark: At) -> None:
        while self.is_whole(self.after(mark)):
            mark = self.after(mark)
        self.mark = mark

    @property
    def ranges(self) -> list[list[At]]:
        found: list[list[At]] = []
        for at in sorted(at for at in self.indexes if at > self.mark and self.is_whole(at)):
            if found and self.after(found[-1][-1]) == at:
                found[-1].append(at)
            else:
                found.append([at])
        return found

    @property
    def batches(self) -> list[At]:
        return sorted(
            at for at, have in self.indexes.items() if at > self.mark and 0 < len(have) < BATCH
        )

    # Limits ---------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        return self.metadata + 32 * (len(self.ranges) + len(self.batches))

    @property
    def open(self) -> bool:
        if not self.pauses:
            return True
        within = (
            len(self.ranges) <= self.max_ranges
            if self.max_bytes is None
            else self.size <= self.max_bytes
        )
        return within and len(self.batches) <= self.max_batches

    def store(self, *, in_store: bool) -> tuple[int, int]:
        """Counts of what is stored and left out, and the indexes that come back, as bits."""
        ranges, batches = self.ranges, self.batches
        room = None if self.max_bytes is None else max(self.max_bytes - self.metadata, 0)
        most = self.max_ranges if room is None else room // 32
        if in_store:
            most = min(most, self.max_store_ranges)
        kept = ranges[:most]
        left = len(batches) if room is None else (room - 32 * len(kept)) // 32
        kept_batches = batches[: min(self.max_batches, left)]
        counts = (
            len(kept)
            + 64 * (len(ranges) - len(kept))
            + 4096 * len(kept_batches)
            + 262144 * (len(batches) - len(kept_batches))
        )
        whole = {at for run in kept for at in run} | {at for at in all_entries() if at <= self.mark}
        restored = 0
        for number, at in enumerate(all_entries()):
            have = (
                set(range(BATCH))
                if at in whole
                else self.indexes[at]
                if at in kept_batches
                else set()
            )
            restored |= sum(1 << index for index in have) << (number * BATCH)
        return counts, restored

    def restore(self, word: int, change: int, counts: int) -> Answer:
        """Return what comes back from all bytes of the state, of which one word is another."""
        batches = {at: self.indexes[at] for at in self.batches}
        stored = encoded(self.ranges, batches, BATCH)
        words, n_ranges, n_batches = damaged(stored, word, change, counts)
        back = decoded(self.mark, words, n_ranges, n_batches)
        ranges, found = back or ([], {})
        indexes = 0
        for number, at in enumerate(all_entries()):
            whole = at <= self.mark or any(first <= at <= last for first, last in ranges)
            bits = found[at][1] if at in found else 0
            indexes |= ((1 << BATCH) - 1 if whole else bits & ((1 << BATCH) - 1)) << number * BATCH
        size = 32 * (len(ranges) + len(found))
        status = NEW if back else DAMAGED
        return answer(status, self.mark_word, len(ranges) * 64 + len(found), size, indexes)

    @property
    def mark_word(self) -> int:
        return self.mark[0] * 16 + self.mark[1] + 1


def all_entries() -> list[At]:
    return [(1 + ledger, entry) for ledger in range(LEDGERS) for entry in range(ENTRIES)]
