"""One read of a range: copies of what is cached, and the holes between them from the pending reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby
from typing import Protocol

from pulsar_ml._core import Entry, PendingReadsManager

Done = Callable[[list[Entry] | None, BaseException | None], None]


class Source(Protocol):
    """Where a read looks first, and where it gets the rest."""

    pending: PendingReadsManager
    clock: Callable[[], int]

    def copies(self, ledger_id: int, first: int, last: int) -> list[Entry | None]: ...


def runs_of_holes(slots: list[Entry | None]) -> list[tuple[int, int]]:
    """First and last index of each longest run of None."""
    found = []
    for missing, group in groupby(range(len(slots)), key=lambda index: slots[index] is None):
        if missing:
            indices = list(group)
            found.append((indices[0], indices[-1]))
    return found


def discard(entries: Iterable[Entry | None]) -> None:
    """Give back copies that are not delivered after all: they mark no read."""
    for entry in entries:
        if entry is not None:
            entry.release(delivered=False)


class RangeRead:
    """A read of entries ``first`` .. ``last``; ``done(entries, error)`` is called once.

    When a hole could not be read beside hits, everything is dropped, and the whole range is read once more
    from the storage. Thread-safe: holes are filled by whichever threads complete them.
    """

    def __init__(
        self,
        source: Source,
        ledger_id: int,
        first: int,
        last: int,
        expected_reads: object,
        done: Done,
    ) -> None:
        self.source = source
        self.ledger_id = ledger_id
        self.first = first
        self.last = last
        self.expected_reads = expected_reads
        self.done = done
        self.lock = threading.Lock()
        self.slots: list[Entry | None] = []
        self.left = 0
        self.error: BaseException | None = None
        self.may_retry = False

    def start(self) -> None:
        try:
            self.slots = self.source.copies(self.ledger_id, self.first, self.last)
        except Exception as error:  # noqa: BLE001  (the reader is told)
            self.done(None, error)
            return
        holes = runs_of_holes(self.slots)
        self.may_retry = holes != [(0, len(self.slots) - 1)]
        self.fill(holes)

    def fill(self, holes: list[tuple[int, int]]) -> None:
        if not holes:
            self.finish()
            return
        self.left = len(holes)
        for begin, end in holes:
            try:
                self.source.pending.read(
                    self.ledger_id,
                    self.first + begin,
                    self.first + end,
                    partial(self.filled, begin, end),
                    expected_reads=self.expected_reads,
                    now_ns=self.source.clock(),
                )
            except Exception as error:  # noqa: BLE001  (like any failure of a hole)
                self.filled(begin, end, None, error)

    def filled(
        self, begin: int, end: int, entries: list[Entry] | None, error: BaseException | None
    ) -> None:
        with self.lock:
            if entries is None:
                self.error = self.error or error
            else:
                self.slots[begin : end + 1] = entries
            self.left -= 1
            last = self.left == 0
        if last:
            self.finish()

    def finish(self) -> None:
        """Every hole was answered: nobody else is inside."""
        if self.error is None:
            self.done([entry for entry in self.slots if entry is not None], None)
            return
        discard(self.slots)
        if not self.may_retry:
            self.done(None, self.error)
            return
        self.may_retry = False
        self.error = None
        self.slots = [None] * (self.last - self.first + 1)
        self.fill([(0, self.last - self.first)])
