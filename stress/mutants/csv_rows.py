"""Tables of results as CSV files, read and written as rows of a dataclass."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from pulsar_ml.errors import BadRecordError
from pulsar_ml.input_files import bounded_text, one_line

T = TypeVar("T")


def read_rows(path: Path, kind: type[T]) -> list[T]:
    """The rows of a table whose columns are the fields of ``kind``.

    Raises BadRecordError with the damaged line.
    """
    row_type: Any = kind
    columns = {field.name: field.type for field in fields(row_type)}
    reader = csv.DictReader(io.StringIO(bounded_text(path, "the table")))
    try:
        if reader.fieldnames is None or set(reader.fieldnames) != set(columns):
            raise ValueError(f"its columns should be {', '.join(columns)}")
        return [
            row_type(**{name: convert(columns[name], line[name]) for name in columns})
            for line in reader
        ]
    except (csv.Error, ValueError) as error:
        raise BadRecordError(
            f"{path} is damaged at line {reader.line_num}: {one_line(error)}"
        ) from None


def convert(kind: object, text: str | None) -> str | int:
    if text is None:
        raise ValueError("it is too short")
    return int(text) if kind in {int, "int"} else text


def write_rows(path: Path, kind: type[T], rows: Iterable[T]) -> None:
    """Writes a table as a whole: readers see the old file or the new one."""
    row_type: Any = kind
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(row_type)], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        values: Any = row
        writer.writerow(asdict(values))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".new")
    partial.write_text(text.getvalue())
    partial.replace(path)
