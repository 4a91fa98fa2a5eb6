"""The engine: executions per second on one core, with memory model, race detection and history."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.measure import Benchmark
from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.shrink import shrink
from tests.engine.programs.build_programs import explorer, programs

WARM = 2_000


def rate(name: str, executions: int, **options: Any) -> Callable[[], float]:
    """Million executions per second of processor time."""

    def run() -> float:
        runs = explorer(name, **options)
        runs.run(0, WARM)
        return executions / timed(runs, executions) / 1e6

    return run


def timed(runs: Explorer, executions: int) -> float:
    started = time.thread_time()
    count = runs.run(WARM, executions)
    spent = time.thread_time() - started
    if count != executions:
        raise RuntimeError(f"a benchmark program failed: {runs.failure()}")
    return spent


def cost_of_races() -> float:
    """How many times longer an execution takes with the race detector."""
    seconds = []
    for races in (False, True):
        runs = explorer("bench_treiber", strategy="random", races=races)
        runs.run(0, WARM)
        seconds.append(timed(runs, 200_000))
    return seconds[1] / seconds[0]


def cost_of_trace() -> float:
    """Microseconds to repeat one execution with its full trace."""
    runs = explorer("bench_treiber", strategy="random")
    runs.run(0, WARM)
    started = time.thread_time()
    for number in range(1_000):
        runs.again(number)
    return (time.thread_time() - started) * 1e3


def cost_of_shrinking() -> float:
    """Milliseconds to shrink a failure of ten threads with three operations each."""
    from pulsar_ml.harness.subjects.program import Program

    subject = programs().SUBJECTS["reorder_10"]
    program = Program.generate(subject, 0, threads=10, operations=3, noise=False)
    found = explore(subject, program, executions=50_000, mode="sc", seed=2).failure
    if found is None:
        raise RuntimeError("the program to shrink did not fail")
    started = time.thread_time()
    shrink(found, subject)
    return (time.thread_time() - started) * 1e3


def steps(name: str) -> Callable[[], float]:
    """Million steps per second."""

    def run() -> float:
        runs = explorer(name, strategy="random", mode="c11")
        runs.run(0, WARM)
        before = runs.statistics()["steps"]
        spent = timed(runs, 20_000)
        return (runs.statistics()["steps"] - before) / spent / 1e6

    return run


BENCHMARKS = (
    Benchmark(
        "engine: (a) store and load, 2 threads, random walk",
        rate("bench_store_load", 500_000, strategy="random"),
        "M/s",
    ),
    Benchmark(
        "engine: (b) sequence lock, 3 threads, random walk",
        rate("bench_seqlock", 200_000, strategy="random"),
        "M/s",
    ),
    Benchmark(
        "engine: (c) Treiber stack, 3 threads, random walk",
        rate("bench_treiber", 200_000, strategy="random"),
        "M/s",
    ),
    Benchmark("engine: (c) with the portfolio", rate("bench_treiber", 200_000), "M/s"),
    Benchmark(
        "engine: (c) in mode sc",
        rate("bench_treiber", 200_000, strategy="random", mode="sc"),
        "M/s",
    ),
    Benchmark("engine: race detection, times longer", cost_of_races, "x", 3.0),
    Benchmark("engine: one execution again, with its trace", cost_of_trace, "us"),
    Benchmark("engine: shrinking 10 threads x 3 operations", cost_of_shrinking, "ms"),
    *(
        Benchmark(f"engine: steps with {n} threads", steps(f"bench_threads_{n}"), "M/s")
        for n in (2, 4, 8, 16)
    ),
)
