"""Runs for reports: invented rows, and failures of the engine's test programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from pulsar_ml.campaign.store.columns import violation_row
from pulsar_ml.campaign.store.merge import Summary, add
from pulsar_ml.campaign.store.schema import ROW, split
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.campaign.trial.controlled import as_violation
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.signature import signature
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.shrink import shrink
from tests.engine.programs.build_programs import program_of, programs

STARTED = datetime(2025, 1, 2, 3, 4, tzinfo=UTC)
BUILD_ID = "a-build"
HOSTILE = (
    "</script><img src=x onerror=\"document.title='taken'\"><!-- ${7*7} {{7*7}} `'\"&\x00\x1b[31m"
)


def row(
    seed: int, *, suite: str = "made_up", found: Sequence[Mapping[str, Any]] = (), **other: Any
) -> dict[str, Any]:
    """The row of a trial under the engine with these violations."""
    values: dict[str, Any] = dict.fromkeys(ROW.names, 0)
    values |= {
        "run_id": "made-up", "suite": suite, "seed": seed, "build_id": BUILD_ID, "threads": 2,
        "engine": "controlled", "mode": "c11", "strategy": "portfolio", "executions": 100,
        "steps": 1000, "classes": max(1, 40 - seed), "exhausted": "", "duration_us": 1000,
        "verdict": "violation" if found else "clean", "host": "here",
        "finished_at": STARTED + timedelta(seconds=seed), "violations": list(found), "sketch": (),
        "bounds": "", "part": "", "rest": "",
    }  # fmt: skip
    return values | other


def violation(
    invariant: str, message: str, *, suite: str = "made_up", seed: int = 0
) -> dict[str, Any]:
    """A violation with the record of a program on real threads."""
    record = ReplayRecord(
        suite=suite, seed=seed, threads=2, operations=5, noise=True, settings={"size": 4},
        build_id=BUILD_ID, module="pulsar_ml.operations._native",
        invariant=invariant, message=message,
    )  # fmt: skip
    return violation_row(
        invariant=invariant,
        signature=signature(suite, invariant, message),
        message=message,
        phase="running",
        replay=record.to_json(),
    )


def of_failure(failure: Failure, suite: str = "made_up") -> dict[str, Any]:
    found = as_violation(failure)
    return violation_row(
        invariant=found.invariant,
        signature=signature(suite, found.invariant, found.message, found.places),
        message=found.message,
        phase=found.phase,
        replay=found.record,
    )


@cache
def failure_of(name: str) -> Failure:
    """A shrunk failure of a test program from the module at :func:`module_path`."""
    subject = programs().SUBJECTS[name]
    found = explore(subject, program_of(name), executions=20_000, seed=11).failure
    assert found is not None
    return shrink(found, subject)


def module_path() -> str:
    path = programs().__file__
    assert path is not None
    return path


def write_run(directory: Path, rows: Iterable[Mapping[str, Any]], **facts: Any) -> Path:
    """Writes a run with these rows, like a sweep does."""
    store = RunStore(directory)
    trials, violations = split(pa.Table.from_pylist([dict(one) for one in rows], schema=ROW))
    store.write_wave(0, trials, violations)
    store.write_records(add(Summary(), trials, violations))
    store.write_run({"run_id": "made-up", "status": "finished", "build_id": BUILD_ID, **facts})
    return directory


def page_data(page: str) -> list[dict[str, Any]]:
    """The data of the page's script."""
    text = page.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    data: list[dict[str, Any]] = json.loads(text)
    return data


def engine_run(directory: Path) -> Path:
    """A run of four trials with three engine failures of two signatures."""
    failures = [of_failure(failure_of(name)) for name in ("race_met", "seqlock_fences")]
    rows = [
        row(0, found=failures[:1]),
        row(1),
        row(2, found=failures[1:]),
        row(3, found=failures[:1]),
    ]
    return write_run(directory, rows)
