"""The rows of a campaign as Arrow schemas: one row per trial, one per violation, one per chunk.

Runners return ``ROW``: a trial with its violations nested, so that a chunk is one batch and a trial
never arrives without its violations. Files hold the flat tables ``TRIALS``, ``VIOLATIONS`` and
``CHUNKS``. The version is in the metadata of each file; it changes when a column does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_ml.campaign.store.sketch import union

# 1 had no columns about the engine, 2 none about models, 3 none about logs and parts, and no table
# of chunks
SCHEMA_VERSION = 4
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
    pa.field("overlaps", pa.int64(), nullable=False),  # pairs of operations that overlapped
    pa.field("engine", pa.string(), nullable=False),  # threads or controlled
    pa.field(
        "mode", pa.string(), nullable=False
    ),  # this field to ``rest``: empty or 0 on real threads
    pa.field("strategy", pa.string(), nullable=False),
    pa.field("executions", pa.int64(), nullable=False),
    pa.field("steps", pa.int64(), nullable=False),
    pa.field(
        "classes", pa.int64(), nullable=False
    ),  # executions that differ in which store a load read
    pa.field("once", pa.int64(), nullable=False),  # classes seen exactly once
    pa.field("cut", pa.int64(), nullable=False),  # executions that the bound on steps ended
    pa.field("exhausted", pa.string(), nullable=False),  # what an exhaustive search proved
    pa.field("bounds", pa.string(), nullable=False),  # bounds that left executions out of it
    pa.field("part", pa.string(), nullable=False),  # the part of it that ran; "": the whole search
    pa.field("rest", pa.string(), nullable=False),  # the unfinished rest of that part
    pa.field("judged", pa.int64(), nullable=False),  # histories compared with the suite's model
    pa.field("unknown", pa.int64(), nullable=False),  # histories whose check ran out of its budget
    pa.field("duration_us", pa.int64(), nullable=False),
    pa.field("verdict", pa.string(), nullable=False),  # one of VERDICTS
    pa.field("host", pa.string(), nullable=False),
    pa.field("finished_at", pa.timestamp("us", tz="UTC"), nullable=False),
]
_FOUND = [
    pa.field("invariant", pa.string(), nullable=False),
    pa.field("signature", pa.string(), nullable=False),  # see pulsar_ml.campaign.trial.signature
    pa.field("message", pa.string(), nullable=False),
    pa.field(
        "phase", pa.string(), nullable=False
    ),  # running or quiescence; running if the process died
    pa.field("replay", pa.string(), nullable=False),  # a replay record or a failure, as JSON
    pa.field(
        "executor", pa.string(), nullable=False
    ),  # Spark's executor; this and ``log`` are empty elsewhere
    pa.field(
        "log", pa.string(), nullable=False
    ),  # path on the host, or URL, of the executor's output
    pa.field("unlisted", pa.int64(), nullable=False),  # violations of this signature without a row
]
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
    "executions",
    "steps",
    "classes",
    "once",
    "cut",
    "judged",
    "unknown",
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


def loose(schema: pa.Schema) -> pa.Schema:
    """Return the schema with every field nullable, the only form of Spark's Arrow path."""

    def loosened(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_list(kind):
            return pa.list_(loosened(kind.value_type))
        if pa.types.is_struct(kind):
            return pa.struct([pa.field(field.name, loosened(field.type)) for field in kind])
        return kind

    return pa.schema([pa.field(field.name, loosened(field.type)) for field in schema])


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
