"""Reads of one managed ledger through its cache: hits are copied, holes come from the storage."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial

from pulsar_ml._core import (
    Entry,
    EntryCacheManager,
    InflightReadsLimiter,
    PendingReadsManager,
    Permits,
)
from pulsar_ml.errors import AllocationError, ClosedError, ReadTimeoutError
from pulsar_ml.managed_ledger.range_read import RangeRead, discard
from pulsar_ml.managed_ledger.storage import LedgerStorage, StoredEntry
from pulsar_ml.positions import Position

READ_OVERHEAD = 64  # bytes that a read of an entry takes beside its payload
DEFAULT_ENTRY_SIZE = 10_240

ExpectedReads = Callable[[], int]


def estimated_size(entries: int, average: int) -> int:
    """Bytes for which a read of so many entries asks for permits."""
    return entries * (average + READ_OVERHEAD)


def no_reads() -> int:
    return 0


class EntryCache:
    """The range cache of a managed ledger, its pending reads, and the permits for them.

    ``executor`` continues reads that waited for permits. All methods may be called from any number of
    threads; no lock is held while futures are completed. Origin: ``RangeEntryCacheImpl`` of Pulsar 4.1.
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
        read_timeout_millis: int = 0,
    ) -> None:
        self.manager = manager
        self.storage = storage
        self.limiter = limiter
        self.executor = executor
        self.clock = clock
        self.cached = manager.range_cache(name)
        self.pending = PendingReadsManager(
            manager, self.start_read, read_timeout_millis=read_timeout_millis
        )
        # Of what was inserted, for estimates; a lost update makes an estimate a little worse.
        self.inserted_entries = self.inserted_bytes = 0
        self.closed = False

    def insert(self, at: Position, data: bytes | Entry, *, expected_reads: int = 0) -> bool:
        """Cache an entry; False when the position is taken. An Entry stays the caller's either way."""
        inserted = self.cached.put(
            at, data, expected_reads=expected_reads, timestamp_ns=self.clock()
        )
        if inserted:
            self.inserted_entries += 1
            self.inserted_bytes += len(data)
        return inserted

    def average_inserted(self) -> int:
        """Bytes of an entry, for a ledger that knows of none."""
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
        """The entries ``first`` .. ``last``, copies that the caller releases; permits go with the last one.

        ``average`` is the size of an entry as far as it is known. ``expected_reads`` is asked once for each
        read of the storage, when its bytes are there; what it brings is cached when the answer is above 0.
        The future fails with ReadLimitError, ReadTimeoutError, or what the storage's did.
        """
        result: Future[list[Entry]] = Future()
        result.set_running_or_notify_cancel()
        wanted = estimated_size(last - first + 1, average)
        begin = partial(self.begin, ledger_id, first, last, expected_reads, result)

        def told(permits: Permits | None) -> None:
            if permits is None:
                result.set_exception(
                    ClosedError(f"the cache of {self.cached.name!r} was closed")
                    if self.closed
                    else ReadTimeoutError(f"{wanted} bytes of reads waited too long for permits")
                )
                return
            try:
                self.executor.submit(begin, permits)
            except RuntimeError as error:
                # Raising gives the permits back.
                result.set_exception(error)
                raise

        try:
            permits = self.limiter.acquire(wanted, told, now_ns=self.clock())
        except Exception as error:  # noqa: BLE001  (the future tells it)
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
        """Read with permits. What another part reads for it takes none of its own."""

        def done(entries: list[Entry] | None, error: BaseException | None) -> None:
            if entries is None:
                permits.release()
                result.set_exception(error)
                return
            try:
                permits.share(entries)
            except AllocationError:
                pass  # They went back, a little early.
            result.set_result(entries)

        RangeRead(self, ledger_id, first, last, expected_reads, done).start()

    def copies(self, ledger_id: int, first: int, last: int) -> list[Entry | None]:
        """A dispatch copy of what is cached, by position; None for the rest."""
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

    # The storage -------------------------------------------------------------------------------------

    def start_read(
        self, token: int, ledger_id: int, first: int, last: int, expected_reads: ExpectedReads
    ) -> None:
        """What the pending reads ask of the storage."""
        answer = self.storage.read(ledger_id, first, last)
        answer.add_done_callback(
            partial(self.stored, token, ledger_id, first, last, expected_reads)
        )

    def stored(
        self,
        token: int,
        ledger_id: int,
        first: int,
        last: int,
        expected_reads: ExpectedReads,
        answer: Future[list[StoredEntry]],
    ) -> None:
        entries: list[Entry] = []
        try:
            asked = range(first, last + 1)
            expected = max(expected_reads(), 0)
            stored = answer.result()
            self.cached.count_misses(len(stored), sum(len(entry.data) for entry in stored))
            for entry in stored:
                self.receive(entry, ledger_id, asked, expected, entries)
        except Exception as error:  # noqa: BLE001  (those who wait are told)
            discard(entries)
            self.pending.fail(token, error)
        else:
            self.pending.complete(token, entries)

    def receive(
        self, stored: StoredEntry, ledger_id: int, asked: range, expected: int, entries: list[Entry]
    ) -> None:
        """One entry more, and another one in the cache when it was asked for and is expected."""
        at = Position(stored.ledger_id, stored.entry_id)
        entries.append(self.manager.entry(at, stored.data, expected_reads=expected))
        if expected and stored.ledger_id == ledger_id and stored.entry_id in asked:
            self.insert(at, entries[-1])

    # Invalidation ------------------------------------------------------------------------------------

    def invalidate_entries(self, before: Position) -> None:
        """Forget what is before a position."""
        if before > Position(-1, 0):
            self.cached.remove_range(Position(-1, 0), before, last_inclusive=False)

    def invalidate_ledger(self, ledger_id: int) -> None:
        """Forget a ledger, and let nothing join its reads."""
        self.cached.remove_range((ledger_id, 0), (ledger_id + 1, 0), last_inclusive=False)
        self.pending.invalidate(ledger_id)

    def clear(self) -> None:
        self.cached.clear()

    def close(self) -> None:
        """Fail what is under way with ClosedError and forget everything."""
        self.closed = True
        self.pending.close()
        self.manager.remove_range_cache(self.cached.name)
