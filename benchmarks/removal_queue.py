"""Cost of eviction: one pass over 100,000 entries of 100 bytes."""

from __future__ import annotations

from benchmarks.measure import Benchmark
from benchmarks.range_cache import COUNT, filled

BENCHMARKS = (
    Benchmark(
        "removal_queue: time pass, an entry", lambda: filled().evict(True) / COUNT, target=80
    ),
    Benchmark(
        "removal_queue: size pass, an entry", lambda: filled().evict(False) / COUNT, target=80
    ),
)
