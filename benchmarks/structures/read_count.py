"""Cost of read_count on one thread, undisturbed."""

from __future__ import annotations

from benchmarks.measure import Benchmark, per_operation

BENCHMARKS = (
    Benchmark("read_count: expect and mark read", per_operation("read_count", 1_000_000)),
)
