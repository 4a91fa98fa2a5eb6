"""Reads of one managed ledger through its cache: hits are copied, holes are read from storage."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from pulsar_ml._core import (
    Entry,
    EntryCacheManager,
    InflightReadsLimiter,
    PendingReadsManager,
    Permits,
)
from pulsar_ml.errors import (
    AllocationError,
    ClosedError,
    LedgerHandleClosedError,
    ReadLimitError,
    ReadTimeoutError,
)
from pulsar_ml.managed_ledger.range_read import RangeRead, discard
from pulsar_ml.managed_ledger.storage.interface import LedgerStorage, StoredEntry
from pulsar_ml.positions import Position

READ_OVERHEAD = 64  # bytes that a read of an entry takes in addition to its payload
DEFAULT_ENTRY_SIZE = 10_240
READ_AHEAD_LIMIT = 0.7  # of the limiter's permits that reads ahead leave in flight at most

ExpectedReads = Callable[[], int]


def estimated_size(entries: int, average: int) -> int:
    """Bytes of permits for a read of so many entries."""
    return entries * (average + READ_OVERHEAD)


def no_reads() -> int:
    return 0


@dataclass(frozen=True, slots=True)
class StorageRead:
    """A read of the storage that is under way, on behalf of the pending reads."""

    token: int
    ledger_id: int
    first: int
    last: int
    expected_reads: ExpectedReads

    def overlaps(self, ledger_id: int, first: int, last: int) -> bool:
        """True if the read has some of the entries."""
        return ledger_id == self.ledger_id and first <= self.last and self.first <= last


class EntryCache:
    """The range cache of a managed ledger with its pending reads and their permits.

    ``executor`` continues reads that waited for permits. All methods may be called from any number
    of threads; no lock is held while futures are completed. Origin: ``RangeEntryCacheImpl`` of
    Pulsar 4.1.
    """

    def __init__(
        self,
        name: str,
        *,
        manager: EntryCacheManager,
        storage: LedgerStorage,
        limiter: InflightReadsLimiter,
        executor: Executor,
        clock: Callable[[], int],
        read_timeout_ms: int = 0,
    ) -> None:
        self.manager = manager
        self.storage = storage
        self.limiter = limiter
        self.executor = executor
        self.clock = clock
        self.cached = manager.range_cache(name)
        self.pending = PendingReadsManager(
            manager, self.start_read, read_timeout_ms=read_timeout_ms
        )
        # Totals of inserted entries, for estimates; a lost update makes an estimate a little worse.
        self.inserted_entries = self.inserted_bytes = 0
        self.reading: dict[int, StorageRead] = {}  # under way, by token
        self.closed = False

    def insert(self, position: Position, data: bytes | Entry, *, expected_reads: int = 0) -> bool:
        """Caches an entry; False when the position is taken.

        The caller keeps its Entry either way.
        """
        inserted = self.cached.put(
            position, data, expected_reads=expected_reads, timestamp_ns=self.clock()
        )
        if inserted:
            self.inserted_entries += 1
            self.inserted_bytes += len(data)
        return inserted

    def average_inserted(self) -> int:
        """Bytes of an average entry, for a ledger without entries of its own."""
        average = self.inserted_bytes // self.inserted_entries if self.inserted_entries else 0
        return max(average, DEFAULT_ENTRY_SIZE)

    def read(
        self,
        ledger_id: int,
        first: int,
        last: int,
        *,
        average: int,
        expected_reads: ExpectedReads = no_reads,
    ) -> Future[list[Entry]]:
        """Reads the entries ``first`` .. ``last`` as copies, which the caller releases.

        The release of the last copy returns the permits. ``average`` is the estimated size of an
        entry. ``expected_reads`` is called once for each read of the storage, when its bytes have
        arrived; entries are cached when it returns more than 0. The future fails with
        ReadLimitError, ReadTimeoutError, or the exception of the storage.
        """
        result: Future[list[Entry]] = Future()
        result.set_running_or_notify_cancel()
        wanted = estimated_size(last - first + 1, average)
        begin = partial(self.begin, ledger_id, first, last, expected_reads, result)

        def on_permits(permits: Permits | None) -> None:
            if permits is None:
                result.set_exception(
                    ClosedError(f"the cache of {self.cached.name!r} was closed")
                    if self.closed
                    else ReadTimeoutError(
                        f"a read of {wanted} bytes waited too long for permits of the in-flight "
                        "read limiter"
                    )
                )
                return
            try:
                self.executor.submit(begin, permits)
            except RuntimeError as error:
                # The exception returns the permits.
                result.set_exception(error)
                raise

        try:
            permits = self.limiter.acquire(wanted, on_permits, now_ns=self.clock())
        except Exception as error:  # The future carries it.
            result.set_exception(error)
            return result
        if permits is not None:
            begin(permits)
        return result

    def begin(
        self,
        ledger_id: int,
        first: int,
        last: int,
        expected_reads: ExpectedReads,
        result: Future[list[Entry]],
        permits: Permits,
    ) -> None:
        """Starts a read that has its permits; reads that it joins need no further permits."""

        def on_done(entries: list[Entry] | None, error: BaseException | None) -> None:
            if entries is None:
                permits.release()
                result.set_exception(error)
                return
            with suppress(AllocationError):  # Then the permits were returned a little early.
                permits.share(entries)
            result.set_result(entries)

        RangeRead(self, ledger_id, first, last, expected_reads, on_done).start()

    def has_entry(self, position: Position) -> bool:
        """True if an entry is cached; does not count as an access."""
        return position in self.cached

    def read_ahead(
        self,
        ledger_id: int,
        first: int,
        last: int,
        *,
        average: int,
        expected_reads: ExpectedReads,
        max_bytes: int = 0,
        condition: Callable[[], bool] = lambda: True,
        on_done: Callable[[], None] = lambda: None,
    ) -> bool:
        """Reads ``first`` .. ``last`` from storage into the cache, for a cursor that comes soon.

        ``max_bytes`` above 0 cuts the range to so many bytes of average entries, at least one.
        Returns False and reads nothing if ``first`` is cached, the caches have reached the eviction
        watermark, a storage read of some of the entries is under way, ``condition()`` is false, or
        more than 70 % of the limiter's permits would be in flight. ``on_done`` is called when the
        read ended, also when it failed. Origin: ``EntryCache.readAhead`` of Pulsar 5.0.1, which
        takes the permits in the same step in which it looks at the limit; here other reads may take
        them between, and then this one waits for its permits.
        """
        if (ledger_id, first) in self.cached or self.manager.is_at_eviction_watermark:
            return False
        if max_bytes > 0:
            last = min(last, first + max(1, max_bytes // estimated_size(1, average)) - 1)
        if self.is_reading(ledger_id, first, last) or not condition():
            return False
        wanted, most = estimated_size(last - first + 1, average), self.limiter.max_bytes
        if most > 0 and most - self.limiter.remaining + wanted > int(most * READ_AHEAD_LIMIT):
            return False

        def on_read(read: Future[list[Entry]]) -> None:
            if read.exception() is None:
                discard(read.result())
            on_done()

        read = self.read(ledger_id, first, last, average=average, expected_reads=expected_reads)
        if read.done() and isinstance(read.exception(), ReadLimitError):
            return False
        read.add_done_callback(on_read)
        return True

    def is_reading(self, ledger_id: int, first: int, last: int) -> bool:
        """True if a storage read that is under way has some of the entries."""
        return any(read.overlaps(ledger_id, first, last) for read in list(self.reading.values()))

    def copies(self, ledger_id: int, first: int, last: int) -> list[Entry | None]:
        """Dispatch copies of ``first`` .. ``last``; None where an entry is not cached."""
        found: list[Entry | None] = [None] * (last - first + 1)
        if first == last:
            hit = self.cached.get((ledger_id, first))
            hits = [hit] if hit is not None else []
        else:
            hits = self.cached.get_range((ledger_id, first), (ledger_id, last))
        for cached in hits:
            with cached:
                found[cached.entry_id - first] = cached.copy()
        return found

    # The storage ----------------------------------------------------------------------------------

    def start_read(
        self, token: int, ledger_id: int, first: int, last: int, expected_reads: ExpectedReads
    ) -> None:
        """Reads from the storage on behalf of the pending reads."""
        read = StorageRead(token, ledger_id, first, last, expected_reads)
        self.reading[token] = read
        try:
            answer = self.storage.read(ledger_id, first, last)
        except BaseException:
            del self.reading[token]
            raise
        answer.add_done_callback(partial(self.on_first_answer, read))

    def on_first_answer(self, read: StorageRead, answer: Future[list[StoredEntry]]) -> None:
        """Opens a ledger whose handle was closed and reads once more; a second failure counts.

        As ``RangeEntryCacheImpl.readFromStorage`` does for ``OffloadReadHandleClosedException``.
        """
        if isinstance(answer.exception(), LedgerHandleClosedError):
            try:
                self.storage.reopen_ledger(read.ledger_id)
                answer = self.storage.read(read.ledger_id, read.first, read.last)
            except Exception as error:  # The waiting reads get it.
                answer = Future()
                answer.set_exception(error)
        answer.add_done_callback(partial(self.on_stored, read))

    def on_stored(self, read: StorageRead, answer: Future[list[StoredEntry]]) -> None:
        entries: list[Entry] = []
        self.reading.pop(read.token, None)
        try:
            expected = max(read.expected_reads(), 0)
            stored = answer.result()
            self.cached.count_misses(len(stored), sum(len(entry.data) for entry in stored))
            for entry in stored:
                self.receive(entry, read, expected, entries)
        except Exception as error:  # The waiting reads get it.
            discard(entries)
            self.pending.fail(read.token, error)
        else:
            self.pending.complete(read.token, entries)

    def receive(
        self, stored: StoredEntry, read: StorageRead, expected: int, entries: list[Entry]
    ) -> None:
        """Appends a stored entry to ``entries``; caches a requested one that expects reads.

        A foreign entry may have ids that no position can have, such as -1: it is left out.
        """
        at = Position(stored.ledger_id, stored.entry_id)
        is_requested = read.overlaps(stored.ledger_id, stored.entry_id, stored.entry_id)
        if not is_requested and min(at) < 0:
            return
        entries.append(self.manager.entry(at, stored.data, expected_reads=expected))
        if expected and is_requested:
            self.insert(at, entries[-1])

    # Invalidation ---------------------------------------------------------------------------------

    def invalidate_entries(self, position: Position) -> None:
        """Forget what is before a position."""
        self.cached.invalidate_entries(position)

    def invalidate_ledger(self, ledger_id: int) -> None:
        """Forget a ledger, and let nothing join its reads."""
        self.cached.remove_range((ledger_id, 0), (ledger_id + 1, 0), last_inclusive=False)
        self.pending.invalidate_ledger(ledger_id)

    def clear(self) -> None:
        self.cached.clear()

    def close(self) -> None:
        """Fail what is under way with ClosedError and forget everything."""
        self.closed = True
        self.pending.close()
        self.manager.remove_range_cache(self.cached.name)
