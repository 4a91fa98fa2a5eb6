"""Runs the trials of one chunk and makes their rows; every runner uses these functions.

Arrow is imported late, so that the process that runs trials stays small.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.store.columns import violation_row
from pulsar_ml.campaign.trial.engines import run_trial
from pulsar_ml.campaign.trial.signature import signature
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import CONTROLLED, TrialOptions, TrialResult
from pulsar_ml.errors import PulsarMlError
from pulsar_ml.harness.search.child import Limits

if TYPE_CHECKING:
    import pyarrow as pa

Trial = Callable[[Suite, int, TrialOptions], TrialResult]

# On real threads the harness itself names an operation that hangs after two minutes; that report
# must come before this limit.
TRIAL_LIMITS = Limits(wall=150.0, cpu=None, memory=2 << 30, address_space=16 << 30)


class BuildMismatchError(PulsarMlError, RuntimeError):
    """A trial ran on another native build than the campaign's."""


@dataclass(frozen=True, slots=True)
class Job:
    """Facts that all chunks of a campaign share.

    ``build_id`` is the build that every trial must run. ``limits`` hold for each trial that runs in
    a process of its own.
    """

    run_id: str
    build_id: str
    options: TrialOptions
    limits: Limits = TRIAL_LIMITS

    def of(self, chunk: Chunk) -> Job:
        """Return this job with the chunk's own strategy, part and corpus, where it has them."""
        if not chunk.strategy and not chunk.part and not chunk.corpus:
            return self
        strategy = chunk.strategy or self.options.strategy
        options = replace(self.options, strategy=strategy, part=chunk.part, corpus=chunk.corpus)
        return replace(self, options=options)


def row(job: Job, chunk: Chunk, result: TrialResult, host: str) -> dict[str, object]:
    """Make one row of the schema ``ROW``."""
    controlled = job.options.engine == CONTROLLED
    return {
        "run_id": job.run_id,
        "chunk_id": chunk.chunk_id,
        "suite": result.suite,
        "seed": result.seed,
        "build_id": result.build_id,
        "threads": result.threads,
        "operations": result.operations,
        "overlaps": result.overlaps,
        "runs": result.runs,
        "engine": job.options.engine,
        "mode": job.options.mode if controlled else "",
        "strategy": job.options.strategy if controlled else "",
        "executions": result.executions,
        "steps": result.steps,
        "classes": result.classes,
        "once": result.once,
        "cut": result.cut,
        "exhausted": result.exhausted,
        "bounds": result.bounds,
        "part": job.options.part,
        "rest": result.rest,
        "judged": result.judged,
        "unknown": result.unknown,
        "duration_us": result.duration_ns // 1000,
        **{f"{phase}_us": spent // 1000 for phase, spent in asdict(result.spent).items()},
        "verdict": result.verdict,
        "host": host,
        "finished_at": datetime.now(UTC),
        "violations": [
            violation_row(
                invariant=found.invariant,
                signature=signature(result.suite, found.invariant, found.message, found.places),
                message=found.message,
                phase=found.phase,
                replay=found.record
                or replace(
                    result.replay, invariant=found.invariant, message=found.message
                ).to_json(),
            )
            for found in result.violations
        ],
        "wall_us": result.duration_ns // 1000,
        "attempt": 0,
        "sketch": result.sketch,
    }


def checked(job: Job, result: TrialResult, host: str) -> TrialResult:
    """Return ``result``, or raise ``BuildMismatchError`` when its build is not ``job.build_id``."""
    if result.build_id != job.build_id:
        raise BuildMismatchError(
            f"{host} runs build {result.build_id} of {job.options.module}, but this campaign runs "
            f"build {job.build_id}; install the same wheel everywhere"
        )
    return result


def run_chunk(
    suite: Suite,
    chunk: Chunk,
    job: Job,
    *,
    trial: Trial = run_trial,
    stopped: Callable[[], bool] = lambda: False,
) -> pa.RecordBatch | None:
    """Run all trials of a chunk in this process; None when ``stopped`` was true between two trials.

    Raises ``BuildMismatchError`` when a trial ran on another build than ``job.build_id``.
    """
    from pulsar_ml.campaign.store.schema import batch_of

    job = job.of(chunk)
    host = socket.gethostname()
    began = time.perf_counter_ns()
    rows = []
    for seed in range(chunk.seed_lo, chunk.seed_hi):
        if stopped():
            return None
        rows.append(row(job, chunk, checked(job, trial(suite, seed, job.options), host), host))
    return batch_of(rows, wall_us=(time.perf_counter_ns() - began) // 1000)
