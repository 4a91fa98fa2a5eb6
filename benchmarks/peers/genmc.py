"""Exhaustive searches of the programs of GenMC's test suite: executions, speed, bounds.

GenMC is not run: its test suite expects the counts of ``EXPECTED``. A rate leaves out the time in
which a run begins and ends, so it is of programs with many executions.
"""

from __future__ import annotations

import time
from functools import partial

from benchmarks.measure import Benchmark
from pulsar_ml.harness.engine import Explorer
from tests.engine.programs.build_programs import explorer

MODES = ("sc", "tso", "c11")
EXPECTED = {"treiber_two_push_one_assumes": 18, "queue_two_do_both_assumes": 50}
RATED = (
    "increments_7",
    "locked_increments_7",
    "readers_8",
    "exchanges_7",
    "szymanski",
    "treiber_two_do_both",
    "queue_two_do_both",
)
UNREDUCED = (("readers_8", "tso"),)  # more threads than mode tso reduces
BOUNDED = "queue_two_do_both"
BOUNDS = (1, 2, 3)
REPEATS = 20
MOST = 10_000_000  # executions of a search


def timed(runs: Explorer) -> float:
    """Search to the end; return the seconds of processor time without those of an empty run."""
    started = time.thread_time()
    runs.run(0, 0)
    between = time.thread_time()
    runs.run(0, MOST)
    spent = time.thread_time() - between
    if runs.failed() or not runs.statistics()["exhausted"] or runs.statistics()["unreduced"]:
        raise RuntimeError("the search did not end, or was not reduced")
    return spent - (between - started)


def rate(name: str, mode: str) -> float:
    """Thousand whole executions per second of processor time."""
    count, spent = 0, 0.0
    for _ in range(REPEATS):
        runs = explorer(name, mode=mode, strategy="exhaust")
        spent += timed(runs)
        count += runs.statistics()["complete"]
    return count / spent / 1e3


def whole(name: str, mode: str) -> float:
    """Executions of a search that no assumption and no earlier execution ended."""
    runs = explorer(name, mode=mode, strategy="exhaust")
    timed(runs)
    return runs.statistics()["complete"]


def bounded(bound: int, mode: str, reduced: bool) -> tuple[int, float]:
    """Search within a bound of preemptions; return the executions, and seconds."""
    count, spent = 0, 0.0
    for _ in range(REPEATS):
        options = {"preemptions": bound} if reduced else {"bound": bound}
        strategy = "reduce" if reduced else "preemptions"
        runs = explorer(BOUNDED, mode=mode, strategy=strategy, **options)
        spent += timed(runs)
        count = runs.statistics()["executions"]
    return count, spent / REPEATS


def bounded_executions(bound: int, mode: str, reduced: bool) -> float:
    return bounded(bound, mode, reduced)[0]


def bounded_seconds(bound: int, mode: str) -> float:
    """How many times longer every schedule within the bound takes than the reduced search."""
    return bounded(bound, mode, reduced=False)[1] / bounded(bound, mode, reduced=True)[1]


def bounded_rows(bound: int, mode: str) -> tuple[Benchmark, ...]:
    title = f"search: {BOUNDED}, mode {mode}, {bound} preemptions"
    return (
        Benchmark(f"{title}, every schedule", partial(bounded_executions, bound, mode, False), "n"),
        Benchmark(f"{title}, reduced", partial(bounded_executions, bound, mode, True), "n"),
        Benchmark(f"{title}, seconds by reduced", partial(bounded_seconds, bound, mode), "x"),
    )


ROWS = (
    *(
        Benchmark(
            f"search: {name}, mode {mode} ({count} in GenMC)", partial(whole, name, mode), "n"
        )
        for name, count in EXPECTED.items()
        for mode in MODES
    ),
    *(
        Benchmark(f"search: {name}, mode {mode}", partial(rate, name, mode), "k/s")
        for name in RATED
        for mode in MODES
        if (name, mode) not in UNREDUCED
    ),
    *(row for bound in BOUNDS for mode in ("sc", "c11") for row in bounded_rows(bound, mode)),
)
