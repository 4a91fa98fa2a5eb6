"""What an executor does: turn rows that name a chunk into rows of trials.

This file and the suites travel to the executors as a zip; pulsar_ml with its compiled code must be
installed there. Only the standard library is imported at the top, so that an executor which lacks
something says so in one sentence and not in a stack of imports.
"""

from __future__ import annotations

import gc
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from pulsar_ml.campaign.chunk import Job
    from pulsar_ml.campaign.isolation import Isolation
    from pulsar_ml.campaign.plan import Chunk

MARK = "ExecutorError: "  # how the driver finds the sentence in what Spark reports


class ExecutorError(RuntimeError):
    """This executor cannot run trials of the campaign; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Work:
    """Plain data that every task of a wave gets: no class of pulsar_ml, which may be missing there."""

    run_id: str
    build_id: str
    options: dict[str, Any]
    limits: dict[str, Any]
    registry: str  # the module with SUITES
    chunks: tuple[tuple[int, str, int, int], ...]


def work_for(job: Job, chunks: Sequence[Chunk], registry: str) -> Work:
    """The work of one wave; row ``i`` of the wave's range stands for ``chunks[i]``."""
    plain = tuple((chunk.chunk_id, chunk.suite, chunk.seed_lo, chunk.seed_hi) for chunk in chunks)
    return Work(job.run_id, job.build_id, asdict(job.options), asdict(job.limits), registry, plain)


def task_for(work: Work) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow``: one batch of trial rows for each chunk row."""

    def run_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return rows_of(work, batches)

    return run_rows


def rows_of(work: Work, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs the chunks that the batches name. Raises ``ExecutorError`` before the first trial."""
    run = runner_for(work)
    # After each task Spark's worker collects garbage over all imported modules, which never become
    # garbage; frozen, they cost nothing.
    gc.collect()
    gc.freeze()
    for batch in batches:
        for index in batch.column(0).to_pylist():
            yield run(*work.chunks[index])


def runner_for(work: Work) -> Callable[[int, str, int, int], pa.RecordBatch]:
    """A function that runs a chunk of ``work`` here. Raises ``ExecutorError`` when this is not possible."""
    where = f"the executor on {socket.gethostname()} ({sys.executable})"
    try:
        from pulsar_ml.campaign.chunk import BuildMismatchError, Job
        from pulsar_ml.campaign.engines import check_options, load_module
        from pulsar_ml.campaign.plan import Chunk
        from pulsar_ml.campaign.trial import TrialOptions, find_subject
        from pulsar_ml.errors import UsageError
        from pulsar_ml.harness.child import Limits
    except ImportError as error:
        raise ExecutorError(
            f"{where} cannot import pulsar_ml ({error}); install the wheel of this build there"
        ) from error
    try:
        suites = import_module(work.registry).SUITES
    except ImportError as error:
        raise ExecutorError(f"{where} cannot import the shipped suites {work.registry} ({error})") from error
    options = TrialOptions(**work.options)
    try:
        module = load_module(options)
    except ImportError as error:
        raise ExecutorError(
            f"{where} has no native module {options.module} ({error}); install the wheel of this build there"
        ) from error
    build_id = getattr(module, "BUILD_ID", work.build_id)  # if it tells none, the first trial does
    if build_id != work.build_id:
        raise ExecutorError(
            f"{where} has build {build_id} of {options.module}, but this sweep is about build "
            f"{work.build_id}; install the same wheel everywhere"
        )
    try:
        for name in dict.fromkeys(suite for _, suite, _, _ in work.chunks):
            check_options(find_subject(module, suites[name]), options)
    except UsageError as error:
        raise ExecutorError(f"{where} cannot run this sweep: {error}") from error
    job = Job(work.run_id, work.build_id, options, Limits(**work.limits))

    def run(chunk_id: int, suite: str, seed_lo: int, seed_hi: int) -> pa.RecordBatch:
        try:
            return isolation().run(suites[suite], Chunk(chunk_id, suite, seed_lo, seed_hi), job)
        except BuildMismatchError as error:
            raise ExecutorError(str(error)) from error

    return run


@cache
def isolation() -> Isolation:
    """The isolation of this Python worker, which Spark keeps for many tasks, and which it ends with."""
    from pulsar_ml.campaign.isolation import Isolation

    return Isolation()
