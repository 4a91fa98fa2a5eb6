"""The simulated broker: the real cache on the virtual clock, and a storage that only takes time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pulsar_ml import ActiveManagedCursorContainer, Entry, EntryCacheManager, RangeCache
from pulsar_ml.config import Reading
from pulsar_ml.simulate.clock import MILLI, NANOS, VirtualClock
from pulsar_ml.simulate.result import Measures

# All payloads are slices of it: what is in them does not matter here, their lengths do.
BYTES = memoryview(bytes(1 << 20))

Deliver = Callable[[Sequence[Entry]], None]


class Reader(Protocol):
    """A cursor: entries below ``position`` were read."""

    name: str
    position: int


class Broker:
    """The entry cache manager with its periodic task, and what all topics share."""

    __slots__ = (
        "_interval", "audit", "by_expected_reads", "clock", "dispatch_nanos", "latency", "manager",
        "measures", "settings",
    )  # fmt: skip

    def __init__(
        self,
        settings: Reading,
        clock: VirtualClock,
        *,
        latency: int,
        dispatch_nanos: int,
        audit: bool,
    ) -> None:
        self.clock = clock
        self.audit = Audit() if audit else None
        self.settings = settings
        self.latency = latency
        self.dispatch_nanos = dispatch_nanos
        self.measures = Measures()
        config = settings.config
        self.by_expected_reads = config.cache_eviction_by_expected_read_count
        self.manager = EntryCacheManager(**config.manager_keywords(), clock=clock)
        self._interval = config.eviction_interval_millis * MILLI
        clock.after(self._interval, self._evict)

    def _evict(self) -> None:
        self.measures.pinned(self.manager.size, self._interval)
        self.manager.periodic_eviction()
        self.clock.after(self._interval, self._evict)


class Audit:
    """Which entries left the cache while an older one stayed."""

    __slots__ = ("_cached", "_next", "left", "out_of_order")

    def __init__(self) -> None:
        self._next = 0
        self._cached: dict[tuple[RangeCache, int, int], int] = {}
        self.left = self.out_of_order = 0

    def inserted(self, cache: RangeCache, ledger: int, entry: int) -> None:
        self._cached[cache, ledger, entry] = self._next
        self._next += 1

    def look(self) -> None:
        """Compare what left since the last look with the oldest entry that is still there."""
        gone = [key for key in self._cached if key[1:] not in key[0]]
        left = [self._cached.pop(key) for key in gone]
        oldest = min(self._cached.values(), default=self._next)
        self.left += len(left)
        self.out_of_order += sum(order > oldest for order in left)


class Flight:
    """A read from storage under way: [first, last], and who gets what of it."""

    __slots__ = ("first", "last", "listeners")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last
        self.listeners: list[Request] = []


class Request:
    """One read through the cache: copies collected so far, and the flights it waits for."""

    __slots__ = ("copies", "deliver", "first", "last", "waits_for")

    def __init__(self, first: int, last: int, deliver: Deliver) -> None:
        self.first = first
        self.last = last
        self.deliver = deliver
        self.copies: dict[int, Entry] = {}
        self.waits_for = 0

    def done(self) -> None:
        self.deliver([self.copies[entry] for entry in sorted(self.copies)])


class CachedLedger:
    """A topic's range cache in front of its storage, and its active cursors.

    Origin: ``RangeEntryCacheImpl`` and its pending reads, one ledger a topic.
    """

    __slots__ = ("_flights", "broker", "cache", "cursors", "lengths", "number")

    def __init__(self, broker: Broker, number: int) -> None:
        self.broker = broker
        self.number = number
        self.cache: RangeCache = broker.manager.range_cache(f"topic-{number}")
        self.cursors = ActiveManagedCursorContainer(
            continue_caching_added_entries_after_last_active_cursor_leaves_millis=(
                broker.settings.config.continue_caching_millis
            ),
            now_ns=broker.clock.now,
        )
        self.lengths: list[int] = []
        self._flights: list[Flight] = []

    # Cursors --------------------------------------------------------------------------------------

    def activate(self, cursor: Reader) -> None:
        self.cursors.add(cursor.name, (self.number, cursor.position))

    def deactivate(self, cursor: Reader) -> None:
        self.cursors.remove_cursor(cursor.name, now_ns=self.broker.clock.now)

    def moved(self, cursor: Reader) -> None:
        """A cursor moved. Without expected reads the cache drops what every active cursor has read."""
        self.cursors.update_cursor(cursor.name, (self.number, cursor.position))
        if not self.broker.by_expected_reads:
            slowest = self.cursors.slowest_cursor_position()
            if slowest is not None:
                self.cache.remove_range((self.number, 0), slowest, last_inclusive=False)

    def _expected_reads(self, reader: Reader) -> int:
        if not self.broker.by_expected_reads:
            return 0
        return self.cursors.number_of_cursors_at_same_position_or_before(reader.name)

    # Writes ---------------------------------------------------------------------------------------

    def _put(self, entry: int, value: memoryview | Entry, expected: int = 0) -> None:
        put = self.cache.put((self.number, entry), value, expected_reads=expected)
        if put and self.broker.audit is not None:
            self.broker.audit.inserted(self.cache, self.number, entry)

    def written(self, entry: int) -> None:
        """The last entry of ``lengths`` was stored: cache it if somebody is there, or was a moment ago."""
        if not self.cursors.should_cache_added_entry(now_ns=self.broker.clock.now):
            return
        expected = len(self.cursors) if self.broker.by_expected_reads else 0
        self._put(entry, self._bytes(entry), expected)

    def _bytes(self, entry: int) -> memoryview:
        length = self.lengths[entry]
        return BYTES[:length] if length <= len(BYTES) else memoryview(bytes(length))

    # Reads ----------------------------------------------------------------------------------------

    def read(self, reader: Reader, first: int, last: int, deliver: Deliver) -> None:
        """Hand dispatch copies of [first, last] to ``deliver``: at once, or when storage answered."""
        request = Request(first, last, deliver)
        for entry in self.cache.get_range((self.number, first), (self.number, last)):
            with entry:
                request.copies[entry.entry_id] = entry.copy()
        self.broker.measures.read(last - first + 1, len(request.copies))
        if len(request.copies) < last - first + 1:
            self._fill(reader, request)
        if not request.waits_for:
            request.done()

    def read_one(self, entry: int, deliver: Deliver) -> None:
        """A replayed entry. One that comes from storage is not cached: nobody else is expected."""
        cached = self.cache.get((self.number, entry))
        measures = self.broker.measures
        measures.read(1, 1 if cached else 0)
        measures.replay(1 if cached else 0)
        if cached is not None:
            with cached:
                copy = cached.copy()
            deliver([copy])
            return
        measures.storage(1, self.lengths[entry])
        self.broker.clock.after(self.broker.latency, lambda: deliver([self._stored(entry, 0)]))

    def _stored(self, entry: int, expected: int) -> Entry:
        return self.broker.manager.entry(
            (self.number, entry), self._bytes(entry), expected_reads=expected
        )

    def _fill(self, reader: Reader, request: Request) -> None:
        entry = request.first
        while entry <= request.last:
            if entry in request.copies:
                entry += 1
                continue
            flight = next((f for f in self._flights if f.first <= entry <= f.last), None)
            if flight is None:
                flight = self._depart(reader, request, entry)
            else:
                self.broker.measures.joined += min(flight.last, request.last) - entry + 1
            flight.listeners.append(request)
            request.waits_for += 1
            entry = flight.last + 1

    def _depart(self, reader: Reader, request: Request, first: int) -> Flight:
        """Start to read from storage what is missing from ``first`` on and nobody reads already."""
        end = first + 1
        while end <= request.last and end not in request.copies:
            if any(f.first <= end <= f.last for f in self._flights):
                break
            end += 1
        flight = Flight(first, end - 1)
        self._flights.append(flight)
        self.broker.measures.storage(end - first, sum(self.lengths[first:end]))
        self.broker.clock.after(self.broker.latency, lambda: self._arrive(flight, reader))
        return flight

    def _arrive(self, flight: Flight, reader: Reader) -> None:
        self._flights.remove(flight)
        expected = self._expected_reads(reader)
        for number in range(flight.first, flight.last + 1):
            with self._stored(number, expected) as entry:
                if expected:
                    self._put(number, entry)
                for request in flight.listeners:
                    if request.first <= number <= request.last:
                        request.copies[number] = entry.copy()
        for request in flight.listeners:
            request.waits_for -= 1
            if not request.waits_for:
                request.done()


def seconds(value: float) -> int:
    """Nanoseconds."""
    return int(value * NANOS)
