"""Rows that were written where they were made: files of one wave in a hidden directory of the run, until the
wave is made visible. All who write and the one who reads see the same directory.
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
}  # of a file that is there to stay
SCHEMAS = {
    "violations": VIOLATIONS,
    "chunks": CHUNKS,
    "trials": TRIALS,
}  # trials last: they make a wave count
PART_ROWS = 1_000_000  # trials that become visible at once, about
TOKEN = "token"


class StagingError(OSError):
    """Somebody who should write here does not see the directory."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some of a wave's rows, which become visible at once: a file of each table, and the ledger's rows."""

    trials: Path
    violations: Path
    chunks: pa.Table


@dataclass(frozen=True, slots=True)
class Staged:
    """The parts of a wave; what else is in the directory is of attempts that lost, or was merged."""

    directory: Path
    parts: tuple[Part, ...]

    @property
    def chunks(self) -> pa.Table:
        """The ledger of all parts."""
        return pa.concat_tables([part.chunks for part in self.parts])

    def remove(self) -> None:
        """Takes the directory away, with what lost attempts left or still write there."""
        remove(self.directory)


def path_of(directory: Path, table: str, name: str) -> Path:
    """Where the rows of a task are; one without violations has no file of them."""
    return directory / f"{table}-{name}.parquet"


def in_parts(ledger: pa.Table, most: int = PART_ROWS) -> list[list[str]]:
    """The names in the column ``file`` of a ledger, in order, in parts of about ``most`` trials."""
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
    """Merges the files of some tasks into one of trials and one of violations, called ``merged``, on disk."""
    for table in ("trials", "violations"):
        paths = [path_of(directory, table, name) for name in names]
        target = path_of(directory, table, merged)
        merge_files([path for path in paths if table == "trials" or path.exists()], table, target)
        with target.open("rb") as file:
            os.fsync(file.fileno())


def open_staging(run: Path) -> tuple[Path, str]:
    """A new directory in that of a run, and the token by which others know that they see the same one."""
    token = secrets.token_hex(8)
    directory = run.resolve() / STAGING / token
    directory.mkdir(parents=True)
    (directory / TOKEN).write_text(token)
    return directory, token


def check_staging(directory: Path, token: str) -> None:
    """Raises ``StagingError`` unless this process sees the directory that was opened with the token."""
    try:
        seen = (directory / TOKEN).read_text()
    except OSError:
        seen = ""
    if seen != token:
        raise StagingError(f"does not see {directory}")


def remove(directory: Path) -> None:
    """Removes a wave's staging directory, and the parent of all when it was the last one."""
    shutil.rmtree(directory, ignore_errors=True)
    if directory.parent.name == STAGING and not any(directory.parent.iterdir()):
        directory.parent.rmdir()


class _Writer:
    """A file of rows in groups of a size that readers like, however few arrive at a time."""

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
    """Writes the rows of chunks, of ``ROW``, into files of their own, and gives each chunk back.

    The files are whole when the iterator is at its end.
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
    """One file of many, in flat memory however many rows there are."""
    with closing(_Writer(into, table)) as writer:
        for path in paths:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(BATCH_ROWS[table]):
                    writer.add(pa.Table.from_batches([batch]))
