"""A run on disk: one directory, readable with pandas, DuckDB or Spark SQL while it grows.

    run.json                the plan, versions, build, status and totals
    trials/wave-00000.parquet      one row per trial
    violations/wave-00000.parquet  one row per violation
    records/SIGNATURE.json  the replay record with the smallest seed of each signature

A file is written under a temporary name and then renamed, so a reader sees all of a wave or nothing
of it, whatever happens to the writer. Violations become visible before the trials they belong to: a
wave whose trials are there is complete, and violations without trials do not count. The directory itself
appears with its run.json, so whatever is killed, and when, leaves a run that :mod:`resume` goes on with.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_ml.campaign.merge import Group
from pulsar_ml.campaign.schema import TRIALS, VIOLATIONS
from pulsar_ml.errors import UsageError

RUN_VERSION = 1
PARTS = ("trials", "violations", "records")
WAVES = "wave-*.parquet"
HALF_WRITTEN = (".run.json.*", "trials/.wave-*", "violations/.wave-*", "records/.*.json.*")


class RunStore:
    """Writes one run. One process writes, which the kernel sees to; any number may read."""

    def __init__(self, directory: Path, facts: Mapping[str, Any] | None = None) -> None:
        """Makes the directory, with ``facts`` as its run.json.

        Raises ``UsageError`` when it already holds something.
        """
        self.directory = directory
        final = directory.resolve()
        try:
            if final.exists() and any(final.iterdir()):
                raise UsageError(f"{directory} is not empty; a run needs a directory of its own")
            final.parent.mkdir(parents=True, exist_ok=True)
            self.directory = Path(tempfile.mkdtemp(dir=final.parent, prefix=f".{final.name}."))
            try:
                self.directory.chmod(0o755)
                for name in PARTS:
                    (self.directory / name).mkdir()
                if facts is not None:
                    self.write_run(facts)
                os.rename(self.directory, final)
                _sync(final.parent)
            except BaseException:
                shutil.rmtree(self.directory)
                raise
        except OSError as error:
            raise UsageError(f"cannot make the results directory {directory}: {error.strerror}") from error
        self.directory = directory
        self._lock()

    @classmethod
    def reopen(cls, directory: Path) -> RunStore:
        """The store of an earlier run; changes nothing yet.

        Raises ``UsageError`` when another process writes it.
        """
        store = cls.__new__(cls)
        store.directory = directory
        store._lock()
        return store

    def _lock(self) -> None:
        handle = os.open(self.directory, os.O_RDONLY)
        self._unlock = weakref.finalize(self, os.close, handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._unlock()
            raise UsageError(f"another process is writing {self.directory}; wait for its end") from None
        except OSError:
            pass  # a file system without locks

    def close(self) -> None:
        """Lets another process write."""
        self._unlock()

    def tidy(self) -> None:
        """Removes what a killed writer left behind: files half written, violations without trials."""
        for half in HALF_WRITTEN:
            for path in self.directory.glob(half):
                path.unlink()
        for path in (self.directory / "violations").glob(WAVES):
            if not (self.directory / "trials" / path.name).exists():
                path.unlink()

    def write_run(self, facts: Mapping[str, Any]) -> None:
        """Replaces run.json."""
        text = json.dumps({"version": RUN_VERSION, **facts}, indent=2) + "\n"
        _write(self.directory / "run.json", text.encode())

    def write_wave(self, wave: int, trials: pa.Table, violations: pa.Table) -> None:
        """Makes the rows of a wave visible: first its violations, then its trials."""
        for name, table, schema in (
            ("violations", violations, VIOLATIONS),
            ("trials", trials, TRIALS),
        ):
            sink = pa.BufferOutputStream()
            pq.write_table(table.cast(schema), sink, compression="zstd")
            _write(self.directory / name / f"wave-{wave:05}.parquet", sink.getvalue())

    def write_records(self, groups: Iterable[Group]) -> None:
        """Replaces the replay records of these groups."""
        for group in groups:
            _write(self.record_path(group.signature), (group.replay.rstrip("\n") + "\n").encode())

    def record_path(self, signature: str) -> Path:
        return record_path(self.directory, signature)


def record_path(directory: Path, signature: str) -> Path:
    """Where the replay record of a signature is kept in a run's directory."""
    return directory / "records" / f"{signature}.json"


def read_trials(directory: Path) -> pa.Table:
    """All trials that are visible in a run's directory."""
    return _read(directory, "trials", TRIALS)


def read_violations(directory: Path) -> pa.Table:
    """All violations that are visible in a run's directory."""
    return _read(directory, "violations", VIOLATIONS)


def waves_of(directory: Path) -> list[str]:
    """The names of the files of all waves that are visible, in order."""
    return sorted(path.name for path in (directory / "trials").glob(WAVES))


def read_wave(directory: Path, name: str) -> tuple[pa.Table, pa.Table]:
    """Trials and violations of one wave."""
    trials = pq.read_table(directory / "trials" / name, schema=TRIALS)
    return trials, pq.read_table(directory / "violations" / name, schema=VIOLATIONS)


def _read(directory: Path, part: str, schema: pa.Schema) -> pa.Table:
    tables = [pq.read_table(directory / part / name, schema=schema) for name in waves_of(directory)]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _write(path: Path, content: bytes | pa.Buffer) -> None:
    # The name starts with a dot, so that readers which take whole directories pass it over.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    _sync(path.parent)


def _sync(directory: Path) -> None:
    """Names outlive a machine that stops only when their directory is written, too."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
