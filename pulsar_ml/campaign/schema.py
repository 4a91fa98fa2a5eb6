"""The rows of a campaign as Arrow schemas: one row per trial, one row per violation.

Runners hand back ``ROW``: a trial with its violations nested, so that a chunk is one batch and a
trial never arrives without what it found. Files hold the two flat tables ``TRIALS`` and
``VIOLATIONS``. The version is in the metadata of each file; it changes when a column does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

SCHEMA_VERSION = 3  # 1 had no columns about the engine, 2 none about what a model was asked
VERSION_KEY = b"pulsar_ml.schema_version"
METADATA = {VERSION_KEY: str(SCHEMA_VERSION).encode()}

VERDICTS = ("clean", "violation", "nothing_exercised")

_KEY = [
    pa.field("run_id", pa.string(), nullable=False),
    pa.field("chunk_id", pa.int64(), nullable=False),
    pa.field("suite", pa.string(), nullable=False),
    pa.field("seed", pa.int64(), nullable=False),
    pa.field("build_id", pa.string(), nullable=False),
]
_MEASURED = [
    pa.field("threads", pa.int32(), nullable=False),
    pa.field("operations", pa.int64(), nullable=False),  # executed by all threads of the trial
    pa.field("overlaps", pa.int64(), nullable=False),  # pairs of operations that truly overlapped
    pa.field("engine", pa.string(), nullable=False),  # threads or controlled
    pa.field("mode", pa.string(), nullable=False),  # these and the next: empty or 0 for real threads
    pa.field("strategy", pa.string(), nullable=False),
    pa.field("executions", pa.int64(), nullable=False),
    pa.field("steps", pa.int64(), nullable=False),
    pa.field("classes", pa.int64(), nullable=False),  # executions that differ in what read from what
    pa.field("cut", pa.int64(), nullable=False),  # executions that the bound on steps ended
    pa.field("exhausted", pa.string(), nullable=False),  # what an exhaustive search proved
    pa.field("judged", pa.int64(), nullable=False),  # histories that were compared with the suite's model
    pa.field("unknown", pa.int64(), nullable=False),  # those of them that took too long to tell
    pa.field("duration_us", pa.int64(), nullable=False),
    pa.field("verdict", pa.string(), nullable=False),  # one of VERDICTS
    pa.field("host", pa.string(), nullable=False),
    pa.field("finished_at", pa.timestamp("us", tz="UTC"), nullable=False),
]
_FOUND = [
    pa.field("invariant", pa.string(), nullable=False),
    pa.field("signature", pa.string(), nullable=False),  # equal for violations that look alike
    pa.field("message", pa.string(), nullable=False),
    pa.field("phase", pa.string(), nullable=False),  # running or quiescence; a lost process: running
    pa.field("replay", pa.string(), nullable=False),  # a replay record or a failure, as JSON
]
_COPIED = {"threads", "engine", "mode", "strategy", "duration_us", "host", "finished_at"}
_OF_TRIAL = [field for field in _MEASURED if field.name in _COPIED]

TRIALS = pa.schema(_KEY + _MEASURED, metadata=METADATA)
VIOLATIONS = pa.schema(_KEY + _FOUND + _OF_TRIAL, metadata=METADATA)
ROW = pa.schema([*_KEY, *_MEASURED, pa.field("violations", pa.list_(pa.struct(_FOUND)), nullable=False)])


def batch_of(rows: Sequence[Mapping[str, object]]) -> pa.RecordBatch:
    """Rows of ``ROW``, as :func:`pulsar_ml.campaign.chunk.row` makes them."""
    return pa.RecordBatch.from_pylist(rows, schema=ROW)


def loose(schema: pa.Schema) -> pa.Schema:
    """The same columns with every field nullable: the only form that Spark's Arrow path gives."""

    def loosened(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_list(kind):
            return pa.list_(loosened(kind.value_type))
        if pa.types.is_struct(kind):
            return pa.struct([pa.field(field.name, loosened(field.type)) for field in kind])
        return kind

    return pa.schema([pa.field(field.name, loosened(field.type)) for field in schema])


def split(rows: pa.Table | pa.RecordBatch) -> tuple[pa.Table, pa.Table]:
    """The tables ``TRIALS`` and ``VIOLATIONS`` of rows with nested violations."""
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    trials = table.select(TRIALS.names).cast(TRIALS)
    nested = table["violations"].combine_chunks()
    found = pc.list_flatten(nested)
    parents = trials.take(pc.list_parent_indices(nested))
    columns = []
    for field in VIOLATIONS:
        source = parents[field.name] if field.name in TRIALS.names else pc.struct_field(found, field.name)
        columns.append(source)
    return trials, pa.table(columns, names=VIOLATIONS.names).cast(VIOLATIONS)
