"""Processor time of the eviction policies: passes over up to 100,000 ledgers, inserts, hits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from time import thread_time_ns
from typing import TypeVar

from benchmarks.measure import Benchmark, loops
from pulsar_ml._core import EVICTION_POLICIES

T = TypeVar("T")

KINDS = tuple(EVICTION_POLICIES)
# Policies that keep an entry while a read of it is expected.
WAITING = ("central_queue", "released_queue", "released_5", "stash_queue")

COUNT = 200_000  # entries in the cache before the passes
LEDGERS = (1, 1_000, 100_000)
BATCH = 1_000  # entries that a pass shall remove
PASSES = 20
PAYLOAD = 100  # bytes of an entry
STANDING = 10_000  # entries that stay while others come and go
TURNED = 200_000  # entries that come and go
HITS = 1_000_000
TAIL = 1_000  # entries that are read


def processor_time(call: Callable[[], T]) -> tuple[int, T]:
    """Nanoseconds that this thread was on a processor, and what the call returned."""
    start = thread_time_ns()
    result = call()
    return thread_time_ns() - start, result


def passes(kind: str, ledgers: int, *, by_time: bool) -> tuple[float, float]:
    """Nanoseconds for each entry that a pass shall remove, and removed entries for each."""
    broker = loops("ledgers").Ledgers(KINDS.index(kind), ledgers)
    broker.put(COUNT, PAYLOAD)
    # A pass that finds nothing old: after it the policy has sorted all entries.
    broker.evict(1, 0, PAYLOAD, True)
    spent, (_, removed) = processor_time(lambda: broker.evict(PASSES, BATCH, PAYLOAD, by_time))
    return spent / (PASSES * BATCH), removed / (PASSES * BATCH)


def turn_over(kind: str, batch: int, *, expected: int) -> float:
    """Entries put a microsecond, in batches, if each batch evicts as many bytes as it adds."""
    broker = loops("ledgers").Ledgers(KINDS.index(kind), 10, 5, STANDING)
    broker.put(STANDING, PAYLOAD, expected)
    spent, _ = processor_time(lambda: broker.turn_over(TURNED // batch, batch, PAYLOAD, expected))
    return TURNED / spent * 1000


def hits(kind: str) -> float:
    world = loops().World(kind=KINDS.index(kind))
    world.put(TAIL, PAYLOAD)
    return processor_time(lambda: world.get(HITS, TAIL, 0, True, loops().Gate(1)))[0] / HITS


def cost(kind: str, ledgers: int, by_time: bool) -> float:
    return passes(kind, ledgers, by_time=by_time)[0]


def surplus() -> float:
    return passes("ledger_scan", 100_000, by_time=False)[1]


def rows() -> Iterator[Benchmark]:
    for by_time, kind, ledgers in product((True, False), KINDS, LEDGERS):
        how = "time" if by_time else "size"
        name = f"eviction_policy: {kind}, {how} pass, ledgers {ledgers:,}, an entry"
        yield Benchmark(name, partial(cost, kind, ledgers, by_time))
    yield Benchmark(
        "eviction_policy: ledger_scan, removed over requested, ledgers 100,000",
        surplus,
        unit="entries",
    )
    for kind, expected, batch in product(KINDS, (0, 1), (100, 1_000)):
        if expected and kind not in WAITING:
            continue
        way = "on" if expected else "off"
        name = f"eviction_policy: {kind}, put and evict in batches of {batch:,}, requeue {way}"
        yield Benchmark(name, partial(turn_over, kind, batch, expected=expected), unit="entries/us")
    for kind in KINDS:
        yield Benchmark(
            f"eviction_policy: {kind}, hit and release, random in 1,000", partial(hits, kind)
        )


BENCHMARKS = tuple(rows())
