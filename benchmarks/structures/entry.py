"""Cost of entry on one thread, undisturbed."""

from __future__ import annotations

from benchmarks.measure import Benchmark, per_operation

BENCHMARKS = (Benchmark("entry: copy and release", per_operation("entry", 1_000_000)),)
