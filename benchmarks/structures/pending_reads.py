"""Cost of pending_reads on one thread: a storage that answers at once, entries of one byte."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.measure import Benchmark, loops, per_operation, ratio

CALLS = 200_000
MANY, FEW = 100_000, 1_000


def beside(others: int) -> Callable[[], float]:
    """Nanoseconds of a read beside so many others that are under way."""
    return lambda: loops("loops_reads").pending_beside(CALLS, others) / CALLS


BENCHMARKS = (
    Benchmark(
        "pending_reads: read alone, an entry",
        per_operation("pending_alone", 1_000_000, module="loops_reads"),
    ),
    Benchmark(
        "pending_reads: two requests of one read, an entry",
        per_operation("pending_joined", 1_000_000, module="loops_reads"),
    ),
    Benchmark(f"pending_reads: a read beside {MANY:,} others", beside(MANY)),
    Benchmark(
        f"pending_reads: a read beside {MANY:,} others, times one beside {FEW:,}",
        ratio(beside(MANY), beside(FEW)),
        unit="x",
        target=25.0,
        about="A search that looks at every read would take 100 times as long.",
    ),
)
