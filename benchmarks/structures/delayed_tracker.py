"""A subscription's tracker of delayed messages: bytes, and time to add and to take a message."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.measure import Benchmark, loops

MESSAGES = 1_000_000


def of(which: int) -> Callable[[], float]:
    return lambda: float(loops("delay_loops").tracker(MESSAGES)[which] / MESSAGES)


BENCHMARKS = (
    Benchmark("delayed_tracker: bytes of a message", of(1), unit="bytes"),
    Benchmark("delayed_tracker: add a message", of(2)),
    Benchmark("delayed_tracker: take a message", of(4)),
)
