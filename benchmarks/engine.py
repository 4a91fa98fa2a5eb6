"""The engine: executions per second on one core, with memory model, race detection and history.

Rows in "x" are ratios of two measurements of the same repeat. Shuttle samples executions of the
same programs in Rust, sequentially consistent and without race detection; loom searches them under
C11. Both are compiled by cargo at first use; without cargo these rows are left out.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from benchmarks import peers
from benchmarks.measure import HERE, Benchmark, loops, ratio
from pulsar_ml import EntryCacheManager
from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.operations._native import BUILD_ID
from tests.engine.programs.build_programs import explorer, programs

WARM = 2_000
GATE_CALLS = 1_000_000
GATE_FORKS = 100_000
GATE_HELD = 2_000


def rate(name: str, executions: int, unit: float = 1e6, **options: Any) -> Callable[[], float]:
    """Executions per second of processor time, in millions or in another unit."""

    def run() -> float:
        runs = explorer(name, **options)
        runs.run(0, min(WARM, executions))
        return executions / timed(runs, executions) / unit

    return run


def timed(runs: Explorer, executions: int) -> float:
    started = time.thread_time()
    count = runs.run(WARM, executions)
    spent = time.thread_time() - started
    if count != executions:
        raise RuntimeError(f"a benchmark program failed: {runs.failure()}")
    return spent


def beside_shuttle(name: str, executions: int) -> Callable[[], float]:
    """Executions per second beside those of Shuttle, both drawn at random."""
    ours = rate(f"bench_{name}", 8 * executions, strategy="random")

    def run() -> float:
        return ours() / peers.rate("shuttle", name, executions)

    return run


def beside_loom(name: str, executions: int) -> Callable[[], float]:
    """Executions per second of an exhaustive search beside that of loom."""

    def run() -> float:
        search = explorer(f"bench_{name}", strategy="preemptions", bound=1_000)
        started = time.thread_time()
        count = search.run(0, executions)
        ours = count / (time.thread_time() - started) / 1e6
        return ours / peers.rate("loom", name, executions)

    return run


def beside_a_switch() -> float:
    """How many times longer a step takes than a switch at random between two bare fibers."""
    return 1e-6 / steps("bench_operations_1000", 500)() / switch_seconds("bare")


def switch_seconds(way: str) -> float:
    """Processor time of a switch at random between two fibers, and of nothing else."""
    switches = 5_000_000
    seconds: float = loops("switches").seconds(switches, way)
    return seconds / switches


def beside_a_bare_switch(way: str) -> Callable[[], float]:
    """How many times longer the engine's switch takes when threads use this."""
    return ratio(lambda: switch_seconds(way), lambda: switch_seconds("bare"))


@cache
def programs_in_use() -> ModuleType:
    """The programs that use one mechanism each, compiled at first use."""
    path = build_extension(
        HERE / "loops" / "in_use.pyx",
        into=HERE.parent / "build" / "benchmarks" / BUILD_ID,
        checked=True,
        flags=["-std=gnu++20"],
        language="c++",
        macros={"PML_BUILD_ID": '"programs"'},
    )
    return load_checked(path)


def in_use(name: str, instead_of: str = "nothing") -> Callable[[], float]:
    """How many times longer an execution takes when code under test uses this."""
    executions = 10_000

    def seconds(program: str) -> float:
        subject = programs_in_use().SUBJECTS[program]
        threads = programs_in_use().THREADS[program]
        calls = Program.generate(subject, 0, threads=threads, operations=1, noise=False)
        runs = Explorer(subject, calls, strategy="random")
        runs.run(0, WARM)
        return timed(runs, executions)

    return ratio(lambda: seconds(name), lambda: seconds(instead_of))


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
    subject = programs().SUBJECTS["reorder_10"]
    program = Program.generate(subject, 0, threads=10, operations=3, noise=False)
    found = explore(subject, program, executions=50_000, mode="sc", seed=2).failure
    if found is None:
        raise RuntimeError("the program to shrink did not fail")
    started = time.thread_time()
    shrink(found, subject)
    return (time.thread_time() - started) * 1e3


def steps(name: str, executions: int = 20_000) -> Callable[[], float]:
    """Million steps per second."""

    def run() -> float:
        runs = explorer(name, strategy="random", mode="c11")
        runs.run(0, WARM)
        before = runs.statistics()["steps"]
        spent = timed(runs, executions)
        return (runs.statistics()["steps"] - before) / spent / 1e6

    return run


def processor_ns(loop: Callable[[], object], turns: int) -> float:
    """Nanoseconds of processor time of a turn."""
    started = time.thread_time()
    loop()
    return (time.thread_time() - started) / turns * 1e9


def permits(gated: bool) -> Callable[[], float]:
    """Nanoseconds of a native call that takes a lock, through the gate or past it."""
    return lambda: processor_ns(lambda: loops("forks").permits(GATE_CALLS, gated), 2 * GATE_CALLS)


def with_a_manager() -> float:
    """Microseconds to hold all locks of the core for a fork, and to give them back."""
    core: Any = importlib.import_module("pulsar_ml._core")
    with EntryCacheManager(start=True):
        started = time.thread_time()
        for _ in range(GATE_HELD):
            core._hold_for_fork()
            core._go_on_after_fork()
        return (time.thread_time() - started) / GATE_HELD * 1e6


def beside_peers() -> tuple[Benchmark, ...]:
    """The rows that need cargo."""
    sampled = (
        ("(a)", "store_load", 50_000),
        ("(b)", "seqlock", 20_000),
        ("(c)", "treiber", 20_000),
        ("100 operations", "operations_100", 4_000),
        ("1,000 operations", "operations_1000", 400),
    )
    searched = (("(b)", "seqlock", 20_000), ("(c)", "treiber", 20_000))
    return (
        *(
            Benchmark(
                f"engine: {label} beside Shuttle, times faster",
                beside_shuttle(name, executions),
                "x",
                1.0,
                at_least=True,
            )
            for label, name, executions in sampled
        ),
        *(
            Benchmark(
                f"engine: search of {label} beside loom, times faster",
                beside_loom(name, executions),
                "x",
                1.0,
                at_least=True,
            )
            for label, name, executions in searched
        ),
    )


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
    Benchmark(
        "engine: 2 threads of 100 operations, random walk",
        rate("bench_operations_100", 20_000, 1e3, strategy="random"),
        "k/s",
    ),
    Benchmark(
        "engine: 2 threads of 1,000 operations, random walk",
        rate("bench_operations_1000", 2_000, 1e3, strategy="random"),
        "k/s",
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
    Benchmark(
        "engine: a step beside a bare switch, times longer",
        beside_a_switch,
        "x",
        about="2 threads of 1,000 operations; the floor is two fibers that only switch, at random",
    ),
    Benchmark(
        "engine: a switch, nothing in use",
        lambda: 1e9 * switch_seconds("nothing in use"),
        "ns",
        about="the engine's switch alone, without the step that it belongs to",
    ),
    *(
        Benchmark(
            f"engine: a switch beside a bare one, {way}, times longer",
            beside_a_bare_switch(way),
            "x",
        )
        for way in (
            "nothing in use",
            "errno or an exception in use",
            "floating-point environment in use",
        )
    ),
    *(
        Benchmark(f"engine: {label}, times longer", in_use(*names), "x")
        for label, *names in (
            ("errno in use", "error_number"),
            ("floating-point environment in use", "floats"),
            ("thread-local in use", "thread_local_variable"),
            ("an exception in flight", "exception_in_flight", "exception_ended"),
            ("a lock in every turn", "lock"),
            ("a look at the clock in every turn", "clock_read"),
            ("a sleep in every turn", "sleeping"),
        )
    ),
    Benchmark(
        "engine: a native call enters and leaves the gate of forks",
        lambda: processor_ns(lambda: loops("forks").passes(GATE_CALLS), GATE_CALLS),
    ),
    Benchmark(
        "engine: a native call through the gate of forks, times longer",
        ratio(permits(gated=True), permits(gated=False)),
        "x",
        about="a permit taken or given back, one of the shortest calls that take a lock",
    ),
    Benchmark(
        "engine: a fork shuts and opens the gate",
        lambda: processor_ns(lambda: loops("forks").forks(GATE_FORKS), GATE_FORKS),
        about="no thread is inside",
    ),
    Benchmark(
        "engine: a fork holds all locks of the core",
        with_a_manager,
        "us",
        about="one manager runs; a fork pays this beside what the system's fork costs",
    ),
    *(beside_peers() if peers.available() else ()),
)

if not peers.available():
    print(peers.WITHOUT_CARGO, file=sys.stderr)
