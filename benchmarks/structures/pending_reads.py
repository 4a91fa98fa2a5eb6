"""Cost of pending_reads on one thread: a storage that answers at once, entries of one byte."""

from __future__ import annotations

from benchmarks.measure import Benchmark, per_operation

BENCHMARKS = (
    Benchmark(
        "pending_reads: read alone, an entry",
        per_operation("pending_alone", 1_000_000, module="loops_reads"),
    ),
    Benchmark(
        "pending_reads: two requests of one read, an entry",
        per_operation("pending_joined", 1_000_000, module="loops_reads"),
    ),
)
