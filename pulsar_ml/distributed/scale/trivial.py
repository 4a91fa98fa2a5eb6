"""Trials that do nothing, so that a run shows the cost of everything around trials."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pulsar_ml.campaign.store.columns import violation_row
from pulsar_ml.campaign.store.schema import ROW
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions, TrialResult

if TYPE_CHECKING:
    from pulsar_ml.campaign.plan.plan import Chunk
    from pulsar_ml.campaign.trial.chunk import Job

SUITES = {"trivial": Suite(name="trivial", subject="trivial", summary="Does nothing.", threads=2)}
BUILD_ID = "trivial"
EVERY = 10_000  # of so many seeds, one has a violation
NAME = "pulsar_ml.distributed.scale.trivial"
ROWS = f"{NAME}:rows"


def rows(chunk: Chunk, job: Job) -> pa.RecordBatch:
    """The rows of a chunk, without running anything."""
    count = len(chunk)
    seeds = np.arange(chunk.seed_lo, chunk.seed_hi, dtype=np.int64)
    broken = seeds % EVERY == 0
    texts = {
        "run_id": job.run_id, "suite": chunk.suite, "build_id": job.build_id, "engine": "threads",
        "host": "somewhere",
    }  # fmt: skip
    numbers = {"threads": 2, "operations": 1000, "attempt": 0}
    noise = seeds * 2654435761 % 4093  # as hard to compress as what is measured
    values = {
        "chunk_id": pa.array(np.full(count, chunk.chunk_id, np.int64)),
        "seed": pa.array(seeds),
        "verdict": pc.if_else(pa.array(broken), "violation", "clean"),
        "overlaps": pa.array(noise),
        "duration_us": pa.array(1000 + noise // 3),
        "finished_at": pa.repeat(pa.scalar(datetime.now(UTC), pa.timestamp("us", "UTC")), count),
        "violations": violations(seeds, broken),
        "wall_us": pa.array(np.where(np.arange(count) == 0, count, 0)),
        "sketch": pa.ListArray.from_arrays(
            pa.array(np.minimum(np.arange(count + 1), 1), pa.int32()), pa.array([chunk.seed_lo])
        ),
    }
    columns = []
    for field in ROW:
        if field.name in values:
            columns.append(values[field.name].cast(field.type))
        elif pa.types.is_string(field.type):
            columns.append(pa.repeat(texts.get(field.name, ""), count))
        else:
            columns.append(pa.repeat(pa.scalar(numbers.get(field.name, 0), field.type), count))
    return pa.RecordBatch.from_arrays(columns, schema=ROW)


def violations(seeds: NDArray[np.int64], broken: NDArray[np.bool_]) -> pa.Array:
    """A list for each seed; those of broken ones have one."""
    kind = ROW.field("violations").type
    found = [
        violation_row(
            invariant="I0",
            signature="0123456789ab",
            message=f"seed {seed}",
            phase="running",
            replay="{}",
        )
        for seed in seeds[broken].tolist()
    ]
    offsets = np.concatenate([[0], np.cumsum(broken)])
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(found, kind.value_type), type=kind
    )


def trial(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    """Makes the result of one trial, for processes that run trials one by one."""
    from pulsar_ml.campaign.trial.record import ReplayRecord

    record = ReplayRecord(
        suite=suite.name,
        seed=seed,
        threads=2,
        operations=100,
        noise=True,
        settings={},
        build_id=BUILD_ID,
        module=options.module,
    )
    return TrialResult(
        suite=suite.name,
        seed=seed,
        build_id=BUILD_ID,
        threads=2,
        operations=100,
        overlaps=7,
        pairs={},
        duration_ns=1000,
        verdict="clean",
        violations=(),
        replay=record,
    )
