"""Reads the directory of a run without trusting its content.

Files must be regular and bounded, versions known, and columns of their types; anything else raises
BadRecordError with one sentence. Rows come in batches of bounded size, so that a run of any length
can be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pulsar_ml.campaign.store.columns import SCHEMA_VERSION
from pulsar_ml.campaign.store.schema import METADATA, TRIALS, VIOLATIONS
from pulsar_ml.campaign.store.store import RUN_VERSION, SIGNATURE, waves_of
from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.input_files import bounded_text
from pulsar_ml.versioned_json import check_keys, check_object, mismatch, read_object

(VERSION_KEY,) = METADATA
BATCH_ROWS = 4096
MOST_BATCH_BYTES = 256 << 20  # of the strings of one batch
STATUSES = ("running", "finished", "interrupted", "failed", "stopped")

# The keys of run.json that readers use, with their types.
FACTS: dict[str, Any] = {
    **dict.fromkeys(
        ("run_id", "status", "build_id", "started_at", "finished_at", "problem", "host"), str | None
    ),
    **dict.fromkeys(("failures", "warnings"), list | None),
    **dict.fromkeys(("plan", "runner", "versions", "rounds", "search"), dict | None),
}


@dataclass(frozen=True, slots=True)
class SavedRun:
    """The directory of a run with the content of run.json; missing strings are empty."""

    directory: Path
    facts: Mapping[str, Any]

    def trials(self) -> Iterator[pa.Table]:
        return batches(self.files("trials"), TRIALS)

    def violations(self) -> Iterator[pa.Table]:
        return batches(self.files("violations"), VIOLATIONS)

    def rows(self) -> int:
        """The number of rows that the files declare."""
        files = [*self.files("trials"), *self.files("violations")]
        return sum(opened(path).metadata.num_rows for path in files)

    def files(self, table: str) -> list[Path]:
        """Return the files of a table, wave by wave; a wave without trials does not count yet."""
        paths = [self.directory / table / name for name in waves_of(self.directory)]
        return [path for path in paths if path.exists() or path.is_symlink()]

    def record(self, signature: str) -> Path | None:
        """Return the path of a signature's replay record, if there is one."""
        if not SIGNATURE.fullmatch(signature):
            return None
        path = self.directory / "records" / f"{signature}.json"
        return path if path.is_file() else None


def open_run(directory: Path) -> SavedRun:
    """Open the run in ``directory``. UsageError for none, BadRecordError for a damaged run.json."""
    path = directory / "run.json"
    if not directory.is_dir():
        raise UsageError(
            f"{directory} is not a directory; give the results directory of a run, as runs/ID"
        )
    if not path.exists():
        raise UsageError(
            f"{directory} has no run.json, so it is not the results directory of a run"
        )
    return SavedRun(directory, checked(json_object(path), path))


def json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file of a run."""
    return read_object(bounded_text(path, "the file"), str(path))


def checked(content: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the facts of run.json; an empty value of the right type stands for a missing one."""
    content = check_object(content, str(path), versions=range(1, RUN_VERSION + 1))
    found = check_keys(content, FACTS, str(path), optional=FACTS.keys(), others=True)
    for name, kind in FACTS.items():
        if found.get(name) is None:
            found[name] = get_args(kind)[0]()
    if found["status"] and found["status"] not in STATUSES:
        raise mismatch(str(path), "status", found["status"], f"one of {', '.join(STATUSES)}")
    return found


def batches(paths: Iterable[Path], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows of all files of a table, with this release's columns."""
    for path in paths:
        file = opened(path)
        missing = check_columns(file.schema_arrow, schema, path)
        names = [name for name in schema.names if name not in missing]
        try:
            for batch in file.iter_batches(BATCH_ROWS, columns=names):
                yield whole(batch, schema, path)
        except (pa.ArrowException, OSError, ValueError, IndexError) as error:
            raise damaged(path, error) from None


def opened(path: Path) -> pq.ParquetFile:
    """Open a file of rows; strings stay dictionaries, which are no larger than in the file."""
    try:
        if not path.is_file():
            raise BadRecordError(f"{path} is no plain file, so it is not part of a run")
        footer = pq.read_metadata(path)
        texts = [
            field.name
            for field in footer.schema.to_arrow_schema()
            if pa.types.is_string(field.type)
        ]
        file = pq.ParquetFile(path, metadata=footer, read_dictionary=texts)
        metadata = file.schema_arrow.metadata or {}
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise damaged(path, error) from None
    version = metadata.get(VERSION_KEY, b"").decode(errors="replace")
    if not version.isdecimal() or not 1 <= len(version) <= 9:
        raise BadRecordError(f"{path} has no version of a schema, so it is not part of a run")
    if int(version) > SCHEMA_VERSION:
        raise BadRecordError(
            f"{path} has version {version} of the schema, this release reads up to {SCHEMA_VERSION}; "
            "use a newer pulsar_ml"
        )
    return file


def check_columns(found: pa.Schema, schema: pa.Schema, path: Path) -> set[str]:
    """Return the columns that an older file lacks. BadRecordError for a column of a wrong type."""
    missing = set()
    for field in schema:
        if field.name not in found.names:
            missing.add(field.name)
            continue
        places = found.get_all_field_indices(field.name)
        kind = found.field(places[0]).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if len(places) > 1 or kind != field.type:
            raise BadRecordError(
                f"{path} is damaged: its column {field.name} should be of type {field.type}, not {kind}"
            )
    if {"suite", "seed"} & missing:
        raise BadRecordError(
            f"{path} is damaged: it has no column {min({'suite', 'seed'} & missing)}"
        )
    return missing


def whole(batch: pa.RecordBatch, schema: pa.Schema, path: Path) -> pa.Table:
    """Return a batch with all columns of the schema; columns its version lacks hold "" or 0."""
    size = 0
    columns = []
    for field in schema:
        if field.name not in batch.schema.names:
            columns.append(
                pa.repeat(pa.scalar("" if pa.types.is_string(field.type) else 0), len(batch))
            )
            continue
        column = batch.column(field.name)
        if pa.types.is_dictionary(column.type):
            column.validate(full=True)
            lengths = pc.binary_length(column.dictionary).take(column.indices)
            size += pc.sum(lengths).as_py() or 0
            if size > MOST_BATCH_BYTES:
                raise BadRecordError(
                    f"{path} is damaged: its strings are larger than any that a run writes"
                )
            column = column.dictionary_decode()
        if column.null_count:
            raise BadRecordError(f"{path} is damaged: its column {field.name} has nulls")
        if pa.types.is_timestamp(column.type) and not in_calendar(column):
            raise BadRecordError(f"{path} is damaged: its column {field.name} has no such dates")
        columns.append(column)
    table = pa.table(columns, names=schema.names).cast(schema)
    table.validate(full=True)
    return table


def in_calendar(column: pa.Array) -> bool:
    """Return True when every time is of the years 1 to 9999, which Python can represent."""
    if not len(column):
        return True
    years = pc.min_max(pc.year(column))
    return bool(years["min"].as_py() >= 1 and years["max"].as_py() <= 9999)


def damaged(path: Path, error: BaseException) -> BadRecordError:
    lines = str(error).splitlines() or [type(error).__name__]
    return BadRecordError(f"{path} is damaged, truncated or no Parquet file: {lines[0]:.200}")
