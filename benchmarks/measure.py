"""What a benchmark is, how it is repeated, and how far that is."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.load import load_extension
from pulsar_ml.operations._native import BUILD_ID

HERE = Path(__file__).resolve().parent
LEAST_REPEATS = 3
LINE_SECONDS = 2.0  # between two lines of progress


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One row of the table.

    ``run`` prepares what it needs, measures once and returns the figure in ``unit``. ``target`` is an
    upper bound, or a lower one when ``at_least``. ``about`` says what the row is, where its name does not.
    ``enough`` is for rows that take long: they are not repeated a fourth time when the lowest and the highest
    figure are within so much of the median.
    """

    name: str
    run: Callable[[], float]
    unit: str = "ns"
    target: float | None = None
    at_least: bool = False
    about: str = ""
    enough: float | None = None

    def settled(self, samples: Sequence[float]) -> bool:
        """Whether more repeats would say nothing new."""
        if self.enough is None or len(samples) < LEAST_REPEATS:
            return False
        return max(samples) - min(samples) <= self.enough * abs(statistics.median(samples))


@dataclass(frozen=True, slots=True)
class Figure:
    """The median of the repeats of one benchmark, and their extremes."""

    benchmark: Benchmark
    median: float
    low: float
    high: float
    repeats: int
    whole: bool  # it was not stopped

    @property
    def met(self) -> bool | None:
        """Whether the target was met, None without a target."""
        target = self.benchmark.target
        if target is None:
            return None
        return self.median >= target if self.benchmark.at_least else self.median <= target


@cache
def loops(module: str = "loops") -> ModuleType:
    """The native loops of this build of the core, compiled on first use below ``build/benchmarks``."""
    into = HERE.parent / "build" / "benchmarks" / BUILD_ID
    return load_extension(build_extension(HERE / f"{module}.pyx", into=into))


def figure(benchmark: Benchmark, samples: Sequence[float], *, whole: bool = True) -> Figure:
    return Figure(
        benchmark, statistics.median(samples), min(samples), max(samples), len(samples), whole
    )


Tell = Callable[[str, int, int], object]


def measure(
    benchmarks: Sequence[Benchmark], repeats: int, figures: list[Figure], tell: Tell
) -> None:
    """Adds a figure for each benchmark to ``figures``; one that is stopped is that of the repeats it had.

    ``tell`` is called before each repeat with the row's name, its number and that of the repeat, from 0.
    """
    for number, benchmark in enumerate(benchmarks):
        samples: list[float] = []
        whole = False
        try:
            for repeat in range(repeats):
                if benchmark.settled(samples):
                    break
                tell(benchmark.name, number, repeat)
                samples.append(benchmark.run())
            whole = True
        finally:
            if samples:
                figures.append(figure(benchmark, samples, whole=whole))


@contextmanager
def told(console: Console, rows: int, repeats: int) -> Iterator[Tell]:
    """Tells which row is measured: in a bar on a terminal, by a line now and then elsewhere."""
    if console.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=console, transient=True, refresh_per_second=2) as bar:
            task = bar.add_task("", total=rows)
            yield lambda name, number, repeat: bar.update(task, description=name, completed=number)
        return
    ended = threading.Event()
    now = ""

    def tell(name: str, number: int, repeat: int) -> None:
        nonlocal now
        now = f"{name}: row {number + 1} of {rows}, repeat {repeat + 1} of {repeats}"

    def lines() -> None:
        while not ended.wait(LINE_SECONDS):
            if now:
                console.print(now, highlight=False, soft_wrap=True, markup=False)

    thread = threading.Thread(target=lines, daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        ended.set()
        thread.join()


def per_operation(loop: str, count: int, *, module: str = "loops") -> Callable[[], float]:
    """A run that calls ``<module>.<loop>(count)``."""
    return lambda: getattr(loops(module), loop)(count) / count


def in_threads(functions: Sequence[Callable[[], int]]) -> list[int]:
    """Run the functions at the same time and return what each returned."""
    results = [0] * len(functions)

    def call(index: int) -> None:
        results[index] = functions[index]()

    threads = [threading.Thread(target=call, args=(index,)) for index in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
