"""Cost of payload_memory on one thread, beside the allocator."""

from __future__ import annotations

from benchmarks.measure import Benchmark, per_operation

BENCHMARKS = (
    Benchmark("payload_memory: take and give", per_operation("payload_memory", 1_000_000)),
    Benchmark("payload_memory: the allocator instead", per_operation("allocator", 1_000_000)),
)
