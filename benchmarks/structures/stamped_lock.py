"""Cost of stamped_lock on one thread, undisturbed."""

from __future__ import annotations

from benchmarks.measure import Benchmark, per_operation

BENCHMARKS = (
    Benchmark(
        "stamped_lock: write section", per_operation("stamped_lock_write_section", 1_000_000)
    ),
    Benchmark("stamped_lock: optimistic read", per_operation("stamped_lock_optimistic", 1_000_000)),
)
