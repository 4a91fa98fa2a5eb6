"""Cost of refcount on one thread, undisturbed."""

from __future__ import annotations

from benchmarks.measure import Benchmark, per_operation

BENCHMARKS = (Benchmark("refcount: retain and release", per_operation("refcount", 1_000_000)),)
