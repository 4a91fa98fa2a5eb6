"""The linearizability checker: short histories a second, and long histories of concurrent clients.

Histories come from seeds, in the shape of published measurements of checkers
(``pulsar_ml.harness.histories.published``): registers of 100 and 170 operations by five clients,
about a sixth of which never return, and key-value maps whose 10 or 50 clients are always inside an
operation. Figures are medians over 12 histories (3 if they have 10,000 operations), and the slowest
history. Every history is checked by a new checker. Registers and maps of strings need no model in
Python; rows with "Python model" use one all the same, as a user's own model would be used, and rows
with "kept checker" reuse the checker, as a campaign does. A history without a verdict counts as
infinite.

Behind these come the rows beside Porcupine (``benchmarks/histories/porcupine.py``), some 500: use
``--repeats 1``.
"""

from __future__ import annotations

import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.histories.porcupine import BENCHMARKS as BESIDE_PORCUPINE
from benchmarks.measure import Benchmark
from pulsar_ml.harness.histories.files import save_history
from pulsar_ml.harness.histories.generated import Cell, Line, short_cache_runs, simulate
from pulsar_ml.harness.histories.history import Call, History, Operation, history_of
from pulsar_ml.harness.histories.published import etcd_register, key_value
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, UNKNOWN, ModelChecker, Options, check
from pulsar_ml.harness.models import CasRegister, EvictingMap, KeyValueMap, Queue, Register, Stack

RUNS = 5_000
ROWS = 200_000
MEMORY = 64 << 20
REGISTERS = 100  # histories, about as many as were published
SEEDS = 40
LONG_REGISTERS = {1_000: 100, 10_000: 20}  # histories by their operations

QUICK = Options(explain=False)  # with the bounds that the command has
WHOLE = Options(explain=False, partition=False)
IN_PYTHON = Options(explain=False, most_steps=50_000, natively=False)  # medians are far below
LONG = Options(explain=False, most_steps=500_000)
FASTEST, SECOND_SLOWEST, SLOWEST = 0, -2, -1


@cache
def runs() -> tuple[History, NDArray[np.void]]:
    """Many executions of one program, repeated as often as in campaigns of small programs."""
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


Histories = Callable[[], Sequence[History]]


@cache
def registers(operations: int) -> tuple[History, ...]:
    """Histories of a system that mostly answers from the past, so that most are illegal."""
    count = LONG_REGISTERS.get(operations, REGISTERS)
    return tuple(
        etcd_register(seed, operations=operations, broken=seed % 10 > 0) for seed in range(count)
    )


def chosen(
    histories: Iterable[History], model: Callable[[], Any], operations: int, broken: bool
) -> list[History]:
    """Some histories of a correct system, or some illegal ones of a broken system."""
    count = 3 if operations > 5_000 else 12
    if not broken:
        return list(itertools.islice(histories, count))
    illegal = (one for one in histories if check(one, model(), options=QUICK).answer == ILLEGAL)
    found = list(itertools.islice(illegal, count))
    if not found:
        raise RuntimeError(f"no seed made an illegal history of {operations} operations")
    return found


@cache
def maps(clients: int, operations: int, broken: bool) -> list[History]:
    histories = (
        key_value(seed, clients=clients, operations=operations, broken=broken)
        for seed in range(SEEDS)
    )
    return chosen(histories, KeyValueMap, operations, broken)


@cache
def cells(clients: int, operations: int, broken: bool) -> list[History]:
    """Registers of a hundred values with clients that are always inside an operation."""
    histories = (
        simulate(
            Cell(100), seed=seed, clients=clients, operations=operations, busy=1.0,
            stale_at=0.5 if broken else None,
        )
        for seed in range(SEEDS)
    )  # fmt: skip
    return chosen(histories, Register, operations, broken)


def spent(
    histories: Sequence[History], model: type, options: Options, known: bool = False
) -> list[float]:
    """Milliseconds of each check, ascending; infinite without a verdict."""
    taken = []
    for history in histories:
        checker = None
        if known:
            checker = ModelChecker(model(), history.signatures, history.values)
            check(history, model(), options=options, checker=checker)
        started = time.thread_time()
        verdict = check(history, model(), options=options, checker=checker)
        taken.append((time.thread_time() - started) * 1e3)
        if verdict.answer == UNKNOWN:
            taken[-1] = float("inf")
    return sorted(taken)


def timed(
    histories: Histories,
    model: type,
    which: int | None = None,
    options: Options = QUICK,
    known: bool = False,
) -> Callable[[], float]:
    """Milliseconds of the median history, or of one by its rank."""

    def run() -> float:
        taken = spent(histories(), model, options, known)
        return statistics.median(taken) if which is None else taken[which]

    return run


def register_rows(operations: int) -> list[Benchmark]:
    histories = partial(registers, operations)
    name = f"linearize: register, 5 clients, {operations} operations, "
    return [
        Benchmark(name + "fastest of 100", timed(histories, CasRegister, FASTEST), "ms"),
        Benchmark(name + "median", timed(histories, CasRegister), "ms"),
        Benchmark(
            name + "median, Python model", timed(histories, CasRegister, options=IN_PYTHON), "ms"
        ),
        Benchmark(name + "second slowest", timed(histories, CasRegister, SECOND_SLOWEST), "ms"),
        Benchmark(name + "slowest", timed(histories, CasRegister, SLOWEST), "ms"),
    ]


def answered(operations: int) -> float:
    """Percent of the histories that are found legal or illegal."""
    taken = spent(registers(operations), CasRegister, LONG)
    return 100 * sum(one < float("inf") for one in taken) / len(taken)


def long_register_rows(operations: int) -> list[Benchmark]:
    name = f"linearize: register, 5 clients, {operations} operations, "
    about = f"of {LONG_REGISTERS[operations]} histories, in half a million steps"
    return [
        Benchmark(
            name + "median", timed(partial(registers, operations), CasRegister, options=LONG), "ms"
        ),
        Benchmark(name + "answered", partial(answered, operations), "%", about=about),
    ]


def pair(
    name: str, source: Callable[[int, int, bool], Sequence[History]], clients: int, operations: int,
    model: type,
) -> list[Benchmark]:  # fmt: skip
    rows = []
    for kind, broken in (("legal", False), ("illegal", True)):
        row = f"linearize: {name}, {clients} clients, {operations} operations, {kind}"
        histories = partial(source, clients, operations, broken)
        rows.append(Benchmark(row, timed(histories, model), "ms"))
        rows.append(Benchmark(f"{row}, slowest", timed(histories, model, SLOWEST), "ms"))
    return rows


@cache
def million(stack: bool) -> History:
    return simulate(Line(stack=stack), seed=1, clients=10, operations=1_000_000)


def monitored(stack: bool) -> float:
    """Seconds for a million operations with distinct values."""
    history = million(stack)
    model: Any = Stack() if stack else Queue()
    started = time.thread_time()
    verdict = check(history, model)
    taken = time.thread_time() - started
    if verdict.answer != LEGAL:
        raise RuntimeError(f"a legal history was found {verdict.answer}")
    return taken


def held() -> float:
    """MiB that a search holds if it is limited to MEMORY and needs more."""
    history = simulate(Line(), seed=1, clients=12, operations=400)
    checker = ModelChecker(Queue(), history.signatures, history.values, memory=MEMORY)
    options = Options(
        monitors=False, explain=False, natively=False, memory=MEMORY, most_steps=2_000_000
    )
    verdict = check(history, Queue(), options=options, checker=checker)
    if verdict.answer != UNKNOWN:
        raise RuntimeError(f"a search that should need more memory found {verdict.answer}")
    return (checker.native.bytes() + checker.state_bytes) / 2**20


KEPT_LIMIT = 3 * MEMORY / 2**20  # states, answers and configurations

COLD = "processor time of a process, as a multiple of that of python -c"


def small_file(folder: str) -> list[str]:
    """Return the arguments of Python that check a history of two operations."""
    operations = [
        Operation(0, "write", (1,), None, 10, 15),
        Operation(1, "read", (), 1, 12, 14),
    ]
    path = Path(folder) / "history.jsonl"
    save_history(history_of(operations), path)
    command = ["-m", "pulsar_ml", "linearize", str(path), "--model", "register"]
    of_process(command)  # writes the bytecode that an installed package has
    return command


def cold_start(code: str) -> float:
    """Return how often the command on a history of two operations takes the time of ``code``."""
    with tempfile.TemporaryDirectory() as folder:
        command = small_file(folder)
        ours, others = zip(
            *((of_process(command), of_process(["-c", code])) for _ in range(5)), strict=True
        )
    return float(statistics.median(ours) / statistics.median(others))


def cold_milliseconds() -> float:
    """Return the processor time of the command on a history of two operations."""
    with tempfile.TemporaryDirectory() as folder:
        command = small_file(folder)
        return 1e3 * statistics.median(of_process(command) for _ in range(5))


class Slow(KeyValueMap):
    """A map whose steps take some hundred microseconds, as those of a user's model may."""

    def step(self, state: Any, call: Call) -> Any:
        sum(range(10_000))
        return super().step(state, call)


@cache
def many_keys() -> History:
    return key_value(1, clients=50, operations=20_000, keys=500)


def by_two_workers() -> float:
    """Return how often one process takes as long as two workers, each on a processor of its own.

    That is processor time: on a busy machine the clock tells how much of it both were granted.
    """
    seconds = []
    for workers in (1, 2):
        options = Options(explain=False, natively=False, workers=workers)
        started, before = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN)
        if check(many_keys(), Slow(), options=options).answer != LEGAL:
            raise RuntimeError("a legal history of many keys was not found legal")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        of_workers = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        seconds.append(time.process_time() - started + of_workers / workers)
    return seconds[0] / seconds[1]


def of_process(arguments: Sequence[str]) -> float:
    """Return the seconds of processor time of Python with these arguments."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, env=environment, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


BENCHMARKS = (
    Benchmark(
        "linearize: 3 threads, 12 operations, outcome table", short(True), "M/s"
    ),
    Benchmark("linearize: 3 threads, 12 operations, search", short(False), "M/s"),
    *register_rows(100),
    *register_rows(170),
    *long_register_rows(1_000),
    *long_register_rows(10_000),
    *pair("busy register", cells, 10, 170, Register),
    *pair("busy register", cells, 50, 170, Register),
    *pair("busy register", cells, 10, 10_000, Register),
    *pair("busy register", cells, 50, 10_000, Register),
    *pair("map", maps, 10, 170, KeyValueMap),
    *pair("map", maps, 10, 300, KeyValueMap),
    Benchmark(
        "linearize: map, 10 clients, 300 operations, legal, Python model",
        timed(partial(maps, 10, 300, False), KeyValueMap, options=IN_PYTHON), "ms",
    ),
    Benchmark(
        "linearize: map, 10 clients, 300 operations, legal, Python model, kept checker",
        timed(partial(maps, 10, 300, False), KeyValueMap, options=IN_PYTHON, known=True), "ms",
    ),
    *pair("map", maps, 50, 1_300, KeyValueMap),
    *pair("map", maps, 10, 10_000, KeyValueMap),
    *pair("map", maps, 50, 10_000, KeyValueMap),
    Benchmark(
        "linearize: map, 10 clients, 300 operations, keys together, legal",
        timed(partial(maps, 10, 300, False), KeyValueMap, options=WHOLE), "ms",
    ),
    Benchmark(
        "linearize: map, 10 clients, 300 operations, keys together, illegal",
        timed(partial(maps, 10, 300, True), KeyValueMap, options=WHOLE), "ms",
    ),
    Benchmark("linearize: queue, a million operations", lambda: monitored(False), "s"),
    Benchmark("linearize: stack, a million operations", lambda: monitored(True), "s"),
    Benchmark("linearize: memory of a search bounded by 64 MiB each", held, "MiB", KEPT_LIMIT),
    Benchmark("linearize: command on a small file, beside `import numpy`",
              lambda: cold_start("import numpy"), "x", about=COLD),
    Benchmark("linearize: command on a small file, beside `pass`",
              lambda: cold_start("pass"), "x", about=COLD),
    Benchmark("linearize: map of 500 keys, slow Python model, two workers beside one",
              by_two_workers, "x",
              about="processor time of one process, as a multiple of the path through two workers"),
    Benchmark("linearize: command on a small file", cold_milliseconds, "ms",
              about="processor time of a process, its imports included"),
    *BESIDE_PORCUPINE,
)  # fmt: skip
