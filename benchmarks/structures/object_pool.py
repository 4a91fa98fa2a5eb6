"""Cost of object_pool on one thread, undisturbed."""

from __future__ import annotations

from benchmarks.measure import Benchmark, per_operation

BENCHMARKS = (Benchmark("object_pool: take and give", per_operation("object_pool", 1_000_000)),)
