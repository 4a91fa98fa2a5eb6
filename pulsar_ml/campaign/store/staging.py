"""Staging: rows that executors write, in a hidden directory of the run until a wave is published.

Executors and driver see the same directory, on a shared file system.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_ml.campaign.store.schema import CHUNKS, TRIALS, VIOLATIONS, split

STAGING = ".staging"
BATCH_ROWS = {"trials": 1 << 16, "violations": 1 << 10, "chunks": 1 << 12}  # records may be long
GROUP_ROWS = {
    "trials": 1 << 18,
    "violations": 1 << 12,
    "chunks": 1 << 14,
}  # rows of a row group in a final file
SCHEMAS = {
    "violations": VIOLATIONS,
    "chunks": CHUNKS,
    "trials": TRIALS,
}  # trials last: with them a wave is visible
PART_ROWS = 1_000_000  # trials that become visible at once, roughly
TOKEN = "token"


class StagingError(OSError):
    """A process that should write the staging directory does not see it."""


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """Rows of a wave that become visible together: a file of each table, and the ledger's rows."""

    trials: Path
    violations: Path
    chunks: pa.Table


@dataclass(frozen=True, slots=True)
class Staged:
    """The staged files of a wave; other files there belong to lost attempts or were merged."""

    directory: Path
    parts: tuple[StagedFiles, ...]

    @property
    def chunks(self) -> pa.Table:
        """The ledger's rows of all staged files."""
        return pa.concat_tables([part.chunks for part in self.parts])

    def remove(self) -> None:
        """Remove the directory, with the files of lost attempts."""
        remove(self.directory)


def path_of(directory: Path, table: str, name: str) -> Path:
    """Return the path of a task's rows; a task without violations has no file of violations."""
    return directory / f"{table}-{name}.parquet"


def in_parts(ledger: pa.Table, most: int = PART_ROWS) -> list[list[str]]:
    """Group the names of a ledger's column ``file``, in order, by about ``most`` trials."""
    sums = ledger.group_by("file").aggregate([("trials", "sum")]).sort_by("file")
    parts: list[list[str]] = []
    room = 0
    for name, trials in zip(sums["file"].to_pylist(), sums["trials_sum"].to_pylist(), strict=True):
        if room <= 0:
            parts.append([])
            room = most
        parts[-1].append(name)
        room -= trials
    return parts


def merge_part(directory: Path, names: Sequence[str], merged: str) -> None:
    """Merge the files of some tasks on disk into one of trials and one of violations."""
    for table in ("trials", "violations"):
        paths = [path_of(directory, table, name) for name in names]
        target = path_of(directory, table, merged)
        merge_files([path for path in paths if table == "trials" or path.exists()], table, target)
        with target.open("rb") as file:
            os.fsync(file.fileno())


def open_staging(run: Path) -> tuple[Path, str]:
    """Make a staging directory in a run, and a token that proves to see the same directory."""
    token = secrets.token_hex(8)
    directory = run.resolve() / STAGING / token
    directory.mkdir(parents=True)
    (directory / TOKEN).write_text(token)
    return directory, token


def check_staging(directory: Path, token: str) -> None:
    """Raise ``StagingError`` unless this process sees the directory with the token."""
    try:
        seen = (directory / TOKEN).read_text()
    except OSError:
        seen = ""
    if seen != token:
        raise StagingError(f"does not see {directory}")


def remove(directory: Path) -> None:
    """Remove a wave's staging directory, and their common parent after the last one."""
    shutil.rmtree(directory, ignore_errors=True)
    if directory.parent.name == STAGING and not any(directory.parent.iterdir()):
        directory.parent.rmdir()


class _Writer:
    """Writes a file in row groups of a fixed size, however few rows arrive at a time."""

    def __init__(self, path: Path, table: str) -> None:
        self._schema = SCHEMAS[table]
        self._most = GROUP_ROWS[table]
        self._file = pq.ParquetWriter(path, self._schema, compression="zstd")
        self._kept: list[pa.Table] = []
        self._rows = 0

    def add(self, rows: pa.Table) -> None:
        self._kept.append(rows)
        self._rows += len(rows)
        if self._rows >= self._most:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        if self._rows:
            self._file.write_table(pa.concat_tables(self._kept).cast(self._schema))
        self._kept.clear()
        self._rows = 0


def write_part(directory: Path, name: str, chunks: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Write chunks of ``ROW`` rows into files, and yield each chunk again.

    The files are complete at the end of the iterator.
    """
    with ExitStack() as stack:
        writers: dict[str, _Writer] = {}
        for rows in chunks:
            for table, found in zip(("trials", "violations"), split(rows), strict=True):
                if len(found):
                    if table not in writers:
                        writers[table] = _Writer(path_of(directory, table, name), table)
                        stack.callback(writers[table].close)
                    writers[table].add(found)
            yield rows


def merge_files(paths: Sequence[Path], table: str, into: Path) -> None:
    """Merge many files into one, in bounded memory."""
    with closing(_Writer(into, table)) as writer:
        for path in paths:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(BATCH_ROWS[table]):
                    writer.add(pa.Table.from_batches([batch]))
