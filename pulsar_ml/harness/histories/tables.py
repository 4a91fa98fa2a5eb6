"""Histories as tables of Parquet and Arrow.

A module of its own, imported when a table is read or written: the libraries of Arrow take longer to
import than the check of a small history in text.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from pulsar_ml.errors import BadRecordError
from pulsar_ml.harness.histories.headers import (
    KIND,
    OPTIONAL,
    TABLE_KEYS,
    VERSION,
    header,
    history_with,
)
from pulsar_ml.harness.histories.history import RECORD, History
from pulsar_ml.input_files import one_line
from pulsar_ml.versioned_json import check_keys, read_object

COLUMNS = tuple(name for name in RECORD.names or () if name != "moment")


def save_table(history: History, path: Path) -> None:
    arrays: dict[str, pa.Array] = {}
    for name in COLUMNS:
        column = history.records[name]
        if column.ndim == 1:
            arrays[name] = pa.array(np.ascontiguousarray(column))
        else:
            flat = pa.array(np.ascontiguousarray(column).ravel())
            arrays[name] = pa.FixedSizeListArray.from_arrays(flat, column.shape[1])
    table = pa.table(arrays).replace_schema_metadata({KIND: json.dumps(header(history))})
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd")
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)


def load_table(path: Path, form: str) -> History:
    try:
        if form == "parquet":
            table = pq.read_table(path)
        else:
            with pa.ipc.open_file(path) as reader:
                table = reader.read_all()
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # it cannot be read at all
        first = one_line(error)
        raise BadRecordError(
            f"{path.name} is damaged, truncated or no {form} file: {first}"
        ) from None
    text = (table.schema.metadata or {}).get(KIND.encode())
    if text is None:
        raise BadRecordError(f"{path.name} is not a history: its metadata has no {KIND!r}")
    content = check_keys(
        read_object(text, path.name, kind=KIND, versions=(VERSION,)),
        TABLE_KEYS,
        path.name,
        optional=OPTIONAL,
    )
    records = np.zeros(len(table), RECORD)
    try:
        for name in COLUMNS:
            column = table.column(name).combine_chunks()
            if pa.types.is_fixed_size_list(column.type):
                column = column.flatten()
            if column.null_count or not pa.types.is_integer(column.type):
                raise ValueError(f"its column {name} should hold whole numbers")
            values = column.to_numpy(zero_copy_only=False)
            records[name] = values.reshape(records[name].shape)
    except (KeyError, ValueError, pa.ArrowException) as error:
        raise BadRecordError(f"{path.name} is damaged: {one_line(error)}") from None
    return history_with(content, records, path.name)
