"""Cost of inflight_limiter on one thread, undisturbed."""

from __future__ import annotations

from benchmarks.measure import Benchmark, per_operation

BENCHMARKS = (
    Benchmark(
        "inflight_limiter: acquire and release",
        per_operation("limiter_uncontended", 1_000_000, module="loops_reads"),
    ),
    Benchmark(
        "inflight_limiter: wait and be served",
        per_operation("limiter_waiting", 1_000_000, module="loops_reads"),
    ),
)
