"""Merges the many small files of short waves into few large ones.

New directories are made beside those of the tables and then exchanged with them, in the order
violations, chunks, trials. After each exchange every table has each row once, and every trial's
violations are visible. A note marks the new directories as complete: with the note, the next writer
of the run finishes the exchanges (:func:`settle`); without it, the new directories are removed.
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
from pulsar_ml.errors import BadRecordError, PulsarMlError, UsageError, naming
from pulsar_ml.input_files import bounded_text
from pulsar_ml.versioned_json import convert, decode

BESIDE = ".compacting"
WHOLE = "whole.json"
FILE_ROWS = 5_000_000  # trials in a file, which then has tens of megabytes

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


class CompactionError(PulsarMlError, RuntimeError):
    """The merged files differ from the small ones in their number of rows."""


def groups_of(names: Sequence[str], rows: Sequence[int], most: int) -> list[list[str]]:
    """Group neighbouring waves so that each group but the last has at least ``most`` rows."""
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
    """Merge the waves of a complete run that no other process writes; return the number of files.

    A merged wave has the name of its last wave, so that the next wave has a new number.
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
            with naming(beside / table / group[-1]):
                merge_files(paths, table, beside / table / group[-1])
            _check([beside / table / group[-1]], paths)
            _sync(beside / table / group[-1])
        _sync(beside / table)
    note = beside / f".{WHOLE}"
    with naming(note):
        note.write_text(json.dumps([group[-1] for group in groups]))
    _sync(note)
    os.replace(note, beside / WHOLE)
    _sync(beside)
    settle(run)
    return len(groups)


def settle(run: Path) -> None:
    """Finish a compaction whose files are complete, or remove an incomplete one."""
    beside = run / BESIDE
    if not beside.exists():
        return
    if os.path.lexists(beside / WHOLE):
        names = _noted(beside / WHOLE)
        for table in SCHEMAS:
            if not (run / table).exists() or sorted(os.listdir(run / table)) != names:
                exchange(beside / table, run / table)
                _sync(run)
        os.unlink(beside / WHOLE)  # from here the directories beside hold the old files
        _sync(beside)
    shutil.rmtree(beside)


def _noted(path: Path) -> list[str]:
    """Read the names of a compaction's files. UsageError when its note is damaged."""
    try:
        text = bounded_text(path, "the note of a compaction")
        names: list[str] = convert(decode(text, "it"), list[str], "it", "the content")
    except BadRecordError as error:
        raise UsageError(f"{path} is damaged: {error}; remove {path.parent}") from None
    return names


def exchange(new: Path, place: Path) -> None:
    """Exchange the names of two directories, atomically where the system can."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    ends = os.fsencode(new), os.fsencode(place)
    if (
        place.exists()
        and renameat2 is not None
        and renameat2(_AT_FDCWD, ends[0], _AT_FDCWD, ends[1], _RENAME_EXCHANGE) == 0
    ):
        return
    exchange_by_renames(new, place)


def exchange_by_renames(new: Path, place: Path) -> None:
    """Exchange by two renames; in between the path is missing, and no row is visible twice."""
    if place.exists():
        os.rename(place, new.with_name(f"old-{new.name}"))
    os.rename(new, place)


def _check(merged: Sequence[Path], paths: Sequence[Path]) -> None:
    found, expected = (
        sum(pq.read_metadata(path).num_rows for path in these) for these in (merged, paths)
    )
    if found != expected:
        raise CompactionError(
            f"{merged[0]} has {found:,} rows, but the files that it replaces have {expected:,}"
        )


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
