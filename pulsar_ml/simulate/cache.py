"""The simulated broker: the real cache on a virtual clock, over a storage that only takes time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

from pulsar_ml import (
    ActiveManagedCursorContainer,
    Entry,
    EntryCacheManager,
    InMemoryDelayedDeliveryTrackerFactory,
    RangeCache,
)
from pulsar_ml.config import Reading
from pulsar_ml.simulate.clock import MILLI, NANOS, VirtualClock
from pulsar_ml.simulate.latency import Latency
from pulsar_ml.simulate.result import Counters

# All payloads are slices of these zeros: only the lengths of payloads matter here.
BYTES = memoryview(bytes(1 << 20))

Deliver = Callable[[Sequence[Entry]], None]


class Cursor(Protocol):
    """A cursor of one topic; it read the entries below ``position``, acknowledged those below
    ``marked``.
    """

    name: str
    position: int
    marked: int


class Broker:
    """The cache manager with its periodic eviction, and the settings and counters of all topics."""

    __slots__ = (
        "_interval",
        "audit",
        "by_expected_reads",
        "by_mark_delete",
        "clock",
        "counters",
        "delayed",
        "dispatch_nanos",
        "latency",
        "manager",
        "random",
        "settings",
    )  # fmt: skip

    def __init__(
        self,
        settings: Reading,
        clock: VirtualClock,
        *,
        latency: Latency,
        random: Random,
        dispatch_nanos: int,
        audit: bool,
    ) -> None:
        self.clock = clock
        self.audit = Audit() if audit else None
        self.settings = settings
        self.latency = latency
        self.random = random
        self.dispatch_nanos = dispatch_nanos
        self.counters = Counters()
        config = settings.config
        self.by_expected_reads = config.cache_eviction_by_expected_read_count
        self.by_mark_delete = config.evicts_by_mark_deleted_position
        self.delayed = InMemoryDelayedDeliveryTrackerFactory(**config.delayed_keywords())
        self.manager = EntryCacheManager(**config.manager_keywords(), clock=clock)
        self._interval = config.eviction_interval_ms * MILLI
        clock.after(self._interval, self._evict)

    def after_storage(self, call: Callable[[], None]) -> None:
        """Schedules ``call`` after the duration of a storage read."""
        self.clock.after(self.latency.nanos(self.random), call)

    def _evict(self) -> None:
        self.counters.pinned(self.manager.size, self._interval)
        self.manager.periodic_eviction()
        self.clock.after(self._interval, self._evict)


class Audit:
    """Counts entries that left the cache, and those that left before an older one."""

    __slots__ = ("_cached", "_next", "out_of_order", "removed")

    def __init__(self) -> None:
        self._next = 0
        self._cached: dict[tuple[RangeCache, int, int], int] = {}
        self.removed = self.out_of_order = 0

    def on_inserted(self, cache: RangeCache, ledger: int, entry: int) -> None:
        self._cached[cache, ledger, entry] = self._next
        self._next += 1

    def update(self) -> None:
        """Compares the entries that left since the last call with the oldest cached entry."""
        absent = [key for key in self._cached if key[1:] not in key[0]]
        removed = [self._cached.pop(key) for key in absent]
        oldest = min(self._cached.values(), default=self._next)
        self.removed += len(removed)
        self.out_of_order += sum(order > oldest for order in removed)


class StorageRead:
    """A read of [first, last] from storage, and the cache reads that wait for it."""

    __slots__ = ("first", "last", "listeners")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last
        self.listeners: list[CacheRead] = []


class CacheRead:
    """A read through the cache: its copies so far, and the number of storage reads it waits for."""

    __slots__ = ("copies", "deliver", "first", "last", "started", "waits_for")

    def __init__(self, first: int, last: int, deliver: Deliver, started: int) -> None:
        self.started = started
        self.first = first
        self.last = last
        self.deliver = deliver
        self.copies: dict[int, Entry] = {}
        self.waits_for = 0

    def finish(self, broker: Broker) -> None:
        broker.counters.durations.add(broker.clock.now - self.started)
        self.deliver([self.copies[entry] for entry in sorted(self.copies)])


class CachedLedger:
    """A topic's range cache in front of its storage, and its active cursors; one ledger a topic.

    Origin: ``RangeEntryCacheImpl`` and its pending reads.
    """

    __slots__ = ("_storage_reads", "broker", "cache", "cursors", "lengths", "number")

    def __init__(self, broker: Broker, number: int) -> None:
        self.broker = broker
        self.number = number
        self.cache: RangeCache = broker.manager.range_cache(f"topic-{number}")
        self.cursors = ActiveManagedCursorContainer(
            continue_caching_added_entries_after_last_active_cursor_leaves_ms=(
                broker.settings.config.continue_caching_ms
            ),
            now_ns=broker.clock.now,
        )
        self.lengths: list[int] = []
        self._storage_reads: list[StorageRead] = []

    # Cursors --------------------------------------------------------------------------------------

    def activate(self, cursor: Cursor) -> None:
        self.cursors.add(cursor.name, (self.number, self._wanted_from(cursor)))

    def deactivate(self, cursor: Cursor) -> None:
        self.cursors.remove_cursor(cursor.name, now_ns=self.broker.clock.now)

    def on_cursor_moved(self, cursor: Cursor) -> None:
        """Takes over the position of a cursor.

        Without expected reads the cache drops what every active cursor has read, or acknowledged
        where the settings say so.
        """
        self.cursors.update_cursor(cursor.name, (self.number, self._wanted_from(cursor)))
        if not self.broker.by_expected_reads:
            slowest = self.cursors.slowest_cursor_position()
            if slowest is not None:
                self.cache.remove_range((self.number, 0), slowest, last_inclusive=False)

    def _wanted_from(self, cursor: Cursor) -> int:
        return cursor.marked if self.broker.by_mark_delete else cursor.position

    def _expected_reads(self, reader: Cursor) -> int:
        if not self.broker.by_expected_reads:
            return 0
        return self.cursors.number_of_cursors_at_same_position_or_before(reader.name)

    # Writes ---------------------------------------------------------------------------------------

    def _put(self, entry: int, value: memoryview | Entry, expected: int = 0) -> None:
        inserted = self.cache.put((self.number, entry), value, expected_reads=expected)
        if inserted and self.broker.audit is not None:
            self.broker.audit.on_inserted(self.cache, self.number, entry)

    def on_written(self, entry: int) -> None:
        """Caches a new entry if a cursor is active, or was active within the grace period."""
        if not self.cursors.should_cache_added_entry(now_ns=self.broker.clock.now):
            return
        expected = len(self.cursors) if self.broker.by_expected_reads else 0
        self._put(entry, self._bytes(entry), expected)

    def _bytes(self, entry: int) -> memoryview:
        length = self.lengths[entry]
        return BYTES[:length] if length <= len(BYTES) else memoryview(bytes(length))

    # Reads ----------------------------------------------------------------------------------------

    def read(self, reader: Cursor, first: int, last: int, deliver: Deliver) -> None:
        """Passes copies of [first, last] to ``deliver``, at once or after storage reads."""
        cache_read = CacheRead(first, last, deliver, self.broker.clock.now)
        for entry in self.cache.get_range((self.number, first), (self.number, last)):
            with entry:
                cache_read.copies[entry.entry_id] = entry.copy()
        self.broker.counters.read(last - first + 1, len(cache_read.copies))
        if len(cache_read.copies) < last - first + 1:
            self._fill(reader, cache_read)
        if not cache_read.waits_for:
            cache_read.finish(self.broker)

    def read_one(self, entry: int, deliver: Deliver) -> None:
        """Reads one entry for a replay; an entry from storage is not cached."""
        cached = self.cache.get((self.number, entry))
        counters = self.broker.counters
        counters.read(1, 1 if cached else 0)
        counters.replay(1 if cached else 0)
        if cached is not None:
            with cached:
                copy = cached.copy()
            counters.durations.add(0)
            deliver([copy])
            return
        counters.storage(1, self.lengths[entry])
        started = self.broker.clock.now

        def on_stored() -> None:
            counters.durations.add(self.broker.clock.now - started)
            deliver([self._stored(entry, 0)])

        self.broker.after_storage(on_stored)

    def _stored(self, entry: int, expected: int) -> Entry:
        return self.broker.manager.entry(
            (self.number, entry), self._bytes(entry), expected_reads=expected
        )

    def _fill(self, reader: Cursor, cache_read: CacheRead) -> None:
        entry = cache_read.first
        while entry <= cache_read.last:
            if entry in cache_read.copies:
                entry += 1
                continue
            storage_read = next(
                (f for f in self._storage_reads if f.first <= entry <= f.last), None
            )
            if storage_read is None:
                storage_read = self._start_storage_read(reader, cache_read, entry)
            else:
                self.broker.counters.joined += min(storage_read.last, cache_read.last) - entry + 1
            storage_read.listeners.append(cache_read)
            cache_read.waits_for += 1
            entry = storage_read.last + 1

    def _start_storage_read(self, reader: Cursor, cache_read: CacheRead, first: int) -> StorageRead:
        """Starts a storage read of ``first`` up to the next entry that is cached or being read."""
        end = first + 1
        while end <= cache_read.last and end not in cache_read.copies:
            if any(f.first <= end <= f.last for f in self._storage_reads):
                break
            end += 1
        storage_read = StorageRead(first, end - 1)
        self._storage_reads.append(storage_read)
        self.broker.counters.storage(end - first, sum(self.lengths[first:end]))
        self.broker.after_storage(lambda: self._finish_storage_read(storage_read, reader))
        return storage_read

    def _finish_storage_read(self, storage_read: StorageRead, reader: Cursor) -> None:
        self._storage_reads.remove(storage_read)
        expected = self._expected_reads(reader)
        for number in range(storage_read.first, storage_read.last + 1):
            with self._stored(number, expected) as entry:
                if expected:
                    self._put(number, entry)
                for cache_read in storage_read.listeners:
                    if cache_read.first <= number <= cache_read.last:
                        cache_read.copies[number] = entry.copy()
        for cache_read in storage_read.listeners:
            cache_read.waits_for -= 1
            if not cache_read.waits_for:
                cache_read.finish(self.broker)


def seconds(value: float) -> int:
    """Converts seconds to nanoseconds."""
    return int(value * NANOS)
