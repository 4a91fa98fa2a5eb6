"""Cost of the cursor heap: seeks of 1 to 99 entries, each returning the slowest position; queries.

With several threads a figure is the time from the first start to the last end, divided by the
operations of all threads.
"""

from __future__ import annotations

from functools import partial

from benchmarks.measure import Benchmark
from benchmarks.structures.active_cursors import native_bytes, rows

NAME = "cursor_heap"
BENCHMARKS = (
    *rows(NAME, "seek with slowest before and after", "Heap", "run"),
    *rows(NAME, "remove and add", "Heap", "churn"),
    *rows(NAME, "slowest, nothing changes", "Heap", "ask"),
    Benchmark(f"{NAME}: native bytes of a cursor", partial(native_bytes, "Heap"), unit="bytes"),
)
