"""Cost of mpsc_queue on one thread, undisturbed."""

from __future__ import annotations

from benchmarks.measure import Benchmark, per_operation

BENCHMARKS = (Benchmark("mpsc_queue: offer and poll", per_operation("mpsc_queue", 1_000_000)),)
