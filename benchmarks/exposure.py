"""Exposure: the share of core time that sweeps spend inside concurrent runs, and their speed.

Each repeat sweeps all suites on real threads for a fixed time on the pool, then on embedded Spark,
and then makes native runs of the same programs in a bare loop of one process, which draws them and
does nothing else: no model is asked, no row written. Shares are of all cores for the whole sweep,
so other work on the machine counts as elsewhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import Benchmark
from pulsar_ml.campaign.store.exposure import RUN, WORDS

RUNNERS = {"pool": "the pool", "spark": "Spark"}
SECONDS = 60
BARE_RUNS_NS = 50_000_000  # of processor time inside the runs of a program in the bare loop
BARE_SECONDS = 10
MOST_NS = 10_000_000_000


def swept(runner: str) -> dict[str, float]:
    """Shares of core time by phase, and operations and overlaps a second, of one sweep."""
    with tempfile.TemporaryDirectory() as folder:
        words = ("sweep", "--runner", runner, "--seconds", str(SECONDS), "--json")
        done = subprocess.run(
            [sys.executable, "-m", "pulsar_ml", *words, "--out", str(Path(folder) / "run")],
            capture_output=True, text=True, check=True, cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip
    content: dict[str, Any] = json.loads(done.stdout)
    suites = content["suites"].values()
    return {
        **{phase: 100 * share for phase, share in content["core_time"].items()},
        **{
            name: sum(totals[name] for totals in suites) / content["seconds"] / 1e6
            for name in ("operations", "overlaps")
        },
    }


def bare() -> dict[str, float]:
    """Millions of operations and overlaps a second of native runs alone."""
    from pulsar_ml.campaign.trial.supervisor import fresh_large_blocks
    from pulsar_ml.campaign.trial.trial import (
        PRODUCT,
        TrialOptions,
        find_subject,
        load_native,
        size_of,
    )
    from pulsar_ml.harness.subjects.threads import run_programs
    from pulsar_ml.suites.registry import SUITES

    fresh_large_blocks()
    module, options = load_native(PRODUCT), TrialOptions()
    operations = overlaps = seed = 0
    began = time.monotonic()
    while time.monotonic() < began + BARE_SECONDS:
        for suite in SUITES.values():
            subject = find_subject(module, suite)
            size = size_of(suite, options)
            done = run_programs(subject, seed, **size, inside_ns=BARE_RUNS_NS, most_ns=MOST_NS)
            operations += done.operations
            overlaps += sum(map(sum, done.overlaps))
        seed += 1
    seconds = time.monotonic() - began
    return {"operations": operations / seconds / 1e6, "overlaps": overlaps / seconds / 1e6}


class Rounds:
    """The repeats, each measured when its first row is; the rows read their figures in turn."""

    def __init__(self) -> None:
        self.done: list[dict[str, dict[str, float]]] = []

    def row(self, figure: Callable[[dict[str, dict[str, float]]], float]) -> Callable[[], float]:
        """Return a run whose repeat N is the figure of round N."""
        turn = iter(range(sys.maxsize))

        def run() -> float:
            number = next(turn)
            while len(self.done) <= number:
                self.done.append({**{name: swept(name) for name in RUNNERS}, "bare": bare()})
            return figure(self.done[number])

        return run


ROUNDS = Rounds()


def figure_of(runner: str, name: str) -> Callable[[], float]:
    return ROUNDS.row(lambda measured: measured[runner][name])


def of_bare(runner: str, name: str) -> Callable[[], float]:
    return ROUNDS.row(lambda measured: measured[runner][name] / measured["bare"][name])


BENCHMARKS = (
    *(
        Benchmark(
            f"exposure: {words}, {place}", figure_of(runner, phase), "%",
            75.0 if phase == RUN else None, at_least=True,
        )
        for runner, place in RUNNERS.items()
        for phase, words in WORDS.items()
    ),
    *(
        Benchmark(f"exposure: {name}, {place}", figure_of(runner, name), "M/s")
        for name in ("operations", "overlaps")
        for runner, place in {**RUNNERS, "bare": "the bare loop"}.items()
    ),
    *(
        Benchmark(f"exposure: {name}, {place} by the bare loop", of_bare(runner, name), "x")
        for name in ("operations", "overlaps")
        for runner, place in RUNNERS.items()
    ),
)  # fmt: skip
