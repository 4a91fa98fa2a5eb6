"""The folder into which a run writes records of failures. No file is ever overwritten."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.errors import BadRecordError, naming
from pulsar_ml.input_files import bounded_text

DEFAULT = Path("runs/stress")


class Records:
    """Writes the replay records of one run, and that of the program in flight, for a crash.

    The folder is made at the start, and removed at the end when it is empty.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = (
            fresh_folder(DEFAULT / time.strftime("%Y%m%d-%H%M%S")) if folder is None else folder
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        self._in_flight = create(self.folder, "running", "")

    def announce(self, record: ReplayRecord) -> None:
        """Note the program that is about to run."""
        with naming(self._in_flight):
            self._in_flight.write_text(record.to_json() + "\n")

    def keep(self, record: ReplayRecord) -> Path:
        """Write the record of a failure and return its path."""
        return create(self.folder, f"{record.suite}-seed{record.seed}", record.to_json() + "\n")

    def close(self) -> None:
        self._in_flight.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def fresh_folder(path: Path) -> Path:
    """``path``, or with a number behind when it exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for candidate in [
        path,
        *(path.with_name(f"{path.name}-{number}") for number in range(2, 10_000)),
    ]:
        with contextlib.suppress(FileExistsError):
            candidate.mkdir()
            return candidate
    raise FileExistsError(f"no free folder name for {path}")


def create(folder: Path, stem: str, text: str) -> Path:
    """A new file ``stem.json`` or ``stem-2.json`` and so on."""
    for name in [f"{stem}.json", *(f"{stem}-{number}.json" for number in range(2, 10_000))]:
        with contextlib.suppress(FileExistsError), open(folder / name, "x") as file:
            file.write(text)
            return folder / name
    raise FileExistsError(f"no free file name for {stem} in {folder}")


def read_record(path: Path) -> ReplayRecord:
    text = bounded_text(path, "the record")
    try:
        return ReplayRecord.from_json(text)
    except BadRecordError as error:
        raise BadRecordError(f"{path}: {error}") from None
