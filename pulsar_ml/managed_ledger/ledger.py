"""A managed ledger: a log of entries in ledgers, cursors that read it, and a cache between."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial

from pulsar_ml._core import (
    Entry,
    EntryCacheManager,
    InflightReadsLimiter,
    ManagedCursorContainer,
)
from pulsar_ml.errors import ClosedError, StorageError, UsageError
from pulsar_ml.managed_ledger.caching_strategy import caching_strategy
from pulsar_ml.managed_ledger.cursor import ManagedCursor
from pulsar_ml.managed_ledger.entry_cache import EntryCache
from pulsar_ml.managed_ledger.ledgers import EARLIEST, Ledgers
from pulsar_ml.managed_ledger.settings import LedgerSettings
from pulsar_ml.managed_ledger.storage import LedgerStorage
from pulsar_ml.positions import Position

CURSOR = "cursor/"


class ManagedLedger:
    """Entries in the order in which they were added, and named cursors over them.

    What the storage has of ``name`` is there again: its ledgers, and durable cursors at their mark-delete
    positions. ``executor`` continues reads that waited for permits. ``clock`` tells nanoseconds.

    All methods may be called from any number of threads. No lock is held while futures are completed: a
    callback of a future may call anything. Somebody has to call :meth:`expire` for reads to time out; see
    ManagedLedgerFactory. Origin: ``ManagedLedgerImpl`` of Pulsar 4.1.
    """

    def __init__(
        self,
        name: str,
        *,
        storage: LedgerStorage,
        manager: EntryCacheManager,
        limiter: InflightReadsLimiter,
        executor: Executor,
        settings: LedgerSettings | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.name = name
        self.storage = storage
        self.settings = settings or LedgerSettings()
        self.clock = clock
        self.closed = False
        self.cache = EntryCache(
            name,
            manager=manager,
            storage=storage,
            limiter=limiter,
            executor=executor,
            clock=clock,
            read_timeout_millis=self.settings.managed_ledger_read_entry_timeout_millis,
        )
        # Whoever adds holds the first one, also while the storage works; the second one guards the log and
        # the cursors, and is held for moments.
        self.adding = threading.Lock()
        self.lock = threading.Lock()
        self.log = Ledgers(storage.ledgers(name))
        self.current: int | None = None  # the ledger that takes entries
        self.flush_at_ns = clock() + self.settings.flush_interval_ns
        self.cursors: dict[str, ManagedCursor] = {}
        self.durable = ManagedCursorContainer()  # by mark-delete position
        self.active = caching_strategy(self.settings, clock)
        self.recover_cursors()

    def recover_cursors(self) -> None:
        for key, text in self.storage.properties(self.name).items():
            if key.startswith(CURSOR):
                ledger_id, _, entry_id = text.partition(":")
                at = Position(int(ledger_id), int(entry_id))
                self.register(ManagedCursor(self, key.removeprefix(CURSOR), at, durable=True))

    def check_open(self) -> None:
        if self.closed:
            raise ClosedError(f"the managed ledger {self.name!r} is closed")

    # Adding ------------------------------------------------------------------------------------------

    def add_entry(self, data: bytes) -> Position:
        """Append an entry and return where it is, once the storage has it.

        It is cached, with a read expected of each active cursor, when there are active cursors or there were
        within the grace period. After StorageError a new ledger begins: whether the entry that failed is in
        the old one, only the next start may show. Raises ClosedError.
        """
        data = bytes(data)
        with self.adding:
            self.check_open()
            ledger_id, entry_id = self.next_place()
            try:
                self.storage.append(ledger_id, entry_id, data).result()
            except StorageError:
                self.current = None
                raise
            at = Position(ledger_id, entry_id)
            # Before readers know of it: none shall miss what is about to be cached.
            self.cache_added(at, data)
            with self.lock:
                self.log.add(ledger_id, len(data))
        return at

    def next_place(self) -> Position:
        """Where the next entry goes; begins a ledger when the current one is full. The adder's."""
        most = self.settings.managed_ledger_max_entries_per_ledger
        if self.current is not None and self.log.entries(self.current) >= most:
            self.current = None
            self.trim()
        if self.current is None:
            made = self.storage.create_ledger(self.name)
            with self.lock:
                self.log.begin(made)
            self.current = made
        return Position(self.current, self.log.entries(self.current))

    def cache_added(self, at: Position, data: bytes) -> None:
        expected = self.active.reads_of_added()
        if expected is not None:
            self.cache.insert(at, data, expected_reads=expected)

    @property
    def last_confirmed(self) -> Position:
        """The last entry that was added; before everything when there is none."""
        with self.lock:
            return self.log.last()

    @property
    def ledger_ids(self) -> list[int]:
        """The ledgers that are still there, ascending."""
        with self.lock:
            return self.log.ids()

    # Cursors -----------------------------------------------------------------------------------------

    def open_cursor(
        self, name: str, *, earliest: bool = False, durable: bool = True, active: bool = True
    ) -> ManagedCursor:
        """The cursor of that name; a new one begins behind the last entry, or with the first one.

        ``active`` cursors are expected to read what is added. Raises ClosedError.
        """
        self.check_open()
        with self.lock:
            cursor = self.cursors.get(name)
            mark = EARLIEST if earliest else self.log.last()
        if cursor is None:
            cursor = self.register(ManagedCursor(self, name, mark, durable=durable))
            if durable:
                self.keep(cursor)
        if active:
            cursor.set_active()
        return cursor

    def register(self, cursor: ManagedCursor) -> ManagedCursor:
        with self.lock:
            if cursor.name in self.cursors:
                return self.cursors[cursor.name]
            self.cursors[cursor.name] = cursor
            if cursor.durable:
                self.durable.add(cursor.name, cursor.mark_delete_position)
        return cursor

    def delete_cursor(self, name: str) -> None:
        """Forget a cursor and where it was. KeyError when there is none."""
        with self.lock:
            if name not in self.cursors:
                raise KeyError(f"no cursor {name!r}; there are: {sorted(self.cursors)}")
            cursor = self.cursors.pop(name)
            self.durable.remove_cursor(name)
        cursor.set_inactive()
        if cursor.durable:
            self.storage.set_property(self.name, CURSOR + name, None)
            cursor.store.delete()
        self.trim()

    def keep(self, cursor: ManagedCursor) -> None:
        """Let the storage know where a durable cursor is."""
        with cursor.keeping:
            at = cursor.mark_delete_position
            self.storage.set_property(self.name, CURSOR + cursor.name, str(at))
            cursor.kept = max(cursor.kept, at)

    def flush_cursors(self) -> int:
        """Store what is not stored yet of the cursors; how many had something.

        What the storage refuses stays for the next time; then StorageError, after the others.
        """
        with self.lock:
            cursors = list(self.cursors.values())
        errors, flushed = [], 0
        for cursor in cursors:
            try:
                flushed += cursor.flush_if_dirty()
            except StorageError as error:
                errors.append(f"cursor {cursor.name!r}: {error}")
        if errors:
            raise StorageError("; ".join(errors))
        return flushed

    def flush_cursors_if_due(self, *, now_ns: int | None = None) -> int:
        """Flush the cursors when the interval of the settings is over. Errors are kept for the next time."""
        now = self.clock() if now_ns is None else now_ns
        with self.lock:
            if now < self.flush_at_ns:
                return 0
            self.flush_at_ns = now + self.settings.flush_interval_ns
        try:
            return self.flush_cursors()
        except StorageError:
            return 0

    # Reading -----------------------------------------------------------------------------------------

    def average_entry_size(self, ledger_id: int) -> int:
        """Bytes for the estimate of a read. With the lock."""
        entries, length = self.log.entries(ledger_id), self.log.length(ledger_id)
        return max(1, length // entries) if length else self.cache.average_inserted()

    def read(
        self, ledger_id: int, first: int, last: int, *, average: int, cursor: str
    ) -> Future[list[Entry]]:
        """A range of one ledger, on behalf of a cursor; see EntryCache.read."""
        expected = partial(self.active.reads_of_stored, cursor)
        return self.cache.read(ledger_id, first, last, average=average, expected_reads=expected)

    def read_entry(self, at: Position) -> Future[Entry]:
        """A single entry, as for a replay: from the cache, or from the storage and then not cached.

        The future fails with UsageError when there is no such entry.
        """
        self.check_open()
        result: Future[Entry] = Future()
        result.set_running_or_notify_cancel()
        with self.lock:
            known = self.log.contains(at)
            average = self.average_entry_size(at.ledger_id) if known else 0
        if not known:
            result.set_exception(UsageError(f"the managed ledger {self.name!r} has no entry {at}"))
            return result

        def done(read: Future[list[Entry]]) -> None:
            error = read.exception()
            if error is not None:
                result.set_exception(error)
            else:
                result.set_result(read.result()[0])

        self.cache.read(at.ledger_id, at.entry_id, at.entry_id, average=average).add_done_callback(
            done
        )
        return result

    # What cursors passed -----------------------------------------------------------------------------

    def cursor_moved(self) -> None:
        """Invalidate what no active cursor wants any more, when the strategy says so."""
        unwanted = self.active.unwanted_before()
        if unwanted is not None:
            self.cache.invalidate_entries(unwanted)

    def check_backlogged_cursors(self) -> list[str]:
        """Without expected reads: let cursors that are far behind be active no longer; their names."""
        if self.settings.cache_eviction_by_expected_read_count:
            return []
        most = self.settings.managed_ledger_cursor_backlogged_threshold
        with self.lock:
            cursors = list(self.cursors.values())
        behind = [cursor for cursor in cursors if cursor.is_active and cursor.unread > most]
        for cursor in behind:
            cursor.set_inactive()
        return [cursor.name for cursor in behind]

    def trim(self) -> list[int]:
        """Delete the ledgers that every durable cursor passed, never the one that takes entries.

        StorageError when it does not learn where the cursors are; nothing is deleted then.
        """
        with self.lock:
            slowest = self.durable.slowest_cursor_position()
            passed = self.log.last() if slowest is None else slowest
            if not self.log.passed(passed, keep=self.current):
                return []
            late = [
                cursor for cursor in self.cursors.values() if cursor.durable and not cursor.is_kept
            ]
        for cursor in late:
            self.keep(cursor)  # Nobody shall begin in a ledger that is gone.
        with self.lock:
            gone = self.log.trim(passed, keep=self.current)
        for ledger_id in gone:
            self.cache.invalidate_ledger(ledger_id)
            self.storage.delete_ledger(ledger_id)
        return gone

    def expire(self, *, now_ns: int | None = None) -> int:
        """Fail the reads that took too long; how many."""
        return self.cache.pending.expire(now_ns=self.clock() if now_ns is None else now_ns)

    def close(self) -> None:
        """Fail what is under way, forget the cache, refuse further use. What was read stays valid.

        StorageError when it did not take what cursors have; the ledger is closed all the same.
        """
        with self.adding:
            if self.closed:
                return
            self.closed = True
        try:
            self.flush_cursors()
        finally:
            self.cache.close()
