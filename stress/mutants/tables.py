"""Tables of results as CSV, read as rows of a dataclass."""

from __future__ import annotations

import csv
import io
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from pulsar_ml.errors import BadRecordError
from pulsar_ml.input_files import bounded_text, one_line

T = TypeVar("T")


def rows(path: Path, kind: type[T]) -> list[T]:
    """The rows of a table with the columns of a dataclass. BadRecordError, with the line, for another."""
    made: Any = kind
    columns = {one.name: one.type for one in fields(made)}
    reader = csv.DictReader(io.StringIO(bounded_text(path, "the table")))
    try:
        if reader.fieldnames is None or set(reader.fieldnames) != set(columns):
            raise ValueError(f"its columns should be {', '.join(columns)}")
        return [
            made(**{name: convert(columns[name], line[name]) for name in columns})
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
