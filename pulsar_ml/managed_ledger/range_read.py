"""A read of a range: cached entries are copied, and pending reads fill the holes between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby
from typing import Protocol

from pulsar_ml._core import Entry, PendingReadsManager
from pulsar_ml.managed_ledger.fork_lock import ForkLock

_filling = ForkLock()  # of all reads: its sections are a few statements

OnDone = Callable[[list[Entry] | None, BaseException | None], None]


class Source(Protocol):
    """The cache and the pending reads behind it."""

    pending: PendingReadsManager
    clock: Callable[[], int]

    def copies(self, ledger_id: int, first: int, last: int) -> list[Entry | None]: ...


def runs_of_holes(slots: list[Entry | None]) -> list[tuple[int, int]]:
    """The first and last index of each maximal run of None."""
    found = []
    for missing, group in groupby(range(len(slots)), key=lambda index: slots[index] is None):
        if missing:
            indices = list(group)
            found.append((indices[0], indices[-1]))
    return found


def discard(entries: Iterable[Entry | None]) -> None:
    """Releases copies that will not be delivered, without marking their reads."""
    for entry in entries:
        if entry is not None:
            entry.release(delivered=False)


class RangeRead:
    """A read of the entries ``first`` .. ``last``; calls ``on_done(entries, error)`` once.

    When a hole cannot be read although other entries were cached, all copies are dropped and the
    whole range is read once from the storage. Thread-safe: any threads may complete the holes.
    """

    def __init__(
        self,
        source: Source,
        ledger_id: int,
        first: int,
        last: int,
        expected_reads: object,
        on_done: OnDone,
    ) -> None:
        self.source = source
        self.ledger_id = ledger_id
        self.first = first
        self.last = last
        self.expected_reads = expected_reads
        self.on_done = on_done
        self.slots: list[Entry | None] = []
        self.open_holes = 0
        self.error: BaseException | None = None
        self.may_retry = False

    def start(self) -> None:
        try:
            self.slots = self.source.copies(self.ledger_id, self.first, self.last)
        except Exception as error:  # The reader gets it.
            self.on_done(None, error)
            return
        holes = runs_of_holes(self.slots)
        self.may_retry = holes != [(0, len(self.slots) - 1)]
        self.fill(holes)

    def fill(self, holes: list[tuple[int, int]]) -> None:
        if not holes:
            self.finish()
            return
        self.open_holes = len(holes)
        for begin, end in holes:
            try:
                self.source.pending.read(
                    self.ledger_id,
                    self.first + begin,
                    self.first + end,
                    partial(self.on_filled, begin, end),
                    expected_reads=self.expected_reads,
                    now_ns=self.source.clock(),
                )
            except Exception as error:  # A failure of this hole like any other.
                self.on_filled(begin, end, None, error)

    def on_filled(
        self, begin: int, end: int, entries: list[Entry] | None, error: BaseException | None
    ) -> None:
        with _filling:
            if entries is None:
                self.error = self.error or error
            else:
                self.slots[begin : end + 1] = entries
            self.open_holes -= 1
            is_last = self.open_holes == 0
        if is_last:
            self.finish()

    def finish(self) -> None:
        """Ends the read after its last hole; no other thread uses it any more."""
        if self.error is None:
            self.on_done([entry for entry in self.slots if entry is not None], None)
            return
        discard(self.slots)
        if not self.may_retry:
            self.on_done(None, self.error)
            return
        self.may_retry = False
        self.error = None
        self.slots = [None] * (self.last - self.first + 1)
        self.fill([(0, self.last - self.first)])
