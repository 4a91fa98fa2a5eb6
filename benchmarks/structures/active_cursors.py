"""Cost of the active cursors: seeks of 1 to 99 entries, queries, cursors that come and go.

With several threads a figure is the time from the first start to the last end, divided by the
operations of all threads.
"""

from __future__ import annotations

from functools import partial

from benchmarks.measure import Benchmark, in_threads, loops

OPERATIONS = 400_000  # of all threads together
COUNTS = (10, 100, 500, 5_000)
THREADS = (1, 4)
EVERY = (1, 10, 100)


def measured(kind: str, method: str, count: int, threads: int, *arguments: int) -> float:
    """Nanoseconds of an operation of a container."""
    container = getattr(loops("cursor_loops"), kind)(count, threads)
    each = OPERATIONS // threads
    times: list[tuple[int, int]] = []

    def run(thread: int) -> int:
        times.append(getattr(container, method)(each, thread, *arguments))
        return 0

    in_threads([partial(run, thread) for thread in range(threads)])
    spent = max(end for _, end in times) - min(start for start, _ in times)
    return spent / (each * threads)


def rows(
    structure: str, what: str, kind: str, method: str, *arguments: int
) -> tuple[Benchmark, ...]:
    return tuple(
        Benchmark(
            f"{structure}: {what}, {count:,} cursors, {threads} thread{'s' if threads > 1 else ''}",
            partial(measured, kind, method, count, threads, *arguments),
        )
        for count in COUNTS
        for threads in THREADS
    )


def native_bytes(kind: str) -> float:
    return float(loops("cursor_loops").sizes()[kind])


NAME = "active_cursors"
BENCHMARKS = (
    *rows(NAME, "seek, no queries", "Active", "run", 0, 0),
    *(
        row
        for every in EVERY
        for row in rows(NAME, f"seek, rank every {every}", "Active", "run", every, 0)
    ),
    *rows(NAME, "seek, slowest every 1", "Active", "run", 0, 1),
    *rows(NAME, "remove, add and rank", "Active", "churn"),
    *rows(NAME, "rank, nothing pending", "Active", "ask", True),
    *rows(NAME, "slowest, nothing pending", "Active", "ask", False),
    Benchmark(f"{NAME}: native bytes of a cursor", partial(native_bytes, "Active"), unit="bytes"),
)
