"""Rows travel to the driver as bytes; no JVM is started."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pulsar_ml.distributed.jobs import as_bytes, table_of

SCHEMA = pa.schema([pa.field("seed", pa.int64(), nullable=False), pa.field("name", pa.string())])


def batch(*seeds: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"seed": list(seeds), "name": ["x"] * len(seeds)})


def test_rows_arrive_in_their_order_and_in_the_types_that_were_asked_for() -> None:
    found = table_of([as_bytes(batch(3, 1)), as_bytes(batch(2))], SCHEMA)
    assert found.schema.equals(SCHEMA)
    assert found["seed"].to_pylist() == [3, 1, 2]
    assert table_of([], SCHEMA).num_rows == 0


def test_rows_of_other_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="names"):
        table_of([as_bytes(batch(1).select(["name"]))], SCHEMA)
