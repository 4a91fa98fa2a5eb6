"""A run on disk: one directory, readable with pandas, DuckDB or Spark SQL while it grows.

    run.json                the plan, versions, build, status and totals
    trials/wave-00000.parquet      one row per trial
    violations/wave-00000.parquet  one row per violation
    records/SIGNATURE.json  the replay record with the smallest seed of each signature

A file is written under a temporary name and then renamed, so a reader sees all of a wave or nothing
of it, whatever happens to the writer. Violations become visible before the trials they belong to: a
wave whose trials are there is complete.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_ml.campaign.merge import Group
from pulsar_ml.campaign.schema import TRIALS, VIOLATIONS
from pulsar_ml.errors import UsageError

RUN_VERSION = 1


class RunStore:
    """Writes one run. One process writes; any number may read."""

    def __init__(self, directory: Path) -> None:
        """Makes the directory. Raises ``UsageError`` when it already holds something."""
        self.directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make the results directory {directory}: {error.strerror}") from error
        if any(directory.iterdir()):
            raise UsageError(f"{directory} is not empty; a run needs a directory of its own")
        for name in ("trials", "violations", "records"):
            (directory / name).mkdir()

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
        return self.directory / "records" / f"{signature}.json"


def read_trials(directory: Path) -> pa.Table:
    """All trials that are visible in a run's directory."""
    return _read(directory / "trials", TRIALS)


def read_violations(directory: Path) -> pa.Table:
    """All violations that are visible in a run's directory."""
    return _read(directory / "violations", VIOLATIONS)


def _read(directory: Path, schema: pa.Schema) -> pa.Table:
    tables = [pq.read_table(path, schema=schema) for path in sorted(directory.glob("wave-*.parquet"))]
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
