"""Cost of entry_wrapper on one thread, undisturbed."""

from __future__ import annotations

from benchmarks.measure import Benchmark, per_operation

BENCHMARKS = (Benchmark("entry_wrapper: read", per_operation("entry_wrapper", 1_000_000)),)
