"""The rows of a campaign as Arrow schemas: one row per trial, one per violation, one per chunk.

Runners return ``ROW``: a trial with its violations nested, so that a chunk is one batch and a trial
never arrives without its violations. Files hold the flat tables ``TRIALS``, ``VIOLATIONS`` and
``CHUNKS``. The version is in the metadata of each file; it changes when a column does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_ml.campaign.store.columns import (
    INT32,
    INT64,
    KEY,
    MEASURED,
    SCHEMA_VERSION,
    SPENT,
    STRING,
    TIME,
    VIOLATION,
    Column,
)
from pulsar_ml.campaign.store.sketch import union

VERSION_KEY = b"pulsar_ml.schema_version"
METADATA = {VERSION_KEY: str(SCHEMA_VERSION).encode()}

VERDICTS = ("clean", "violation", "nothing_exercised")

_KINDS = {
    STRING: pa.string(),
    INT32: pa.int32(),
    INT64: pa.int64(),
    TIME: pa.timestamp("us", tz="UTC"),
}


def _fields(columns: Sequence[Column]) -> list[pa.Field]:
    return [pa.field(column.name, _KINDS[column.kind], nullable=False) for column in columns]


_KEY, _MEASURED, _FOUND = _fields(KEY), _fields(MEASURED), _fields(VIOLATION)

_COPIED = {"threads", "engine", "mode", "strategy", "duration_us", "host", "finished_at"}
_OF_TRIAL = [field for field in _MEASURED if field.name in _COPIED]

TRIALS = pa.schema(_KEY + _MEASURED, metadata=METADATA)
VIOLATIONS = pa.schema(_KEY + _FOUND + _OF_TRIAL, metadata=METADATA)

# Facts of the ledger that the tables do not have.
LEDGER_ONLY = (
    pa.field(
        "wall_us", pa.int64(), nullable=False
    ),  # wall time of the chunk, with starting processes
    pa.field("attempt", pa.int32(), nullable=False),  # 0 is the first
    pa.field("sketch", pa.list_(pa.int64()), nullable=False),  # see pulsar_ml.campaign.store.sketch
)
ROW = pa.schema(
    [
        *_KEY,
        *_MEASURED,
        pa.field("violations", pa.list_(pa.struct(_FOUND)), nullable=False),
        *LEDGER_ONLY,
    ]
)

# Columns of trials that the ledger sums under the same name.
SUMMED = (
    "operations",
    "overlaps",
    "runs",
    "executions",
    "steps",
    "classes",
    "once",
    "cut",
    "judged",
    "unknown",
    *SPENT,
)
# Counts: trials with each verdict, violations, executions of trials that exercised something,
# trials with a proof, microseconds inside trials.
COUNTED = ("trials", *VERDICTS, "violations", "telling", "exhausted", "busy_us")


def _chunk_field(name: str) -> pa.Field:
    known = {field.name: field for field in (*_KEY, *_MEASURED, *LEDGER_ONLY)}
    if name in known and name not in COUNTED:
        return known[name]
    return pa.field(name, pa.int64(), nullable=False)


_OF_CHUNK = (
    "run_id",
    "chunk_id",
    "suite",
    "build_id",
    "engine",
    "mode",
    "strategy",
    "seed_lo",
    "seed_hi",
)
CHUNKS = pa.schema(
    [
        _chunk_field(name)
        for name in (
            *_OF_CHUNK,
            *COUNTED,
            *SUMMED,
            "wall_us",
            "attempt",
            "host",
            "finished_at",
            "sketch",
        )
    ],
    metadata=METADATA,
)


def batch_of(
    rows: Sequence[Mapping[str, object]], *, wall_us: int, attempt: int = 0
) -> pa.RecordBatch:
    """Make a batch of ``ROW`` from rows by :func:`pulsar_ml.campaign.trial.chunk.row`.

    The first row carries the facts of the whole chunk that only the ledger has.
    """
    sketches: list[object] = [row["sketch"] for row in rows]
    lines = [{**row, "wall_us": 0, "attempt": attempt, "sketch": ()} for row in rows]
    lines[0] |= {"wall_us": wall_us, "sketch": union(sketches)}  # type: ignore[arg-type]
    return pa.RecordBatch.from_pylist(lines, schema=ROW)


def split(rows: pa.Table | pa.RecordBatch) -> tuple[pa.Table, pa.Table]:
    """Split rows with nested violations into the tables ``TRIALS`` and ``VIOLATIONS``."""
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    trials = table.select(TRIALS.names).cast(TRIALS)
    nested = table["violations"].combine_chunks()
    found = pc.list_flatten(nested)
    parents = trials.take(pc.list_parent_indices(nested))
    columns = []
    for field in VIOLATIONS:
        source = (
            parents[field.name]
            if field.name in TRIALS.names
            else pc.struct_field(found, field.name)
        )
        columns.append(source)
    return trials, pa.table(columns, names=VIOLATIONS.names).cast(VIOLATIONS)
