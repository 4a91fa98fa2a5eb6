"""The linearizability checker: short histories a second, and long histories of clients that overlap.

The histories come from seeds and a simulated system with crashed clients (``pulsar_ml.harness.simulate``);
those that were published with other checkers are not here. Targets in milliseconds are half of what the
best published checker, in Go, takes for histories of such a shape: 0.1 to 2.5 ms for single registers
with 100 to 170 operations (58 ms for one), 1.1 ms for a key-value map with 10 clients, 220 ms with 50, and
2.5 s with 10 when the keys are not checked one by one. One checker is kept for
all seeds, as in a campaign, so the model is asked only for what the histories before did not ask. Ten
clients are inside an operation four fifths of their time, fifty one fifth: with about ten calls under way
the histories are hard and not hopeless.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Benchmark
from pulsar_ml.harness.history import History
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, ModelChecker, Options, check
from pulsar_ml.harness.models import EvictingMap, Queue, Register, Stack
from pulsar_ml.harness.simulate import Cell, DigitMap, Keys, Line, short_cache_runs, simulate

SEEDS = range(8)
RUNS = 5_000
ROWS = 200_000
MEMORY = 64 << 20

QUICK = Options(explain=False)
BOUNDED = Options(explain=False, most_steps=2_000_000)


@cache
def runs() -> tuple[History, NDArray[np.void]]:
    """Many executions of one program, each as often as small programs repeat theirs."""
    history, rows = short_cache_runs(1, RUNS)
    return history, np.ascontiguousarray(rows[np.random.default_rng(1).integers(0, RUNS, ROWS)])


def short(remember: bool) -> Callable[[], float]:
    """Million histories a second."""

    def run() -> float:
        history, rows = runs()
        checker = ModelChecker(EvictingMap(), history.signatures, history.values)
        started = time.thread_time()
        answers = checker.native.search_many(rows, state=checker.start, remember=remember)
        spent = time.thread_time() - started
        if answers.any():
            raise RuntimeError("a legal short history was not found legal")
        return len(rows) / spent / 1e6

    return run


@cache
def histories(system: str, clients: int, operations: int, legal: bool) -> tuple[History, ...]:
    """One history for each seed, of those that are legal or illegal as asked."""
    found = []
    for seed in SEEDS:
        made = simulate(
            Cell() if system == "register" else Keys(clients),
            seed=seed, clients=clients, operations=operations, crashes=0.001,
            stale_at=None if legal else 0.3, busy=0.8 if clients == 10 else 0.2,
        )  # fmt: skip
        verdict = check(made, MODELS[system](), options=BOUNDED)
        if verdict.answer == (LEGAL if legal else ILLEGAL):
            found.append(made)
    if not found:
        raise RuntimeError(f"no seed made such a history of {system}")
    return tuple(found)


MODELS: dict[str, Callable[[], Any]] = {"register": Register, "map": DigitMap}


def long(
    system: str, clients: int, operations: int, legal: bool, options: Options = QUICK, most: int = 8
) -> Callable[[], float]:
    """Milliseconds for a history, the median of the seeds."""

    def run() -> float:
        spent = []
        model = MODELS[system]()
        chosen = histories(system, clients, operations, legal)[:most]
        checker = ModelChecker(model, chosen[0].signatures)
        check(chosen[-1], model, options=options, checker=checker)
        for history in chosen:
            started = time.thread_time()
            verdict = check(history, model, options=options, checker=checker)
            spent.append((time.thread_time() - started) * 1e3)
            if verdict.answer != (LEGAL if legal else ILLEGAL):
                raise RuntimeError(f"{system}, {clients} clients, {operations} operations: {verdict.answer}")
        return statistics.median(spent)

    return run


def rows(
    system: str, clients: int, operations: int, legal_target: float | None, illegal_target: float | None
) -> list[Benchmark]:
    return [
        Benchmark(
            f"linearize: {system}, {clients} clients, {operations} operations, "
            + ("legal" if legal else "illegal"),
            long(system, clients, operations, legal),
            "ms",
            target,
        )
        for legal, target in ((True, legal_target), (False, illegal_target))
    ]


@cache
def million(stack: bool) -> History:
    return simulate(Line(stack=stack), seed=1, clients=10, operations=1_000_000)


def monitored(stack: bool) -> float:
    """Seconds for a million operations with distinct values."""
    history = million(stack)
    started = time.thread_time()
    verdict = check(history, Stack() if stack else Queue())
    spent = time.thread_time() - started
    if verdict.answer != LEGAL:
        raise RuntimeError(f"a legal history was found {verdict.answer}")
    return spent


def kept() -> float:
    """MiB that a search holds which needs more than MEMORY and may not have it."""
    history = simulate(Line(), seed=1, clients=12, operations=400)
    checker = ModelChecker(Queue(), history.signatures, memory=MEMORY)
    options = Options(monitors=False, explain=False, memory=MEMORY, most_steps=2_000_000)
    check(history, Queue(), options=options, checker=checker)
    return (checker.native.bytes() + checker.state_bytes) / 2**20


WHOLE = Options(explain=False, partition=False)

BENCHMARKS = (
    Benchmark(
        "linearize: 3 threads, 12 operations, outcome table", short(True), "M/s", 1.0, at_least=True
    ),
    Benchmark("linearize: 3 threads, 12 operations, search", short(False), "M/s", 0.1, at_least=True),
    *rows("register", 10, 170, 0.05, 1.25),
    *rows("register", 50, 170, None, None),
    *rows("register", 10, 10_000, None, None),
    rows("register", 50, 10_000, None, None)[0],
    *rows("map", 10, 170, 0.55, 0.55),
    *rows("map", 10, 1_000, None, None),
    *rows("map", 50, 1_000, 110, 110),
    *rows("map", 10, 10_000, None, None),
    *rows("map", 50, 10_000, 110, 110),
    Benchmark(
        "linearize: map, 10 clients, 170 operations, keys together", long("map", 10, 170, True, WHOLE, 3),
        "ms", 1250,
    ),
    Benchmark("linearize: queue, a million operations", lambda: monitored(False), "s", 10),
    Benchmark("linearize: stack, a million operations", lambda: monitored(True), "s", 10),
    Benchmark("linearize: memory of a search bounded by 64 MiB each", kept, "MiB", 192),
)  # fmt: skip
