"""Benchmarks, their repeats, and the display of their progress."""

from __future__ import annotations

import os
import shlex
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
from pulsar_ml.harness.building.inlining import inlining_flags
from pulsar_ml.harness.building.load import load_extension
from pulsar_ml.operations._native import BUILD_ID

HERE = Path(__file__).resolve().parent
LEAST_REPEATS = 3
LINE_SECONDS = 2.0  # between two lines of progress


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One row of the table.

    Only rows that do not depend on the machine have a target: ratios of two measurements of the
    same repeat, and counts of bytes and rows.

    Attributes:
        run: prepares, measures once and returns the figure in ``unit``.
        target: an upper bound of the figure, or a lower one if ``at_least``.
        about: explains the row, if its name does not.
        enough: for slow rows: no more than three repeats if the lowest and the highest figure
            differ by at most this share of the median.
    """

    name: str
    run: Callable[[], float]
    unit: str = "ns"
    target: float | None = None
    at_least: bool = False
    about: str = ""
    enough: float | None = None

    def settled(self, samples: Sequence[float]) -> bool:
        """Returns true if the repeats so far agree."""
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
    whole: bool  # false if it was interrupted

    @property
    def met(self) -> bool | None:
        """True if the target was met; None without a target."""
        target = self.benchmark.target
        if target is None:
            return None
        return self.median >= target if self.benchmark.at_least else self.median <= target


@cache
def loops(module: str = "loops") -> ModuleType:
    """The native loops of this build of the core, compiled as the core is at first use."""
    into = HERE.parent / "build" / "benchmarks" / BUILD_ID
    flags = inlining_flags(shlex.split(os.environ.get("CC") or "cc"))
    source = HERE / "loops" / f"{module}.pyx"
    return load_extension(build_extension(source, into=into, flags=flags))


def figure(benchmark: Benchmark, samples: Sequence[float], *, whole: bool = True) -> Figure:
    return Figure(
        benchmark, statistics.median(samples), min(samples), max(samples), len(samples), whole
    )


# Called before each repeat with the row's name, its number and the number of the repeat, from 0.
OnRepeat = Callable[[str, int, int], object]


def measure(
    benchmarks: Sequence[Benchmark], repeats: int, figures: list[Figure], on_repeat: OnRepeat
) -> None:
    """Adds a figure for each benchmark to ``figures``, even if it is interrupted."""
    for number, benchmark in enumerate(benchmarks):
        samples: list[float] = []
        whole = False
        try:
            for repeat in range(repeats):
                if benchmark.settled(samples):
                    break
                on_repeat(benchmark.name, number, repeat)
                samples.append(benchmark.run())
            whole = True
        finally:
            if samples:
                figures.append(figure(benchmark, samples, whole=whole))


@contextmanager
def progress(console: Console, rows: int, repeats: int) -> Iterator[OnRepeat]:
    """Shows the current row: a bar on a terminal, a line every two seconds elsewhere."""
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

    def on_repeat(name: str, number: int, repeat: int) -> None:
        nonlocal now
        now = f"{name}: row {number + 1} of {rows}, repeat {repeat + 1} of {repeats}"

    def lines() -> None:
        while not ended.wait(LINE_SECONDS):
            if now:
                console.print(now, highlight=False, soft_wrap=True, markup=False)

    thread = threading.Thread(target=lines, daemon=True)
    thread.start()
    try:
        yield on_repeat
    finally:
        ended.set()
        thread.join()


def per_operation(loop: str, count: int, *, module: str = "loops") -> Callable[[], float]:
    """A run that calls ``<module>.<loop>(count)`` and returns nanoseconds of one operation."""
    return lambda: float(getattr(loops(module), loop)(count)) / count


def ratio(run: Callable[[], float], floor: Callable[[], float]) -> Callable[[], float]:
    """A run that measures two figures, one after the other, and divides the first by the second."""
    return lambda: run() / floor()


def in_threads(functions: Sequence[Callable[[], int]]) -> list[int]:
    """Runs the functions at the same time and returns their results."""
    results = [0] * len(functions)

    def call(index: int) -> None:
        results[index] = functions[index]()

    threads = [threading.Thread(target=call, args=(index,)) for index in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
