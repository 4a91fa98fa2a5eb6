"""Few large files in place of many small ones: what short waves left, merged.

New directories are made beside those of the tables, and then the two are exchanged: violations, chunks,
trials. After each exchange every table has each row once, and no trials are there whose violations are not.
A note says that the new directories are whole; with it, whoever writes the run next brings the exchanges to
their end (:func:`settle`), and without it what was made is thrown away.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from pulsar_ml.campaign.store.staging import SCHEMAS, merge_files
from pulsar_ml.errors import PulsarMlError, UsageError
from pulsar_ml.input_files import bounded_text

BESIDE = ".compacting"
WHOLE = "whole.json"
FILE_ROWS = 5_000_000  # trials of a file; tens of megabytes

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


class CompactionError(PulsarMlError, RuntimeError):
    """The merged files do not have the rows of the small ones."""


def groups_of(names: Sequence[str], rows: Sequence[int], most: int) -> list[list[str]]:
    """Neighbouring waves, until each group but the last has ``most`` rows or more."""
    groups: list[list[str]] = []
    room = 0
    for name, count in zip(names, rows, strict=True):
        if room <= 0:
            groups.append([])
            room = most
        groups[-1].append(name)
        room -= count
    return groups


def compact(run: Path, names: Sequence[str], *, most: int = FILE_ROWS) -> int:
    """Merges the waves of a run that is whole and that no other process writes; how many files are left.

    A merged wave has the name of its last one, so that the next has a new number.
    """
    rows = [pq.read_metadata(run / "trials" / name).num_rows for name in names]
    groups = groups_of(names, rows, most)
    if len(groups) == len(names):
        return len(names)
    beside = run / BESIDE
    for table in SCHEMAS:
        (beside / table).mkdir(parents=True)
        for group in groups:
            paths = [run / table / name for name in group]
            merge_files(paths, table, beside / table / group[-1])
            _check([beside / table / group[-1]], paths)
            _sync(beside / table / group[-1])
        _sync(beside / table)
    note = beside / f".{WHOLE}"
    note.write_text(json.dumps([group[-1] for group in groups]))
    _sync(note)
    os.replace(note, beside / WHOLE)
    _sync(beside)
    settle(run)
    return len(groups)


def settle(run: Path) -> None:
    """Ends a compaction that was begun: by its exchanges when all is there, by forgetting it when not."""
    beside = run / BESIDE
    if not beside.exists():
        return
    if os.path.lexists(beside / WHOLE):
        names = _noted(beside / WHOLE)
        for table in SCHEMAS:
            if not (run / table).exists() or sorted(os.listdir(run / table)) != names:
                exchange(beside / table, run / table)
                _sync(run)
        os.unlink(beside / WHOLE)  # what is beside is old from now on
        _sync(beside)
    shutil.rmtree(beside)


def _noted(path: Path) -> list[str]:
    """The names of the files that a compaction made. UsageError when the note of them is damaged."""
    try:
        names = json.loads(bounded_text(path, "the note of a compaction"))
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("it should be a list of names")
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is damaged: {error}; remove {path.parent}") from None
    return names


def exchange(new: Path, place: Path) -> None:
    """Two directories change their names, at once where the system can do that."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    ends = os.fsencode(new), os.fsencode(place)
    if place.exists() and renameat2 is not None:
        if renameat2(_AT_FDCWD, ends[0], _AT_FDCWD, ends[1], _RENAME_EXCHANGE) == 0:
            return
    exchange_by_renames(new, place)


def exchange_by_renames(new: Path, place: Path) -> None:
    """The same in two steps; between them there is nothing at the place, and never a row twice."""
    if place.exists():
        os.rename(place, new.with_name(f"old-{new.name}"))
    os.rename(new, place)


def _check(merged: Sequence[Path], paths: Sequence[Path]) -> None:
    found, told = (
        sum(pq.read_metadata(path).num_rows for path in these) for these in (merged, paths)
    )
    if found != told:
        raise CompactionError(
            f"{merged[0]} has {found:,} rows, and what it should replace {told:,}"
        )


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
