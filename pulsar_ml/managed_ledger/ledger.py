"""A managed ledger: a log of entries in ledgers, cursors that read it, and a cache between them."""

from __future__ import annotations

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
from pulsar_ml.managed_ledger.caching_strategy import SlowestCursor, caching_strategy
from pulsar_ml.managed_ledger.checks import check_bytes, check_name, check_position
from pulsar_ml.managed_ledger.cursors.cursor import CURSOR_PREFIX, ManagedCursor
from pulsar_ml.managed_ledger.entry_cache import EntryCache
from pulsar_ml.managed_ledger.fork_lock import ForkLock
from pulsar_ml.managed_ledger.ledgers import EARLIEST, Ledgers
from pulsar_ml.managed_ledger.settings import LedgerSettings
from pulsar_ml.managed_ledger.storage.interface import LedgerStorage
from pulsar_ml.positions import Position


class ManagedLedger:
    """A log of entries in the order of their addition, with named cursors.

    The constructor restores ``name`` from the storage: its ledgers, and its durable cursors at
    their mark-delete positions. ``executor`` continues reads that waited for permits. ``clock``
    returns nanoseconds.

    All methods may be called from any number of threads. Futures are completed without any lock
    held, so that their callbacks may call anything. Reads time out only when :meth:`expire` is
    called; see ManagedLedgerFactory. Origin: ``ManagedLedgerImpl`` of Pulsar 4.1.
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
            read_timeout_ms=self.settings.managed_ledger_read_entry_timeout_millis,
        )
        # ``adding`` serializes add_entry, including the wait for the storage. ``lock`` guards the
        # log and the cursors, and is held for moments only.
        self.adding = ForkLock(waits=True, on_torn=self.begin_ledger)
        self.lock = ForkLock()
        self.log = Ledgers(storage.ledgers(name))
        self.current: int | None = None  # the ledger that takes entries
        self.flush_at_ns = clock() + self.settings.flush_interval_ns
        self.cursors: dict[str, ManagedCursor] = {}
        self.durable = ManagedCursorContainer()  # by mark-delete position
        self.active = caching_strategy(self.settings, clock)
        self.recover_cursors()

    def recover_cursors(self) -> None:
        for key, text in self.storage.properties(self.name).items():
            if key.startswith(CURSOR_PREFIX):
                ledger_id, _, entry_id = text.partition(":")
                at = Position(int(ledger_id), int(entry_id))
                name = key.removeprefix(CURSOR_PREFIX)
                self.register(ManagedCursor(self, name, at, durable=True))

    def check_open(self) -> None:
        if self.closed:
            raise ClosedError(f"the managed ledger {self.name!r} is closed")

    # Adding ---------------------------------------------------------------------------------------

    def add_entry(
        self, data: bytes, *, deliver_at_ms: int | None = None, now_ms: int | None = None
    ) -> Position:
        """Appends an entry and returns its position, once the storage has it.

        A delayed entry has a time of delivery and the present time, both in milliseconds;
        UsageError refuses a delay above delayed_delivery_max_delay_in_millis.

        The entry is cached, with one expected read for each active cursor, when a cursor is active
        or was within the grace period. After StorageError a new ledger begins; the failed entry may
        turn up in the old ledger after a restart. Raises ClosedError, and TypeError for an object
        that is not bytes-like.
        """
        data = check_bytes(data)
        self.check_delay(deliver_at_ms, now_ms)
        with self.adding:
            self.check_open()
            ledger_id, entry_id = self.next_position()
            try:
                self.storage.append(ledger_id, entry_id, data).result()
            except StorageError:
                self.current = None
                raise
            at = Position(ledger_id, entry_id)
            # Cache the entry before the log shows it, so that no reader misses it.
            self.cache_added(at, data)
            with self.lock:
                self.log.add(ledger_id, len(data))
        return at

    def check_delay(self, deliver_at_ms: int | None, now_ms: int | None) -> None:
        most = self.settings.delayed_delivery_max_delay_in_millis
        if deliver_at_ms is None or most == 0:
            return
        if now_ms is None:
            raise UsageError(f"deliver_at_ms={deliver_at_ms} has no present time; pass now_ms")
        if deliver_at_ms - now_ms > most:
            raise UsageError(
                f"the delay of {deliver_at_ms - now_ms} ms exceeds delayedDeliveryMaxDelayInMillis, "
                f"which is {most}; use a shorter delay"
            )

    def begin_ledger(self) -> None:
        """Lets the next entry begin a ledger, as after a failure of the storage."""
        self.current = None

    def next_position(self) -> Position:
        """The position of the next entry; begins a ledger when the present one is full.

        The caller holds ``adding``.
        """
        most = self.settings.managed_ledger_max_entries_per_ledger
        if self.current is not None and self.log.entries(self.current) >= most:
            self.current = None
            self.trim()
        if self.current is None:
            ledger_id = self.storage.create_ledger(self.name)
            with self.lock:
                self.log.begin(ledger_id)
            self.current = ledger_id
        return Position(self.current, self.log.entries(self.current))

    def cache_added(self, position: Position, data: bytes) -> None:
        expected = self.active.expected_reads_of_added()
        if expected is not None:
            self.cache.insert(position, data, expected_reads=expected)

    @property
    def last_confirmed(self) -> Position:
        """The position of the last entry; EARLIEST when the log is empty."""
        with self.lock:
            return self.log.last()

    @property
    def ledger_ids(self) -> list[int]:
        """The ids of the ledgers that are not deleted, ascending."""
        with self.lock:
            return self.log.ids()

    # Cursors --------------------------------------------------------------------------------------

    def open_cursor(
        self, name: str, *, earliest: bool = False, durable: bool = True, active: bool = True
    ) -> ManagedCursor:
        """Opens or creates a cursor. A new one begins after the last entry, or with the first one.

        New entries are cached for ``active`` cursors. Raises ClosedError, and UsageError for a name
        that cannot be stored.
        """
        self.check_open()
        check_name(name, "cursor")
        with self.lock:
            cursor = self.cursors.get(name)
            mark = EARLIEST if earliest else self.log.last()
        if cursor is None:
            cursor = self.register(ManagedCursor(self, name, mark, durable=durable))
            if durable:
                cursor.store_position()
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

    def get(self, name: str) -> ManagedCursor | None:
        """The cursor of that name, or None."""
        return self.cursors.get(name)

    def delete_cursor(self, name: str) -> None:
        """Deletes a cursor and its stored state.

        Raises KeyError when there is none of that name.
        """
        with self.lock:
            if name not in self.cursors:
                raise KeyError(f"no cursor {name!r}; the cursors are {sorted(self.cursors)}")
            cursor = self.cursors.pop(name)
            self.durable.remove_cursor(name)
        cursor.set_inactive()
        if cursor.durable:
            self.storage.set_property(self.name, CURSOR_PREFIX + name, None)
            cursor.store.delete()
        self.trim()

    def flush_cursors(self) -> int:
        """Stores the unsaved state of all cursors; returns how many cursors had any.

        A cursor that the storage refuses is tried again by the next flush; StorageError names it
        after the other cursors were stored.
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
        """Flushes the cursors when the interval is over; after a failure the next flush retries."""
        now = self.clock() if now_ns is None else now_ns
        with self.lock:
            if now < self.flush_at_ns:
                return 0
            self.flush_at_ns = now + self.settings.flush_interval_ns
        try:
            return self.flush_cursors()
        except StorageError:
            return 0

    # Reading --------------------------------------------------------------------------------------

    def average_entry_size(self, ledger_id: int) -> int:
        """Bytes of an average entry, to estimate a read. The caller holds the lock."""
        entries, length = self.log.entries(ledger_id), self.log.length(ledger_id)
        return max(1, length // entries) if length else self.cache.average_inserted()

    def read(
        self, ledger_id: int, first: int, last: int, *, average: int, cursor: str
    ) -> Future[list[Entry]]:
        """Reads a range of one ledger on behalf of a cursor; see EntryCache.read."""
        expected = partial(self.active.expected_reads_of_stored, cursor)
        return self.cache.read(ledger_id, first, last, average=average, expected_reads=expected)

    def has_entry(self, position: Position) -> bool:
        """True if an entry is cached."""
        return self.cache.has_entry(check_position(position))

    def read_ahead(
        self, ledger_id: int, first: int, last: int, *, cursor: str, max_bytes: int = 0
    ) -> bool:
        """Reads a range of one ledger into the cache before a cursor needs it.

        The entries expect the reads of the active cursors at ``first`` or before it, and are cached
        if there are any. Entries behind the end of the ledger are left out. Returns False where
        nothing was read; see EntryCache.read_ahead.
        """
        self.check_open()
        expected = partial(self.active.expected_reads_ahead, cursor, Position(ledger_id, first))
        with self.lock:
            known = self.log.contains(Position(ledger_id, first))
            average = self.average_entry_size(ledger_id) if known else 0
            last = min(last, self.log.entries(ledger_id) - 1) if known else first
        return known and self.cache.read_ahead(
            ledger_id, first, last, average=average, max_bytes=max_bytes, expected_reads=expected
        )

    def read_entry(self, position: Position) -> Future[Entry]:
        """Reads a single entry, for a replay. An entry from the storage is not cached.

        The future fails with UsageError when there is no such entry.
        """
        self.check_open()
        position = check_position(position)
        result: Future[Entry] = Future()
        result.set_running_or_notify_cancel()
        with self.lock:
            known = self.log.contains(position)
            average = self.average_entry_size(position.ledger_id) if known else 0
        if not known:
            result.set_exception(
                UsageError(f"the managed ledger {self.name!r} has no entry {position}")
            )
            return result

        def on_read(read: Future[list[Entry]]) -> None:
            error = read.exception()
            if error is not None:
                result.set_exception(error)
            else:
                result.set_result(read.result()[0])

        read = self.cache.read(
            position.ledger_id, position.entry_id, position.entry_id, average=average
        )
        read.add_done_callback(on_read)
        return result

    # Passed entries ------------------------------------------------------------------------------

    def invalidate_passed_entries(self) -> None:
        """Invalidates cached entries that no active cursor needs, if the strategy does so early."""
        before = self.active.evictable_before()
        if before is not None:
            self.cache.invalidate_entries(before)

    def check_backlogged_cursors(self) -> list[str]:
        """Deactivates cursors that are far behind; returns their names.

        No effect under the strategy of expected reads.
        """
        if self.settings.cache_eviction_by_expected_read_count:
            return []
        most = self.settings.managed_ledger_cursor_backlogged_threshold
        with self.lock:
            cursors = list(self.cursors.values())
        behind = [cursor for cursor in cursors if cursor.is_active and cursor.unread > most]
        for cursor in behind:
            cursor.set_inactive()
        return [cursor.name for cursor in behind]

    def check_cursors_to_cache_entries(self) -> list[str]:
        """Selects the backlogged cursors whose storage reads are cached; returns their names.

        A durable cursor is selected when at least
        ``managed_ledger_minimum_backlog_cursors_for_caching`` others have a backlog like its own.
        No effect under the strategy of expected reads.
        """
        settings, active = self.settings, self.active
        least = settings.managed_ledger_minimum_backlog_cursors_for_caching
        if least == 0 or not isinstance(active, SlowestCursor):
            return []
        with self.lock:
            durable = [cursor for cursor in self.cursors.values() if cursor.durable]
        backlogs = [(cursor, cursor.unread) for cursor in durable]
        selected = [
            cursor
            for cursor, backlog in backlogs
            if backlog >= settings.managed_ledger_minimum_backlog_entries_for_caching
            and sum(
                abs(backlog - other)
                <= settings.managed_ledger_max_backlog_between_cursors_for_caching
                for _, other in backlogs
            )
            > least
        ]
        active.cache_for(
            (each.name, each.read_position, each.mark_delete_position) for each in selected
        )
        return [cursor.name for cursor in selected]

    def trim(self) -> list[int]:
        """Deletes the ledgers that every durable cursor has passed; returns their ids.

        The ledger that takes new entries stays. Raises StorageError when the positions of the
        cursors cannot be stored first; nothing is deleted then.
        """
        with self.lock:
            slowest = self.durable.slowest_cursor_position()
            passed = self.log.last() if slowest is None else slowest
            if not self.log.passed(passed, keep=self.current):
                return []
            late = [
                cursor
                for cursor in self.cursors.values()
                if cursor.durable and not cursor.is_position_stored
            ]
        for cursor in late:
            cursor.store_position()  # A restart must not begin in a deleted ledger.
        with self.lock:
            gone = self.log.trim(passed, keep=self.current)
        for ledger_id in gone:
            self.cache.invalidate_ledger(ledger_id)
            self.storage.delete_ledger(ledger_id)
        return gone

    def expire(self, *, now_ns: int | None = None) -> int:
        """Fails the reads that took too long; returns their number."""
        return self.cache.pending.expire(now_ns=self.clock() if now_ns is None else now_ns)

    def close(self) -> None:
        """Closes the ledger: stores its cursors, fails pending reads, removes its cache.

        Entries read before stay valid. Raises StorageError when the state of a cursor was not
        stored; the ledger is closed all the same.
        """
        with self.adding:
            if self.closed:
                return
            self.closed = True
        try:
            self.flush_cursors()
        finally:
            self.cache.close()
