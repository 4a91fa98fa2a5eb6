"""Acknowledgements of a cursor, one call after the other: a set of indexes, and what derives from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pulsar_ml.specs import Answer, answer, unknown

NEW, KNOWN = 0, 1

LEDGERS, ENTRIES, BATCH = 3, 6, 3

At = tuple[int, int]


class Model:
    """The operations of the subject ``ack_state``."""

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.max_bytes = settings["max_bytes"] if settings["by_bytes"] else None
        self.max_ranges = settings["max_ranges"]
        self.max_batches = settings["max_batches"]
        self.max_store_ranges = settings["max_store_ranges"]
        self.mark: At = (1, -1)
        self.indexes: dict[At, set[int]] = {}
        self.ended: set[int] = set()
        self.metadata = 0
        self.pauses = True
        self.paused = False

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        status, seen = NEW, 0
        at = (1 + arguments[0], arguments[1]) if len(arguments) > 1 else (0, 0)
        if operation == "ack_entry":
            status = self.acknowledge(at, range(BATCH))
        elif operation == "ack_index":
            status = self.acknowledge(at, [arguments[2]])
        elif operation == "ack_up_to":
            status = KNOWN if at <= self.mark else NEW
            self.advance(max(self.mark, at))
        elif operation == "is_acked":
            seen = int(at <= self.mark or arguments[2] in self.indexes.get(at, ()))
        elif operation == "end_ledger":
            ledger = 1 + arguments[0]
            status = KNOWN if ledger in self.ended or ledger < self.mark[0] else NEW
            self.ended.add(ledger)
            self.advance(self.mark)
        elif operation == "dispatch":
            seen = self.dispatch(replay=bool(arguments[0]))
        elif operation == "store":
            counts, restored = self.store(in_store=bool(arguments[0]))
            return answer(NEW, *self.summary()[:2], counts, restored)
        elif operation == "set_metadata":
            self.metadata = arguments[0]
        elif operation == "set_pauses":
            self.pauses = bool(arguments[0])
        elif operation == "ack_until_fits":
            for entry in all_entries():
                if self.open:
                    break
                self.acknowledge(entry, range(BATCH))
        else:
            raise unknown("ack_state", operation)
        if operation not in {"dispatch", "is_acked"}:
            seen = self.resume()
        return answer(status, *self.summary(), seen)

    # The log -----------------------------------------------------------------------------------------

    def after(self, at: At) -> At:
        return (at[0] + 1, 0) if at[0] in self.ended and at[1] == ENTRIES - 1 else (at[0], at[1] + 1)

    def is_whole(self, at: At) -> bool:
        return len(self.indexes.get(at, ())) == BATCH

    def acknowledge(self, at: At, indexes: Iterable[int]) -> int:
        have = self.indexes.setdefault(at, set())
        added = set(indexes) - have
        if at <= self.mark or not added:
            return KNOWN
        have |= added
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
        return sorted(at for at, have in self.indexes.items() if at > self.mark and 0 < len(have) < BATCH)

    # Limits ------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        return self.metadata + 32 * (len(self.ranges) + len(self.batches))

    @property
    def open(self) -> bool:
        if not self.pauses:
            return True
        within = (
            len(self.ranges) <= self.max_ranges if self.max_bytes is None else self.size <= self.max_bytes
        )
        return within and len(self.batches) <= self.max_batches

    def dispatch(self, *, replay: bool) -> int:
        if replay:
            return 1
        self.paused = not self.open
        return int(self.open)

    def resume(self) -> int:
        if not (self.paused and self.open):
            return 0
        self.paused = False
        return 1

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
            have = set(range(BATCH)) if at in whole else self.indexes[at] if at in kept_batches else set()
            restored |= sum(1 << index for index in have) << (number * BATCH)
        return counts, restored

    def summary(self) -> tuple[int, int, int]:
        return self.mark[0] * 16 + self.mark[1] + 1, len(self.ranges) * 64 + len(self.batches), self.size


def all_entries() -> list[At]:
    return [(1 + ledger, entry) for ledger in range(LEDGERS) for entry in range(ENTRIES)]
