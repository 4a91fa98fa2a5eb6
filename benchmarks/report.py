"""The page about a run: time to make it, and its size.

Each violation has a different signature, which makes the page as large as it can be.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pyarrow as pa

from benchmarks.measure import Benchmark
from pulsar_ml.campaign.store.columns import SPENT
from pulsar_ml.campaign.store.read_run import open_run
from pulsar_ml.campaign.store.schema import ROW, split
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.report.findings import gather
from pulsar_ml.report.page import render
from pulsar_ml.report.traces import trace_views

COUNTS = (10, 1_000, 10_000)
STARTED = datetime(2025, 1, 2, 3, 4, tzinfo=UTC)


def write_run(directory: Path, violations: int) -> None:
    """Writes a run with this many trials of the engine, each with a different violation."""
    store = RunStore(directory)
    store.write_run({"run_id": "made-up", "status": "finished", "build_id": "none", "host": "here"})
    trials, found = split(
        pa.Table.from_pylist([row(seed) for seed in range(violations)], schema=ROW)
    )
    store.write_wave(0, trials, found)


def row(seed: int) -> dict[str, object]:
    record = ReplayRecord(
        suite="made_up", seed=seed, threads=2, operations=5, noise=False, settings={"size": 4},
        build_id="none", module="none", invariant=f"I{seed % 90}", message="x",
    )  # fmt: skip
    return {
        "run_id": "made-up", "chunk_id": seed // 100, "suite": f"suite_{seed % 4}", "seed": seed,
        "build_id": "none", "threads": 2, "operations": 10, "overlaps": 0, "runs": 0, "engine": "controlled",
        "mode": "c11", "strategy": "portfolio", "executions": 1_000, "steps": 30_000,
        "classes": 1 + 40_000 // (seed + 100), "once": 1, "cut": seed % 3,
        "exhausted": "", "bounds": "", "part": "", "rest": "", "judged": 0, "unknown": 0,
        "duration_us": 2_000, **dict.fromkeys(SPENT, 300), "verdict": "violation", "host": "here",
        "finished_at": STARTED.replace(minute=seed // 200 % 60), "wall_us": 2_000, "attempt": 0,
        "sketch": (),
        "violations": [
            {
                "invariant": f"I{seed % 90}", "signature": f"{seed:012x}", "phase": "running",
                "message": f"the count is {seed} behind the {seed * seed} of another thread",
                "replay": record.to_json(), "executor": "", "log": "", "unlisted": 0,
            }
        ],
    }  # fmt: skip


@cache
def directory(violations: int) -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory()
    write_run(Path(folder.name) / "run", violations)
    return folder


def page(violations: int) -> str:
    found = gather(open_run(Path(directory(violations).name) / "run"))
    records = list(trace_views(found.summary.in_order(), most=0))
    return render(found, records, made_at=STARTED)


def milliseconds(violations: int) -> Callable[[], float]:
    def run() -> float:
        directory(violations)
        started = time.perf_counter()
        page(violations)
        return 1e3 * (time.perf_counter() - started)

    return run


def kilobytes(violations: int) -> Callable[[], float]:
    return lambda: len(page(violations).encode()) / 1e3


BENCHMARKS = [
    benchmark
    for count in COUNTS
    for benchmark in (
        Benchmark(f"report: page of {count:,} violations", milliseconds(count), unit="ms"),
        Benchmark(f"report: its size with {count:,} violations", kilobytes(count), unit="kB"),
    )
]
