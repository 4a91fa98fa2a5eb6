"""Runners: one interface that runs waves of chunks, and the two runners of this machine.

``inline`` runs trials in this process, ``pool`` in other processes; the Spark runner is in
:mod:`pulsar_ml.distributed`. For the pool and Spark a trial that crashes or hangs is a violation;
``inline`` is for debuggers, and such a trial ends it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.store.merge import Group
from pulsar_ml.campaign.store.schema import ROW
from pulsar_ml.campaign.store.staging import Staged
from pulsar_ml.campaign.trial.chunk import Job, Trial, run_chunk
from pulsar_ml.campaign.trial.engines import run_trial
from pulsar_ml.campaign.trial.isolation import Isolation
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.turns import ends_at, runs_at_once
from pulsar_ml.errors import PulsarMlError

POLL_SECONDS = 0.2  # between two looks for a request to stop


class RunnerError(PulsarMlError, RuntimeError):
    """The runner cannot run any further chunk; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class ChunkFailure:
    """A chunk without rows."""

    chunk: Chunk | None  # None: unknown to the runner
    message: str

    def __str__(self) -> str:
        return f"{self.chunk}: {self.message}" if self.chunk else self.message


@dataclass(slots=True)
class Wave:
    """The result of a wave: complete chunks only, each with all of its trials."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    failures: list[ChunkFailure] = field(default_factory=list)
    left: list[Chunk] = field(default_factory=list)  # not run, or run without a result
    warnings: list[str] = field(default_factory=list)
    # Instead of batches, where executors write the rows: files with their ledger, and violations by
    # signature.
    staged: Staged | None = None
    groups: list[Group] = field(default_factory=list)

    @property
    def kept(self) -> bool:
        """True when the wave has rows."""
        return bool(self.batches) or self.staged is not None

    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches, schema=ROW)


@dataclass(frozen=True, slots=True)
class Watch:
    """Connects a runner to its caller: requests to stop, and reports of finished trials."""

    stopped: Callable[[], bool]
    done: Callable[[int, int], None]  # finished trials and their known violations
    searched: Callable[[int, int], None] = lambda executions, classes: (
        None
    )  # executions and classes under the engine; called before ``done``
    wave: int = 0  # number of the wave
    round: int = 1  # number of the wave's stage
    # The moment of time.monotonic() from which no chunk begins, and no trial makes further runs.
    ends: float | None = None
    whole: bool = False  # each chunk begins, also when the time is over
    carry: bool = False  # chunks under way may be left to the next wave

    def is_over(self) -> bool:
        """Return True when no further chunk shall begin."""
        late = self.ends is not None and not self.whole and time.monotonic() >= self.ends
        return late or self.stopped()


class Runner(Protocol):
    """Runs waves; ``slots`` is the number of chunks that run at once.

    With ``watch.carry`` a wave may leave chunks to the next one, so that no slot waits in between.
    Some are ``under_way`` then, and waves of no chunks without ``carry`` end them.
    """

    @property
    def name(self) -> str: ...
    @property
    def slots(self) -> int: ...
    @property
    def under_way(self) -> bool: ...
    def run(self, job: Job, chunks: Sequence[Chunk], watch: Watch) -> Wave: ...
    def close(self) -> None: ...


class InlineRunner:
    """Runs one chunk after the other in this process, for debuggers and tests."""

    name = "inline"
    slots = 1
    under_way = False

    def __init__(self, suites: Mapping[str, Suite], *, trial: Trial = run_trial) -> None:
        self._suites = suites
        self._trial = trial

    def run(self, job: Job, chunks: Sequence[Chunk], watch: Watch) -> Wave:
        wave = Wave()
        ends_at(watch.ends)
        try:
            for index, chunk in enumerate(chunks):
                if watch.is_over() or not self._run_chunk(wave, job, chunk, watch):
                    wave.left.extend(chunks[index:])
                    break
        finally:
            ends_at(None)
        return wave

    def _run_chunk(self, wave: Wave, job: Job, chunk: Chunk, watch: Watch) -> bool:
        """Add a chunk to a wave; False when a stop was requested between its trials."""
        suite = self._suites[chunk.suite]
        try:
            batch = run_chunk(suite, chunk, job, trial=self._trial, stopped=watch.stopped)
        except Exception as error:
            wave.failures.append(failure_of(chunk, error))
            return True
        if batch is not None:
            keep(wave, batch, watch)
        return batch is not None

    def close(self) -> None:
        """Do nothing: this runner owns no process."""


class PoolRunner:
    """Runs chunks in supervisors on this machine; one thread waits for each supervisor."""

    name = "pool"

    def __init__(
        self, suites: Mapping[str, Suite], *, workers: int, trial: Trial = run_trial
    ) -> None:
        self._suites = suites
        self._trial = trial
        self.slots = workers
        self._places = [Isolation() for _ in range(workers)]
        self._free: SimpleQueue[Isolation] = SimpleQueue()
        self._running: dict[Future[pa.RecordBatch], Chunk] = {}
        for place in self._places:
            self._free.put(place)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="pool")

    @property
    def under_way(self) -> bool:
        return bool(self._running)

    def run(self, job: Job, chunks: Sequence[Chunk], watch: Watch) -> Wave:
        """Run chunks.

        After a request to stop, and when the time is over, none starts, and running ones are
        completed and kept.
        """
        wave = Wave()
        waiting = deque(chunks)
        running = self._running
        try:
            while waiting or running:
                if watch.is_over():
                    wave.left.extend(waiting)
                    waiting.clear()
                while waiting and len(running) < self.slots:
                    chunk = waiting.popleft()
                    running[self._threads.submit(self._run_chunk, job, chunk, watch.ends)] = chunk
                if watch.carry and len(running) < self.slots:
                    break  # the next wave has a chunk for this slot
                finished, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in finished:
                    chunk = running.pop(future)
                    try:
                        keep(wave, future.result(), watch)
                    except Exception as error:
                        wave.failures.append(failure_of(chunk, error))
        except Exception:  # the other running chunks complete, and the pool stays usable
            wait(running)
            running.clear()
            raise
        except BaseException:
            self.close()
            raise
        return wave

    def _run_chunk(self, job: Job, chunk: Chunk, ends: float | None) -> pa.RecordBatch:
        place = self._free.get()
        try:
            return place.run(self._suites[chunk.suite], chunk, job, trial=self._trial, ends=ends)
        finally:
            self._free.put(place)

    def close(self) -> None:
        """End the supervisors, also those that run a chunk."""
        for place in self._places:
            place.close()
        self._threads.shutdown(cancel_futures=True)


def keep(wave: Wave, batch: pa.RecordBatch, watch: Watch) -> None:
    """Add a finished chunk to a wave and report it to the watch."""
    wave.batches.append(batch)
    watch.searched(*(pc.sum(batch[name]).as_py() or 0 for name in ("executions", "classes")))
    watch.done(batch.num_rows, len(batch["violations"].flatten()))


def failure_of(chunk: Chunk, error: Exception) -> ChunkFailure:
    """Describe a chunk that raised.

    Errors of this package are raised again, as they concern all.
    """
    if isinstance(error, PulsarMlError):
        raise error
    return ChunkFailure(chunk, f"{type(error).__name__}: {error}")


def default_workers(threads: int) -> int:
    """Return how many trials of ``threads`` threads keep this machine's cores busy.

    Twice as many as run at once, where a run takes several cores: the others draw and judge.
    """
    return runs_at_once(threads) * (1 if threads == 1 else 2)
