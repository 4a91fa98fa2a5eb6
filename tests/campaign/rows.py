"""Invented trials: their rows depend on the seed alone and need no native code."""

from __future__ import annotations

import pyarrow as pa

from pulsar_ml.campaign.store.columns import SPENT
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions, TrialResult, Violation

BUILD_ID = "a-build"
JOB = Job("a-run", BUILD_ID, TrialOptions())
SUITE = Suite(name="made_up", subject="made_up", summary="Made up.")


def made_up_trial(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    """Break two invariants at seeds divisible by 5; exercise nothing at others divisible by 3."""
    violations: tuple[Violation, ...] = ()
    if seed % 5 == 0:
        violations = (
            Violation("I1", f"the count is {seed}, expected {seed + 1}", "running"),
            Violation("I2", f"entry 0x{seed:x} was freed twice", "quiescence"),
        )
    verdict = "violation" if violations else "nothing_exercised" if seed % 3 == 0 else "clean"
    record = ReplayRecord(
        suite=suite.name,
        seed=seed,
        threads=4,
        operations=100,
        noise=True,
        settings={"size": 7},
        build_id=BUILD_ID,
        module=options.module,
        invariant=violations[0].invariant if violations else None,
        message=violations[0].message if violations else None,
    )
    return TrialResult(
        suite=suite.name,
        seed=seed,
        build_id=BUILD_ID,
        threads=4,
        operations=400,
        overlaps=seed,
        pairs={},
        duration_ns=1000 * (seed + 1),
        verdict=verdict,
        violations=violations,
        replay=record,
        judged=10 * seed,
        unknown=seed % 2,
        once=seed,
        sketch=(seed,),
    )


def stable_rows(table: pa.Table) -> list[dict[str, object]]:
    """Return rows without the columns that differ between two runs: run, host and times."""
    differing = {
        "run_id",
        "host",
        "executor",
        "log",
        "finished_at",
        "duration_us",
        "wall_us",
        *SPENT,
    }
    rows = table.select([name for name in table.column_names if name not in differing]).to_pylist()
    number = "seed" if "seed" in table.column_names else "chunk_id"
    return sorted(rows, key=lambda row: (row["suite"], row[number]))
