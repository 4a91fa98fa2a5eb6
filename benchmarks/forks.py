"""The gate of forks (``pulsar_ml/binding/gate.pxi``): its cost for native calls and for forks."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

from benchmarks.measure import Benchmark, loops, ratio
from pulsar_ml import EntryCacheManager

CALLS = 1_000_000
FORKS = 100_000
HELD = 2_000


def permits(gated: bool) -> Callable[[], float]:
    """Nanoseconds of a native call that takes a lock, through the gate or past it."""
    return lambda: loops("forks").permits(CALLS, gated) / (2 * CALLS)


def with_a_manager() -> float:
    """Microseconds to hold all locks of the core for a fork, and to give them back."""
    core: Any = importlib.import_module("pulsar_ml._core")
    with EntryCacheManager(start=True):
        started = time.perf_counter()
        for _ in range(HELD):
            core._hold_for_fork()
            core._go_on_after_fork()
        return (time.perf_counter() - started) / HELD * 1e6


BENCHMARKS = (
    Benchmark(
        "engine: a native call enters and leaves the gate of forks",
        lambda: loops("forks").passes(CALLS) / CALLS,
    ),
    Benchmark(
        "engine: a native call through the gate of forks, times longer",
        ratio(permits(gated=True), permits(gated=False)),
        "x",
        about="a permit taken or given back, one of the shortest calls that take a lock",
    ),
    Benchmark(
        "engine: a fork shuts and opens the gate",
        lambda: loops("forks").forks(FORKS) / FORKS,
        about="no thread is inside",
    ),
    Benchmark(
        "engine: a fork holds all locks of the core",
        with_a_manager,
        "us",
        about="one manager runs; a fork pays this beside what the system's fork costs",
    ),
)
