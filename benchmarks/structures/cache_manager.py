"""Cost of the cache manager: puts that evict, counted reads, catch-up, memory, ledgers."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from time import perf_counter_ns
from typing import Any

import psutil

from benchmarks.measure import Benchmark, loops, ratio
from pulsar_ml import EntryCacheManager

PAYLOAD = 100  # bytes of an entry
READS = 1_000_000
MILLION = 1_000_000
TAIL = 1_000
LEDGERS = 1_000_000


def native() -> Any:
    return loops("manager_loops")


def put_and_evict(batch: int, *, start: bool, expected: int = 0) -> float:
    """A put and its share of the evictions, in warm memory; the cache holds 100 batches."""
    with EntryCacheManager(
        max_size=100 * batch * PAYLOAD, start=start, max_requeue_count=1
    ) as manager:
        cache = manager.range_cache("a")
        spent = 0
        rounds = max(400, 200_000 // batch)
        for i in range(rounds):
            took = native().put(cache, i * batch, batch, PAYLOAD, expected)
            spent += took if i >= rounds // 2 else 0
        return float(spent) / (rounds - rounds // 2) / batch


def hit(counted: bool) -> float:
    with EntryCacheManager(max_size=None) as manager:
        cache = manager.range_cache("a")
        native().put(cache, 0, TAIL, PAYLOAD)
        return float(native().get(cache, READS, TAIL, counted)) / READS


def python_hit() -> float:
    with EntryCacheManager(max_size=None) as manager:
        cache = manager.range_cache("a")
        native().put(cache, 0, TAIL, PAYLOAD)
        start = perf_counter_ns()
        for _ in range(200):
            for i in range(TAIL):
                entry = cache.get((7, i))
                assert entry is not None
                entry.release()
        return (perf_counter_ns() - start) / 200 / TAIL


def catch_up() -> float:
    with EntryCacheManager(max_size=None) as manager:
        cache = manager.range_cache("a")
        native().put(cache, 0, MILLION, PAYLOAD)
        found, spent = native().read_all(cache)
        assert found == MILLION
        return float(spent) / MILLION


def apart(function: partial[float]) -> float:
    """The figure of a new process, which has no free memory of earlier measurements to reuse."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function).result()


def resident_bytes(expected: int) -> float:
    """Growth of the resident memory an entry, less the payload as the allocator rounds it."""
    with EntryCacheManager(max_size=None) as manager:
        cache = manager.range_cache("a")
        process = psutil.Process()
        before = process.memory_info().rss
        native().put(cache, 0, MILLION, PAYLOAD, expected)
        grown = process.memory_info().rss - before
        # The header of a payload has 8 bytes; glibc adds 8 and rounds to 16.
        return float(grown) / MILLION - (PAYLOAD + 8 + 8 + 15) // 16 * 16 + 8


def grown_by_ledgers() -> float:
    """Growth of the resident memory in bytes a ledger, if ledgers come and go one after the other.

    Each gets ten entries. The first tenth of the ledgers warms up the memory.
    """
    manager = EntryCacheManager(max_size=64 << 20, start=True)
    process = psutil.Process()
    before = 0
    for ledger in range(LEDGERS):
        if ledger == LEDGERS // 10:
            before = process.memory_info().rss
        cache = manager.range_cache(f"ledger-{ledger}")
        native().put(cache, 0, 10, PAYLOAD)
        manager.remove_range_cache(cache.name)
    grown = process.memory_info().rss - before
    del cache
    manager.close()
    in_use = manager.objects_in_use()
    assert set(in_use.values()) == {0}, in_use
    assert manager.stats().size == 0
    return float(grown) / LEDGERS


def opened_and_closed() -> float:
    with EntryCacheManager(max_size=64 << 20, start=True) as manager:
        start = perf_counter_ns()
        for ledger in range(20_000):
            manager.range_cache(f"ledger-{ledger}")
            manager.remove_range_cache(f"ledger-{ledger}")
        return (perf_counter_ns() - start) / 20_000


BENCHMARKS = (
    *(
        Benchmark(
            f"cache_manager: put with eviction, batches of {batch:,}, {how}",
            partial(put_and_evict, batch, start=start, expected=expected),
        )
        for batch in (100, 1000)
        for how, start, expected in (
            ("by the put", False, 0),
            ("by the thread", True, 0),
            ("by the put, requeued once", False, 1),
        )
    ),
    Benchmark("cache_manager: hit and release, not counted", lambda: hit(False)),
    Benchmark("cache_manager: hit and release, counted", lambda: hit(True)),
    Benchmark(
        "cache_manager: counted hit over one that is not counted",
        ratio(lambda: hit(True), lambda: hit(False)),
        unit="x",
        target=1.5,
    ),
    Benchmark("cache_manager: hit and release in Python", python_hit),
    Benchmark("cache_manager: catch-up over a million entries, an entry", catch_up),
    Benchmark("cache_manager: a ledger opened and closed in Python", opened_and_closed),
    Benchmark(
        "cache_manager: resident bytes at a million entries, none expected",
        lambda: apart(partial(resident_bytes, 0)),
        unit="bytes",
        target=100,
    ),
    Benchmark(
        "cache_manager: resident bytes at a million entries, reads expected",
        lambda: apart(partial(resident_bytes, 1)),
        unit="bytes",
    ),
    Benchmark(
        "cache_manager: growth over a million ledgers, bytes a ledger",
        lambda: apart(partial(grown_by_ledgers)),
        unit="bytes",
        target=1,
    ),
)
