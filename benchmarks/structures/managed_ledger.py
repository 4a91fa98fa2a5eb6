"""Cost of the managed ledger, in Python, on one thread: entries of 100 bytes in memory."""

from __future__ import annotations

import time

from benchmarks.measure import Benchmark
from pulsar_ml import EntryCacheManager
from pulsar_ml.managed_ledger import ManagedLedgerFactory, MemoryStorage

COUNT = 20_000
BATCH = 100


def timed(*, cached: bool, reading: bool) -> float:
    """Nanoseconds for each entry that is added, or read in batches."""
    with EntryCacheManager() as manager, ManagedLedgerFactory(MemoryStorage(), manager) as factory:
        ledger = factory.open("a")
        cursor = ledger.open_cursor("a")
        start = time.perf_counter_ns()
        for _ in range(COUNT):
            ledger.add_entry(b"x" * 100)
        if reading:
            if not cached:
                ledger.cache.clear()
            start = time.perf_counter_ns()
            while entries := cursor.read_entries(BATCH).result():
                for entry in entries:
                    entry.release()
        return (time.perf_counter_ns() - start) / COUNT


BENCHMARKS = (
    Benchmark("managed_ledger: add", lambda: timed(cached=True, reading=False)),
    Benchmark(
        "managed_ledger: read from the cache, an entry", lambda: timed(cached=True, reading=True)
    ),
    Benchmark(
        "managed_ledger: read from the storage, an entry", lambda: timed(cached=False, reading=True)
    ),
)
