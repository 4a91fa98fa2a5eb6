"""Writes the results directory of ``run --out`` and ``explore --out``, in the format of a sweep."""

from __future__ import annotations

import platform
import secrets
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

import pulsar_ml
from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.store.ledger import ledger_of
from pulsar_ml.campaign.store.merge import Group, Summary, add
from pulsar_ml.campaign.store.schema import ROW, split
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.campaign.store.summary import summary_data
from pulsar_ml.campaign.trial.chunk import Job, row
from pulsar_ml.campaign.trial.controlled import as_violation
from pulsar_ml.campaign.trial.trial import CONTROLLED, VIOLATION, TrialOptions, TrialResult
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.terminal.command_line import PROGRAM, command_line, replay_command, short_path

WAVE_ROWS = 1_000
WAVE_SECONDS = 10.0
SEED_LIMIT = 1 << 63  # seeds are stored as signed numbers


class RunWriter:
    """Writes trials as they end, a wave every few seconds.

    Leaving the ``with`` block writes the rest and how the run ended.
    """

    def __init__(self, directory: Path, options: TrialOptions, build_id: str, suites: str) -> None:
        """UsageError when the directory cannot be made or already holds something."""
        self._store = RunStore(directory)
        self._suites = suites
        self._started = datetime.now(UTC)
        run_id = f"{self._started:%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"
        self._job = Job(run_id, build_id, options)
        self._host = socket.gethostname()
        self._summary = Summary()
        self._rows: list[dict[str, object]] = []
        self._waves = 0
        self._written = time.monotonic()
        self.status = "finished"  # without an exception
        self._write("running")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close(self.status)
            return
        with suppress(OSError):  # which may be the reason
            self.close(
                "interrupted" if isinstance(error, KeyboardInterrupt) else "failed", str(error)
            )

    def add(self, result: TrialResult) -> None:
        if result.seed >= SEED_LIMIT:
            raise UsageError(f"--out stores seeds below 2**63, not {result.seed}")
        chunk = Chunk(0, result.suite, result.seed, result.seed + 1)
        self._rows.append(row(self._job, chunk, result, self._host))
        if len(self._rows) >= WAVE_ROWS or time.monotonic() - self._written >= WAVE_SECONDS:
            self._flush()

    def close(self, status: str = "finished", problem: str | None = None) -> None:
        """Writes the remaining rows, and into run.json how the run ended."""
        self._flush()
        self._write(status, problem)

    def _flush(self) -> None:
        self._written = time.monotonic()
        if not self._rows:
            return
        rows = pa.Table.from_pylist(self._rows, schema=ROW)
        trials, violations = split(rows)
        chunks = ledger_of(rows)
        self._store.write_wave(self._waves, trials, violations, chunks)
        self._store.write_records(add(self._summary, trials, violations, chunks))
        self._waves += 1
        self._rows.clear()

    def _write(self, status: str, problem: str | None = None) -> None:
        ended = status != "running"
        warning = self._summary.counts.warning()
        facts: dict[str, Any] = {
            "run_id": self._job.run_id,
            "status": status,
            "problem": problem,
            "build_id": self._job.build_id,
            "plan": {
                "command": [PROGRAM, *sys.argv[1:]],
                "options": asdict(self._job.options),
            },
            "runner": {"runner": "local", "registry": self._suites},
            "versions": {"python": platform.python_version(), "pulsar_ml": pulsar_ml.__version__},
            "host": self._host,
            "started_at": self._started.isoformat(timespec="seconds"),
            "finished_at": datetime.now(UTC).isoformat(timespec="seconds") if ended else None,
            "waves": self._waves,
            "failures": [],
            "warnings": [warning] if warning and ended else [],
            "summary": summary_data(self._summary, self._command),
        }
        self._store.write_run(facts)

    def _command(self, group: Group) -> str:
        return replay_command(self._store.record_path(group.signature), self._suites)

    def where(self) -> str:
        directory = short_path(self._store.directory)
        return f"results in {directory}; {command_line('report', directory)}"


def exploration_writer(
    directory: Path, build_id: str, options: Mapping[str, Any], suites: str
) -> RunWriter:
    """The writer of a results directory of ``explore`` with these options."""
    trial = TrialOptions(
        threads=options["threads"],
        operations=options["operations"],
        noise=False,
        module=options["module"],
        mutant=options["mutant"],
        engine=CONTROLLED,
        mode=options["mode"],
        strategy=options["strategy"],
        executions=options["executions"],
        bound=options["bound"],
        spins=options["spins"],
        turns=options["turns"],
        stores=options["stores"],
    )
    return RunWriter(directory, trial, build_id, suites)


def with_failure(result: TrialResult, failure: Failure, options: Mapping[str, Any]) -> TrialResult:
    """The trial of a failed program, with its failure."""
    found = as_violation(replace(failure, module=options["module"], mutant=options["mutant"]))
    return replace(result, violations=(found,), verdict=VIOLATION)
