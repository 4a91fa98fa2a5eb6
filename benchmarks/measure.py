"""What a benchmark is, and how it is repeated."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from pulsar_ml.harness.build import build_extension, load_extension
from pulsar_ml.operations._native import BUILD_ID

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One row of the table.

    ``run`` prepares what it needs, measures once and returns the figure in ``unit``. ``target`` is an
    upper bound, or a lower one when ``at_least``. ``about`` says what the row is, where its name does not.
    """

    name: str
    run: Callable[[], float]
    unit: str = "ns"
    target: float | None = None
    at_least: bool = False
    about: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """The median of the repeats of one benchmark, and their extremes."""

    benchmark: Benchmark
    median: float
    low: float
    high: float

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


def figure(benchmark: Benchmark, repeats: int) -> Figure:
    samples = [benchmark.run() for _ in range(repeats)]
    return Figure(benchmark, statistics.median(samples), min(samples), max(samples))


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
