"""The cost of judging answers in the engine: how many times longer executions take with a model.

Each suite with a model runs three small programs on one core, 2,000 executions of each: once
without the model, and once with a new judge that compares every history with it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from benchmarks.measure import Benchmark
from pulsar_ml.campaign.trial.controlled import program_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.harness.judges.judge import ModelJudge
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.operations import _checked
from pulsar_ml.suites.registry import SUITES

PROGRAMS = 3
EXECUTIONS = 2_000  # of each
SEED = 1


def rate(suite: Suite, judged: bool) -> float:
    """Thousand executions per second of processor time."""
    subject = _checked.SUBJECTS[suite.subject]
    judge = ModelJudge(importlib.import_module(suite.model).Model) if judged else None
    executions, seconds = 0, 0.0
    for number in range(PROGRAMS):
        program = program_of(subject, suite, SEED + number, TrialOptions())
        done = explore(
            subject, program, executions=EXECUTIONS, seed=SEED, judge=judge, reuse="mixed"
        )
        if done.failure is not None:
            raise RuntimeError(f"{suite.name}: {done.failure.kind}: {done.failure.message}")
        executions += done.executions
        seconds += done.seconds
    return executions / seconds / 1e3


def judged(name: str) -> Callable[[], float]:
    return lambda: rate(SUITES[name], True)


def slower(name: str) -> Callable[[], float]:
    return lambda: rate(SUITES[name], False) / rate(SUITES[name], True)


def rows(name: str) -> tuple[Benchmark, ...]:
    return (
        Benchmark(f"judging: {name}, not judged", lambda: rate(SUITES[name], False), "k/s"),
        Benchmark(f"judging: {name}, judged", judged(name), "k/s"),
        Benchmark(f"judging: {name}, times longer", slower(name), "x", 2),
    )


BENCHMARKS = tuple(row for name, suite in SUITES.items() if suite.model for row in rows(name))
