"""The engine on the suites: its speed, and how many times longer executions take with a model.

Each suite with a model runs small programs on one core in mode c11, with the race detector: once
without the model, and once with a new judge that compares every history with it. Three programs
have 2,000 executions each, thirty 200, as many as a trial of a sweep makes by default, and ninety
64, as ``pulsar-ml explore`` does: the fewer executions of a program, the more of their histories
are new. A row has the floor of the first ones: executions that are not judged, and the model's own
methods in Python.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.measure import Benchmark
from pulsar_ml.campaign.trial.controlled import program_of
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.harness.judges.judge import ModelJudge
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.operations import _checked
from pulsar_ml.suites.registry import SUITES

SEED = 1
METHODS = ("step", "concurrent", "begins", "happens", "hidden", "canonical")  # of models


class Amount(NamedTuple):
    """Programs, and executions of each of them."""

    programs: int
    executions: int


LONG, TRIED, EXPLORED = Amount(3, 2_000), Amount(30, 200), Amount(90, 64)


class Speed(NamedTuple):
    """Executions and steps per second of processor time."""

    executions: float
    steps: float


class Clock:
    """The seconds in the methods of a model, of which one calls another."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.inside = False

    def timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **more: Any) -> Any:
            if self.inside:
                return method(*arguments, **more)
            self.inside, started = True, time.perf_counter()
            try:
                return method(*arguments, **more)
            finally:
                self.seconds += time.perf_counter() - started
                self.inside = False

        return run

    def on(self, kind: type) -> type:
        """Return a model whose methods are timed."""
        own = {name: self.timed(getattr(kind, name)) for name in METHODS if hasattr(kind, name)}
        return type(kind.__name__, (kind,), own)


def speed(name: str, judged: bool, amount: Amount = LONG, clock: Clock | None = None) -> Speed:
    suite = SUITES[name]
    subject = _checked.SUBJECTS[suite.subject]
    kind = importlib.import_module(suite.model).Model
    judge = ModelJudge(clock.on(kind) if clock else kind) if judged else None
    executions, steps, seconds = 0, 0, 0.0
    for number in range(amount.programs):
        program = program_of(subject, suite, SEED + number, TrialOptions())
        done = explore(
            subject,
            program,
            executions=amount.executions,
            seed=SEED,
            judge=judge,
            reuse="mixed",
        )
        if done.failure is not None:
            raise RuntimeError(f"{suite.name}: {done.failure.kind}: {done.failure.message}")
        executions += done.executions
        steps += done.statistics["steps"]
        seconds += done.seconds
    return Speed(executions / seconds, steps / seconds)


def rate(name: str, judged: bool) -> Callable[[], float]:
    """Thousand executions a second."""
    return lambda: speed(name, judged).executions / 1e3


def slower(name: str, amount: Amount) -> Callable[[], float]:
    return lambda: speed(name, False, amount).executions / speed(name, True, amount).executions


def floor(name: str) -> float:
    """Return how many times longer executions take by the methods of the model alone."""
    clock = Clock()
    speed(name, True, clock=clock)
    return 1 + clock.seconds * speed(name, False).executions / (LONG.programs * LONG.executions)


def rows(name: str) -> tuple[Benchmark, ...]:
    return (
        Benchmark(
            f"judging: {name}, steps, not judged",
            lambda: speed(name, False).steps / 1e6, "M/s",
        ),
        Benchmark(f"judging: {name}, not judged", rate(name, False), "k/s"),
        Benchmark(f"judging: {name}, judged", rate(name, True), "k/s"),
        Benchmark(f"judging: {name}, times longer", slower(name, LONG), "x", 2),
        Benchmark(f"judging: {name}, times longer, 200 executions", slower(name, TRIED), "x"),
        Benchmark(f"judging: {name}, times longer, 64 executions", slower(name, EXPLORED), "x"),
        Benchmark(f"judging: {name}, times longer, its floor", lambda: floor(name), "x"),
    )  # fmt: skip


BENCHMARKS = tuple(row for name, suite in SUITES.items() if suite.model for row in rows(name))
