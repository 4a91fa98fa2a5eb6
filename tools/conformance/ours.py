"""Traces on this cache; answers are printed as the driver prints them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pulsar_ml import (
    ActiveManagedCursorContainer,
    Entry,
    EntryCacheManager,
    InflightReadsLimiter,
    ManagedCursorContainer,
    Permits,
    Position,
    RangeCache,
    ReadLimitError,
)
from tools.conformance.acks import Acks
from tools.conformance.delayed import Delayed
from tools.conformance.manager import Manager
from tools.conformance.pending import Pending

LEDGER = 3
TICK = 1_000_000_000  # nanoseconds

POLICIES = {"4.2.4": "released_queue", "5.0.1": "released_5"}

Subject = Callable[[Sequence[str]], str]


def flag(value: bool) -> str:
    return "true" if value else "false"


def text(position: Position | None) -> str:
    return "none" if position is None else f"{position.ledger_id}:{position.entry_id}"


class Caches:
    """Two range caches over one removal queue."""

    def __init__(self, words: Sequence[str], version: str) -> None:
        self.manager = EntryCacheManager(
            policy=POLICIES[version],
            max_requeue_count=int(words[2]),
            extend_ttl_of_recently_accessed=words[3] == "1",
            clock=lambda: 0,
        )
        self.caches = [self.manager.range_cache(name) for name in "ab"]
        self.held: dict[int, Entry] = {}

    def drop(self, place: int) -> bool:
        entry = self.held.pop(place, None)
        if entry is not None:
            entry.release()
        return entry is not None

    def __call__(self, words: Sequence[str]) -> str:
        operation, numbers = words[0], [int(word) for word in words[1:]]
        if operation == "expire":
            evicted = self.manager.evict_entries_before(numbers[0], now_ns=numbers[1])
            return f"{evicted.entries} {evicted.bytes}"
        if operation == "free":
            evicted = self.manager.evict_bytes(numbers[0], now_ns=numbers[1])
            return f"{evicted.entries} {evicted.bytes}"
        if operation == "release":
            return "released" if self.drop(numbers[0]) else "none"
        if operation == "expect":
            entry = self.held.get(numbers[0])
            if entry is None:
                return "none"
            entry.expect_read()
            return str(entry.expected_reads)
        return self.on_cache(self.caches[numbers[0]], operation, numbers[1:])

    def on_cache(self, cache: RangeCache, operation: str, numbers: Sequence[int]) -> str:
        if operation == "size":
            return str(cache.size)
        if operation == "clear":
            removed = cache.clear()
            return f"{removed.entries} {removed.bytes}"
        key = (LEDGER, numbers[0])
        if operation == "put":
            data = bytes(numbers[1])
            put = cache.put(key, data, expected_reads=numbers[2], timestamp_ns=numbers[3])
            return flag(put)
        if operation == "exists":
            return flag(key in cache)
        if operation == "range":
            found = ["found"]
            for entry in cache.get_range(key, (LEDGER, numbers[1])):
                with entry:
                    found.append(str(entry.entry_id))
            return " ".join(found)
        if operation == "remove":
            removed = cache.remove_range(key, (LEDGER, numbers[1]), last_inclusive=numbers[2] != 0)
            return f"{removed.entries} {removed.bytes}"
        cached = cache.get(key)
        if cached is None:
            return "miss"
        with cached:
            if operation == "dispatch":
                self.drop(numbers[1])
                self.held[numbers[1]] = cached.copy()
            return f"{len(cached)} {cached.expected_reads}"


def cursors(kind: str) -> Subject:
    """A container of cursors: the heap, or the active one."""
    heap, active = ManagedCursorContainer(), ActiveManagedCursorContainer()
    container = heap if kind == "heap" else active

    def call(words: Sequence[str]) -> str:
        operation = words[0]
        at = (LEDGER, int(words[2])) if len(words) > 2 else None
        if operation == "add":
            container.add(words[1], at)
            return "added"
        if operation == "update":
            if container is active:
                active.update_cursor(words[1], at)
                return "updated"
            change = heap.update_cursor(words[1], at)
            return "none" if change is None else f"{text(change[0])} {text(change[1])}"
        if operation == "remove":
            return flag(container.remove_cursor(words[1]))
        if operation == "rank":
            return str(active.number_of_cursors_at_same_position_or_before(words[1]))
        slowest = operation == "slowest"
        return text(container.slowest_cursor_position()) if slowest else str(len(container))

    return call


class Limiter:
    """The limiter of reads in flight; time is counted in ticks."""

    def __init__(self, words: Sequence[str]) -> None:
        timeout = int(words[4])
        millis = TICK // 1_000_000
        self.limiter = InflightReadsLimiter(
            max_bytes=int(words[2]),
            acquire_queue_size=int(words[3]),
            acquire_timeout_ms=timeout * millis - millis // 2 if timeout > 0 else timeout,
        )
        self.now = 0
        self.held: dict[str, Permits] = {}
        self.later: list[str] = []

    def acquire(self, name: str, permits: int) -> str:
        def on_permits(granted: Permits | None) -> None:
            self.later.append(f"{name}={'failed' if granted is None else granted.amount}")
            if granted is not None:
                self.held[name] = granted

        try:
            granted = self.limiter.acquire(permits, on_permits, now_ns=self.now)
        except ReadLimitError:
            return "refused"
        if granted is None:
            return "waits"
        self.held[name] = granted
        return str(granted.amount)

    def __call__(self, words: Sequence[str]) -> str:
        self.later.clear()
        answer = "done"
        if words[0] == "acquire":
            answer = self.acquire(words[1], int(words[2]))
        elif words[0] == "pass":
            self.now += int(words[1]) * TICK
            self.limiter.expire(now_ns=self.now)
        else:
            permits = self.held.pop(words[1], None)
            if permits is None:
                answer = "none"
            else:
                permits.release()
        return f"{answer} {self.limiter.remaining} {','.join(self.later)}"


def subject_of(words: Sequence[str], version: str) -> Subject:
    if words[1] == "caches":
        return Caches(words, version)
    if words[1] == "delayed":
        return Delayed(words)
    if words[1] == "acks":
        return Acks(words)
    if words[1] == "pending":
        return Pending()
    if words[1] == "manager":
        return Manager(words, POLICIES[version])
    if words[1] == "limiter":
        return Limiter(words)
    return cursors(words[1])


def answers(trace: Sequence[str], version: str) -> list[str]:
    """One answer for each line of a trace."""
    subject = subject_of(trace[0].split(" "), version)
    return ["begun", *[subject(line.split(" ")) for line in trace[1:]]]
