"""Exhaustive searches beside loom's, on the same programs, to their end: executions and seconds.

Mode ``c11``, which is loom's model, with the race detector. A search of ours that takes
microseconds is repeated, and its seconds divided. Rows of loom are left out without cargo.
"""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial

from benchmarks import peers
from benchmarks.measure import HERE, Benchmark
from tests.engine.programs.build_programs import explorer

NAMES = ("increments_4", "exchanges_4", "readers_2", "seqlock_once")  # of both tools
REPEATS = 20
MOST = 1_000_000  # executions of a search


def ended(name: str, mode: str = "c11", strategy: str = "exhaust") -> tuple[int, float]:
    """Search a program to its end; return the whole executions, and seconds of processor time."""
    spent, count = 0.0, 0
    for _ in range(REPEATS):
        runs = explorer(name, mode=mode, strategy=strategy, bound=1_000)
        started = time.thread_time()
        runs.run(0, MOST)
        spent += time.thread_time() - started
        if runs.failed() or not runs.statistics()["exhausted"]:
            raise RuntimeError(f"{name}: the search did not end")
        count = runs.statistics()["complete"]
    return count, spent / REPEATS


def executions(name: str, mode: str = "c11") -> float:
    return ended(name, mode)[0]


def executions_of_loom(name: str) -> float:
    return peers.counted("loom", name, MOST)[0]


def beside_loom(name: str) -> float:
    """How many times longer loom takes to the end of the program than the search does."""
    return peers.counted("loom", name, MOST)[1] / ended(name)[1]


GROWTH = """
import sys
from pathlib import Path
from tests.engine.programs.build_programs import explorer
pages = lambda: int(Path("/proc/self/statm").read_text().split()[1])
runs = explorer(sys.argv[1], strategy="exhaust")
before = pages()
runs.run(0, 300)
print(4096 * (pages() - before), runs.statistics()["longest"])
"""


def growth(name: str) -> tuple[int, int]:
    """How much a process grows by 300 executions of a search, and the steps of the longest."""
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, name],
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    grown, steps = done.stdout.split()
    return int(grown), int(steps)


def memory_of_a_step() -> float:
    """Bytes that a search takes for each step of an execution, between 200 and 2,000 steps."""
    (few, short), (many, long) = growth("bench_operations_100"), growth("bench_operations_1000")
    return (many - few) / (long - short)


def rows_of(name: str) -> tuple[Benchmark, ...]:
    title = f"search: {name} to its end"
    ours = Benchmark(f"{title}, executions", partial(executions, name), "n")
    if not peers.available():
        return (ours,)
    return (
        ours,
        Benchmark(f"{title}, executions of loom", partial(executions_of_loom, name), "n"),
        Benchmark(f"{title}, seconds of loom by ours", partial(beside_loom, name), "x"),
    )


ROWS = (
    *(row for name in NAMES for row in rows_of(name)),
    Benchmark("search: memory of a step", memory_of_a_step, "B"),
)
