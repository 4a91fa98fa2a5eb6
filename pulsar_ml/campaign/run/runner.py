"""Runs waves of chunks behind one interface; here the drivers that need nothing but this machine.

``inline`` runs the trials in this process, ``pool`` in others. The Spark driver offers the same interface
and lives with Spark. A trial that crashes or hangs is one more violation for the pool and for Spark; inline
is for debuggers, and goes down with it.
"""

from __future__ import annotations

import os
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
from pulsar_ml.errors import PulsarMlError

POLL_SECONDS = 0.2  # how late a request to stop may be seen


class RunnerError(PulsarMlError, RuntimeError):
    """The runner cannot go on with any chunk, in one sentence."""


@dataclass(frozen=True, slots=True)
class ChunkFailure:
    """A chunk without rows."""

    chunk: Chunk | None  # None: the runner cannot tell which chunk it was
    message: str

    def __str__(self) -> str:
        return f"{self.chunk}: {self.message}" if self.chunk else self.message


@dataclass(slots=True)
class Wave:
    """What a wave of chunks gave: whole chunks only, each with all of its trials."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    failures: list[ChunkFailure] = field(default_factory=list)
    left: list[Chunk] = field(default_factory=list)  # not run, or run without a result to keep
    warnings: list[str] = field(default_factory=list)
    # Instead of batches, where rows do not come to this process: files with their ledger, and their
    # violations by signature.
    staged: Staged | None = None
    groups: list[Group] = field(default_factory=list)

    @property
    def kept(self) -> bool:
        """Whether there are rows."""
        return bool(self.batches) or self.staged is not None

    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches, schema=ROW)


@dataclass(frozen=True, slots=True)
class Watch:
    """How a runner hears that it should stop and says how many trials of the wave are done."""

    stopped: Callable[[], bool]
    done: Callable[[int, int], None]  # trials, violations found in them (as far as known)
    searched: Callable[[int, int], None] = lambda executions, classes: (
        None
    )  # of the engine; told before
    wave: int = 0  # its number
    round: int = 1  # that of the stage to which it belongs


class Runner(Protocol):
    """Runs waves; ``slots`` is the number of chunks that it runs at once."""

    @property
    def name(self) -> str: ...
    @property
    def slots(self) -> int: ...
    def run(self, job: Job, chunks: Sequence[Chunk], watch: Watch) -> Wave: ...
    def close(self) -> None: ...


class InlineRunner:
    """One chunk after the other in this process: for debuggers and for tests."""

    name = "inline"
    slots = 1

    def __init__(self, suites: Mapping[str, Suite], *, trial: Trial = run_trial) -> None:
        self._suites = suites
        self._trial = trial

    def run(self, job: Job, chunks: Sequence[Chunk], watch: Watch) -> Wave:
        wave = Wave()
        for index, chunk in enumerate(chunks):
            suite = self._suites[chunk.suite]
            try:
                batch = run_chunk(suite, chunk, job, trial=self._trial, stopped=watch.stopped)
            except Exception as error:
                wave.failures.append(failure_of(chunk, error))
                continue
            if batch is None:
                wave.left.extend(chunks[index:])
                return wave
            keep(wave, batch, watch)
        return wave

    def close(self) -> None:
        """Nothing to give back."""


class PoolRunner:
    """Supervisors on this machine, one chunk on each; a thread here waits for each of them."""

    name = "pool"

    def __init__(
        self, suites: Mapping[str, Suite], *, workers: int, trial: Trial = run_trial
    ) -> None:
        self._suites = suites
        self._trial = trial
        self.slots = workers
        self._places = [Isolation() for _ in range(workers)]
        self._free: SimpleQueue[Isolation] = SimpleQueue()
        for place in self._places:
            self._free.put(place)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="pool")

    def run(self, job: Job, chunks: Sequence[Chunk], watch: Watch) -> Wave:
        """After a request to stop, no chunk starts, and those that run are waited for and kept."""
        wave = Wave()
        waiting = deque(chunks)
        running: dict[Future[pa.RecordBatch], Chunk] = {}
        try:
            while waiting or running:
                if watch.stopped():
                    wave.left.extend(waiting)
                    waiting.clear()
                while waiting and len(running) < self.slots:
                    chunk = waiting.popleft()
                    running[self._threads.submit(self._run_chunk, job, chunk)] = chunk
                finished, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in finished:
                    chunk = running.pop(future)
                    try:
                        keep(wave, future.result(), watch)
                    except Exception as error:
                        wave.failures.append(failure_of(chunk, error))
        except Exception:  # other chunks that run come to their end, and the pool serves again
            wait(running)
            raise
        except BaseException:
            self.close()
            raise
        return wave

    def _run_chunk(self, job: Job, chunk: Chunk) -> pa.RecordBatch:
        place = self._free.get()
        try:
            return place.run(self._suites[chunk.suite], chunk, job, trial=self._trial)
        finally:
            self._free.put(place)

    def close(self) -> None:
        """Ends the supervisors, also those that run a chunk."""
        for place in self._places:
            place.close()
        self._threads.shutdown(cancel_futures=True)


def keep(wave: Wave, batch: pa.RecordBatch, watch: Watch) -> None:
    """Adds a finished chunk to a wave and tells the watcher."""
    wave.batches.append(batch)
    watch.searched(*(pc.sum(batch[name]).as_py() or 0 for name in ("executions", "classes")))
    watch.done(batch.num_rows, len(batch["violations"].flatten()))


def failure_of(chunk: Chunk, error: Exception) -> ChunkFailure:
    """A chunk that raised. Errors of this package are raised again: other chunks would meet them too."""
    if isinstance(error, PulsarMlError):
        raise error
    return ChunkFailure(chunk, f"{type(error).__name__}: {error}")


def default_workers(threads: int) -> int:
    """Trials that run side by side on this machine when each uses ``threads`` threads."""
    return max(1, (os.cpu_count() or 1) // threads)
