"""Runs waves of chunks behind one interface; here the drivers that need nothing but this machine.

``inline`` runs the trials in this process, ``pool`` in worker processes. The Spark driver offers the
same interface and lives with Spark. A trial uses real threads in native code, so a crash takes its
process down: the pool says which chunk did it and goes on with the others, inline cannot.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from typing import Protocol

import pyarrow as pa

from pulsar_ml.campaign.chunk import Job, Trial, run_chunk
from pulsar_ml.campaign.engines import run_trial
from pulsar_ml.campaign.plan import Chunk
from pulsar_ml.campaign.schema import ROW
from pulsar_ml.campaign.suite import Suite
from pulsar_ml.errors import PulsarMlError

POLL_SECONDS = 0.2  # how late a request to stop may be seen


class RunnerError(PulsarMlError, RuntimeError):
    """The runner cannot go on with any chunk, in one sentence."""


@dataclass(frozen=True, slots=True)
class ChunkFailure:
    """A chunk without rows, or one that made a worker die before it ran to its end."""

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

    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches, schema=ROW)


@dataclass(frozen=True, slots=True)
class Watch:
    """How a runner hears that it should stop and says how many trials of the wave are done."""

    stopped: Callable[[], bool]
    done: Callable[[int, int], None]  # trials, violations found in them (as far as known)


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
    """Worker processes, started afresh and never forked: the parent may have threads by then."""

    name = "pool"

    def __init__(self, suites: Mapping[str, Suite], *, workers: int, trial: Trial = run_trial) -> None:
        self._suites = suites
        self._trial = trial
        self.slots = workers
        self._pool: ProcessPoolExecutor | None = None
        self._processes: list[BaseProcess] = []

    def run(self, job: Job, chunks: Sequence[Chunk], watch: Watch) -> Wave:
        wave = Wave()
        waiting = deque(chunks)
        try:
            while suspects := self._run_some(job, waiting, watch, wave, width=self.slots):
                self._convict(job, suspects, watch, wave)
        except BaseException:
            self._abort()
            raise
        return wave

    def _convict(self, job: Job, suspects: Sequence[Chunk], watch: Watch, wave: Wave) -> None:
        """Says which of the chunks that were in flight took a worker down: each runs again, alone."""
        guilty = [chunk for chunk in suspects if self._run_some(job, deque([chunk]), watch, wave, width=1)]
        wave.failures.extend(ChunkFailure(chunk, "its worker process died, twice") for chunk in guilty)
        if not guilty:
            names = ", ".join(str(chunk) for chunk in suspects)
            wave.failures.append(ChunkFailure(None, f"a worker process died once, in {names}"))

    def _run_some(
        self, job: Job, waiting: deque[Chunk], watch: Watch, wave: Wave, *, width: int
    ) -> list[Chunk]:
        """Runs the waiting chunks, ``width`` at once; returns those in flight when a worker died.

        After a request to stop, no chunk starts and those that run are waited for and kept.
        """
        running: dict[Future[pa.RecordBatch | None], Chunk] = {}
        alive = True
        while waiting or running:
            if watch.stopped():
                wave.left.extend(waiting)
                waiting.clear()
            while waiting and len(running) < width:
                try:
                    future = self._submit(job, waiting[0])
                except BrokenProcessPool:
                    alive = False
                    break
                running[future] = waiting.popleft()
            finished, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            broken: list[Chunk] = []  # of a dead pool, every future ends this way
            for future in finished:
                chunk = running.pop(future)
                try:
                    batch = future.result()
                except BrokenProcessPool:
                    broken.append(chunk)
                except Exception as error:
                    wave.failures.append(failure_of(chunk, error))
                else:
                    assert batch is not None, "only an inline chunk can be stopped"
                    keep(wave, batch, watch)
            if broken or not alive:
                self._abort()
                if suspects := [*broken, *running.values()]:
                    return suspects
                alive = True  # a worker died between two chunks; a new pool goes on
        return []

    def _submit(self, job: Job, chunk: Chunk) -> Future[pa.RecordBatch | None]:
        others = set(multiprocessing.active_children())
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                max_workers=self.slots,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_ignore_interrupts,
            )
        future = self._pool.submit(run_chunk, self._suites[chunk.suite], chunk, job, trial=self._trial)
        self._processes.extend(set(multiprocessing.active_children()) - others)
        return future

    def _abort(self) -> None:
        for process in self._processes:
            process.kill()
        self.close()

    def close(self) -> None:
        """Ends the workers after the chunks that they run."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._pool, self._processes = None, []


def keep(wave: Wave, batch: pa.RecordBatch, watch: Watch) -> None:
    """Adds a finished chunk to a wave and tells the watcher."""
    wave.batches.append(batch)
    watch.done(batch.num_rows, len(batch["violations"].flatten()))


def failure_of(chunk: Chunk, error: Exception) -> ChunkFailure:
    """A chunk that raised. Errors of this package are raised again: other chunks would meet them too."""
    if isinstance(error, PulsarMlError):
        raise error
    return ChunkFailure(chunk, f"{type(error).__name__}: {error}")


def default_workers(threads: int) -> int:
    """Trials that run side by side on this machine when each uses ``threads`` threads."""
    return max(1, (os.cpu_count() or 1) // threads)


def _ignore_interrupts() -> None:
    """Ctrl-C reaches every process of the terminal; the parent decides what to do about it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
