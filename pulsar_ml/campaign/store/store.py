"""A run on disk: one directory, readable with pandas, DuckDB or Spark SQL while it grows.

    run.json                the plan, versions, build, status and totals
    trials/wave-00000.parquet      one row per trial
    violations/wave-00000.parquet  one row per violation
    chunks/wave-00000.parquet      one row per chunk: the ledger
    records/SIGNATURE.json  the replay record with the smallest seed of each signature
    rounds/round-00000.json the shares of the arms in a round, in a campaign in rounds
    shrunk/                 shrunk failures, if any (:mod:`pulsar_ml.campaign.shrink.shrunk`)

A file is written under a temporary name and then renamed, so a reader sees a whole file of a wave
or none, whatever happens to the writer. Violations and chunks become visible before their trials: a
wave with trials is complete, and a wave without trials does not count. The directory appears
together with its run.json, so a writer killed at any moment leaves a run that
:mod:`pulsar_ml.campaign.run.resume` can resume.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_ml.campaign.shrink import shrunk
from pulsar_ml.campaign.shrink.shrunk import ShrinkState
from pulsar_ml.campaign.store.compaction import settle
from pulsar_ml.campaign.store.ledger import ledger_of
from pulsar_ml.campaign.store.merge import Group
from pulsar_ml.campaign.store.schema import CHUNKS, TRIALS, VIOLATIONS
from pulsar_ml.campaign.store.staging import SCHEMAS, STAGING, StagedFiles
from pulsar_ml.errors import UsageError

SIGNATURE = re.compile(r"[0-9A-Za-z_-]{1,64}")
RUN_VERSION = 2  # 1 had neither rounds nor searches
PARTS = (*SCHEMAS, "records")
WAVES = "wave-*.parquet"
HALF_WRITTEN = (
    ".run.json.*",
    *(f"{name}/.wave-*" for name in SCHEMAS),
    "records/.*.json.*",
    "rounds/.round-*",
    "shrunk/.*.json.*",
)


class RunStore:
    """Writes one run. A lock of the kernel allows one writing process; any number may read.

    ``bound`` may drop rows of violations before they are written, see :mod:`witnesses`.
    """

    bound: Callable[[pa.Table], pa.Table] | None = None

    def __init__(self, directory: Path, facts: Mapping[str, Any] | None = None) -> None:
        """Create the directory, with ``facts`` as its run.json.

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
                self.directory = final
                _sync(final.parent)
            except BaseException:
                shutil.rmtree(self.directory, ignore_errors=True)
                raise
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
                error.filename = str(directory)
                raise  # no fault of the name
            raise UsageError(
                f"cannot make the results directory {directory}: {error.strerror}"
            ) from error
        self.directory = directory
        self._lock()

    @classmethod
    def reopen(cls, directory: Path) -> RunStore:
        """Open the store of an earlier run; changes nothing, except that it finishes a compaction.

        Raises ``UsageError`` when another process writes it, or when a link leads out of it.
        """
        store = cls.__new__(cls)
        store.directory = directory
        store._lock()
        try:
            check_no_links(directory)
            settle(directory)
        except BaseException:
            store.close()
            raise
        return store

    def _lock(self) -> None:
        handle = os.open(self.directory, os.O_RDONLY)
        self._unlock = weakref.finalize(self, os.close, handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._unlock()
            raise UsageError(
                f"another process is writing {self.directory}; wait for its end"
            ) from None
        except OSError:
            pass  # a file system without locks

    def close(self) -> None:
        """Release the lock, so that another process may write."""
        self._unlock()

    def tidy(self) -> None:
        """Remove the rests of a killed writer: half-written files, and tables of waves without
        trials.
        """
        if (self.directory / STAGING).exists():
            shutil.rmtree(self.directory / STAGING)
        for half in HALF_WRITTEN:
            for path in self.directory.glob(half):
                path.unlink()
        for name in SCHEMAS:
            for path in (self.directory / name).glob(WAVES):
                if not (self.directory / "trials" / path.name).exists():
                    path.unlink()

    def write_run(self, facts: Mapping[str, Any]) -> None:
        """Replace run.json. Its version is the oldest that has all of its fields."""
        version = 2 if facts.get("rounds") or facts.get("search") else 1
        text = json.dumps({"version": version, **facts}, indent=2) + "\n"
        _write(self.directory / "run.json", text.encode())

    def write_round(self, number: int, content: Mapping[str, Any]) -> None:
        """Write the shares of a round before its first trial runs."""
        directory = self.directory / "rounds"
        directory.mkdir(exist_ok=True)
        _write(
            directory / f"round-{number:05}.json", (json.dumps(content, indent=2) + "\n").encode()
        )

    def write_shrunk(self, signature: str, state: ShrinkState) -> None:
        """Replace the state of shrinking of a signature, and its shrunk failure."""
        (self.directory / "shrunk").mkdir(exist_ok=True)
        path = shrunk.record_path(self.directory, signature)
        if state.shrunk.record:
            _write(path, (state.shrunk.record + "\n").encode())
        _write(shrunk.state_path(self.directory, signature), shrunk.state_text(state).encode())
        if not state.shrunk.record:
            path.unlink(missing_ok=True)

    def write_wave(
        self, wave: int, trials: pa.Table, violations: pa.Table, chunks: pa.Table | None = None
    ) -> None:
        """Make the rows of a wave visible, its trials last.

        Without ``chunks`` the ledger is made from the rows.
        """
        ledger = ledger_of(trials, violations) if chunks is None else chunks
        if self.bound is not None:
            violations = self.bound(violations)
        tables = {"violations": violations, "chunks": ledger, "trials": trials}
        for name, schema in SCHEMAS.items():
            sink = pa.BufferOutputStream()
            pq.write_table(tables[name].cast(schema), sink, compression="zstd")
            _write(self.directory / name / f"wave-{wave:05}.parquet", sink.getvalue())

    def publish_part(self, wave: int, part: StagedFiles) -> None:
        """Make staged files of this run visible as those of a wave."""
        name = f"wave-{wave:05}.parquet"
        sink = pa.BufferOutputStream()
        pq.write_table(part.chunks.cast(CHUNKS), sink, compression="zstd")
        _write(self.directory / "chunks" / name, sink.getvalue())
        if self.bound is not None and pq.read_metadata(part.violations).num_rows:
            kept = self.bound(pq.read_table(part.violations, schema=VIOLATIONS))
            pq.write_table(kept, part.violations, compression="zstd")
        for table, path in (("violations", part.violations), ("trials", part.trials)):
            os.replace(path, self.directory / table / name)
            _sync(self.directory / table)

    def write_records(self, groups: Iterable[Group]) -> None:
        """Replace the replay records of these groups."""
        for group in groups:
            _write(self.record_path(group.signature), (group.replay.rstrip("\n") + "\n").encode())

    def record_path(self, signature: str) -> Path:
        return record_path(self.directory, signature)


def check_no_links(directory: Path) -> None:
    """Raise UsageError when a name in a run's directory is a link, which a run never makes."""
    for path in sorted(directory.iterdir()):
        if path.is_symlink():
            raise UsageError(
                f"{path} is a symbolic link, through which this command would write or delete "
                "elsewhere; replace it by what it points at"
            )


def record_path(directory: Path, signature: str) -> Path:
    """Return the path of a signature's replay record in a run's directory.

    Raises UsageError for a signature, as from a damaged table, that would lead elsewhere.
    """
    if not SIGNATURE.fullmatch(signature):
        raise UsageError(
            f"the tables in {directory} are damaged: {signature!r:.80} is no signature; those of a "
            "run have 1 to 64 letters, digits, - and _"
        )
    return directory / "records" / f"{signature}.json"


def read_trials(directory: Path) -> pa.Table:
    """Read all visible trials of a run."""
    return _read(directory, "trials", TRIALS)


def read_violations(directory: Path) -> pa.Table:
    """Read all visible violations of a run."""
    return _read(directory, "violations", VIOLATIONS)


def read_chunks(directory: Path) -> pa.Table:
    """Read the ledger of all visible waves of a run."""
    return _read(directory, "chunks", CHUNKS)


def waves_of(directory: Path) -> list[str]:
    """Return the file names of all visible waves, in order."""
    names = (path.name for path in (directory / "trials").glob(WAVES))
    return sorted(
        names, key=lambda name: (len(name), name)
    )  # by number: a run without an end may have more than 99,999


def _read(directory: Path, part: str, schema: pa.Schema) -> pa.Table:
    paths = [directory / part / name for name in waves_of(directory)]
    tables = [pq.read_table(path, schema=schema) for path in paths if path.exists()]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _write(path: Path, content: bytes | pa.Buffer) -> None:
    with _renamed(path) as half, half.open("wb") as file:
        file.write(content)


@contextmanager
def _renamed(path: Path) -> Iterator[Path]:
    """Yield a temporary path, which is renamed to ``path`` once the file is on disk."""
    # The name starts with a dot, so that readers of whole directories skip it.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        try:
            yield Path(name)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # a full disk does not say which
        os.unlink(name)
        raise
    _sync(path.parent)


def _sync(directory: Path) -> None:
    """Write a directory to disk, so that its names survive a power failure."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        error.filename = str(directory)
        raise
    finally:
        os.close(handle)
