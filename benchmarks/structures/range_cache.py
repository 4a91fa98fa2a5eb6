"""Cost of the range cache: reads, inserts, invalidation, readers on several threads, memory."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import psutil

from benchmarks.measure import Benchmark, in_threads, loops, per_operation, ratio

COUNT = 100_000  # entries in the cache
TAIL = 1_000  # the newest entries, which tailing readers ask for
PAYLOAD = 100  # bytes of an entry
READS = 1_000_000


# A hit has at least this cost: it takes a reference and gives it back.
RETAIN_AND_RELEASE = per_operation("refcount", READS)


def filled(count: int = COUNT) -> Any:
    """A cache whose memory was used before, as a broker's is and that of the releases beside it."""
    world = loops().World()
    world.put(count, PAYLOAD)
    world.remove_range()
    world.put(count, PAYLOAD)
    return world


def hit(span: int, shuffled: bool) -> float:
    spent: int = filled(span).get(READS, span, 0, shuffled, loops().Gate(1))
    return spent / READS


def known(span: int, shuffled: bool) -> float:
    """References taken and given back on entries whose handles the caller has: no search."""
    spent: int = filled(span).known(READS, span, shuffled)
    return spent / READS


def readers(
    threads: int, *, span: int = COUNT, shuffled: bool = False, evictor: bool = False
) -> float:
    """Point reads per microsecond of all readers together.

    Readers in order are at different positions, like cursors. Shuffled readers meet at the same
    entries, whose reference counts then travel between the cores.
    """
    # All readers read these entries and an evictor requeues them, so none is evicted.
    world = loops().World(max_requeue_count=65535)
    world.put(span, PAYLOAD, 1)
    gate = loops().Gate(threads + evictor)
    spent: list[int] = []

    def read(number: int) -> int:
        spent.append(world.get(READS, span, number * span // threads, shuffled, gate))
        if len(spent) == threads:
            world.end()
        return spent[-1]

    work = [partial(read, number) for number in range(threads)]
    if evictor:
        work.append(partial(world.churn, gate, PAYLOAD))
    in_threads(work)
    return threads * READS / max(spent) * 1000


def scaling(*, span: int = COUNT, shuffled: bool = False) -> float:
    """Throughput of two readers over that of one, measured one after the other."""
    two = readers(2, span=span, shuffled=shuffled)
    return two / readers(1, span=span, shuffled=shuffled)


def duplicate() -> float:
    world = filled()
    return float(world.put(COUNT, PAYLOAD)) / COUNT


def put_and_evict() -> float:
    """An insert and the later eviction of that entry, in warm memory, as in a running broker."""
    world = filled()
    world.evict(True)
    return float(world.put(COUNT, PAYLOAD) + world.evict(True)) / COUNT


def native_bytes() -> float:
    """Native bytes of an entry beyond its payload: header, wrapper, its share of map and queue."""
    sizes: dict[str, int] = loops().sizes()
    return (
        sizes["entry"]
        + sizes["wrapper"]
        + sizes["payload header"]
        + sizes["queue slot"]
        + sizes["page"] / 64
        + sizes["branch"] / 4096
    )


def resident_bytes() -> float:
    """Growth of the resident memory an entry, less the payload as the allocator rounds it.

    A new process measures it, which has no free memory of earlier measurements to reuse.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(grown_bytes, 500_000).result()


def grown_bytes(count: int) -> float:
    world = loops().World()
    process = psutil.Process()
    before = process.memory_info().rss
    world.put(count, PAYLOAD)
    grown = process.memory_info().rss - before
    header: int = loops().sizes()["payload header"]
    # glibc adds 8 bytes to each block and rounds to 16.
    return float(grown) / count - (PAYLOAD + header + 8 + 15) // 16 * 16 + header


def range_read() -> float:
    """The first read of each entry, which marks it."""
    return float(filled().get_range(COUNT, 100)) / COUNT


def range_read_again() -> float:
    world = filled()
    world.get_range(COUNT, 100)
    return float(world.get_range(COUNT, 100)) / COUNT


BENCHMARKS = (
    Benchmark("range_cache: hit and release, tail of 1,000", lambda: hit(TAIL, False)),
    Benchmark("range_cache: hit and release, random in 1,000", lambda: hit(TAIL, True)),
    Benchmark("range_cache: hit and release, random in 100,000", lambda: hit(COUNT, True)),
    Benchmark(
        "range_cache: hit, dispatch copy, both released",
        lambda: filled(TAIL).dispatch(READS, TAIL) / READS,
    ),
    Benchmark(
        "range_cache: hit and release over a retain and a release",
        ratio(lambda: hit(TAIL, False), RETAIN_AND_RELEASE),
        unit="x",
        target=8,
    ),
    Benchmark(
        "range_cache: range read of 100, an entry, over a retain and a release",
        ratio(range_read, RETAIN_AND_RELEASE),
        unit="x",
        target=8,
    ),
    Benchmark("range_cache: miss", lambda: filled().miss(READS) / READS),
    Benchmark("range_cache: put, cold memory", lambda: loops().World().put(COUNT, PAYLOAD) / COUNT),
    Benchmark("range_cache: put with later eviction", put_and_evict),
    Benchmark("range_cache: put of a duplicate", duplicate),
    Benchmark(
        "range_cache: range read of 100, an entry",
        range_read,
    ),
    Benchmark("range_cache: remove range, an entry", lambda: filled().remove_range() / COUNT),
    Benchmark("range_cache: 1 reader", lambda: readers(1), unit="reads/us"),
    Benchmark("range_cache: 2 readers", lambda: readers(2), unit="reads/us"),
    Benchmark("range_cache: 4 readers", lambda: readers(4), unit="reads/us"),
    Benchmark("range_cache: two readers over one", scaling, unit="x", target=1.8, at_least=True),
    Benchmark(
        "range_cache: two over one, random in 100,000", lambda: scaling(shuffled=True), unit="x"
    ),
    Benchmark(
        "range_cache: two over one, same 1,000 entries",
        lambda: scaling(span=TAIL, shuffled=True),
        unit="x",
    ),
    Benchmark(
        "range_cache: 1 reader beside an evictor",
        lambda: readers(1, span=TAIL, evictor=True),
        unit="reads/us",
    ),
    Benchmark(
        "range_cache: 2 readers beside an evictor",
        lambda: readers(2, span=TAIL, evictor=True),
        unit="reads/us",
    ),
    Benchmark(
        "range_cache: 4 readers beside an evictor",
        lambda: readers(4, span=TAIL, evictor=True),
        unit="reads/us",
    ),
    Benchmark(
        "range_cache: native bytes beyond the payload", native_bytes, unit="bytes", target=100
    ),
    Benchmark(
        "range_cache: resident bytes beyond payload and allocator",
        resident_bytes,
        unit="bytes",
        target=100,
    ),
)
