"""Runs trials in a separate process, so that a crash cannot hurt the caller."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from typing import TYPE_CHECKING, Any

from pulsar_ml.campaign.boot import boot_command
from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.trial import supervisor
from pulsar_ml.campaign.trial.chunk import Job, Trial
from pulsar_ml.campaign.trial.engines import run_trial
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.supervisor import READY, Order
from pulsar_ml.harness.search.descendants import end_session, threads_here

if TYPE_CHECKING:
    import pyarrow as pa

ATTEMPTS = 2  # at an order whose supervisor dies
ENDED = f"the process that supervises trials ended {ATTEMPTS} times"


class SupervisorLostError(RuntimeError):
    """The process that supervises trials died, and so did its replacement."""


class Forked(ForkProcess):
    """A fork of this process, with the words of ``Popen``."""

    pid: int
    wait = ForkProcess.join


class Isolation:
    """Runs chunks in a supervisor: a process that starts with the first chunk, or before.

    Runs one chunk at a time; any thread may call ``close``. The supervisor ends with the thread
    that started it.
    """

    def __init__(self, *, echo: bool = False, forks: bool = False) -> None:
        """With ``echo``, output of trials is copied to this process's standard error.

        With ``forks`` a supervisor is a fork of this process while that has one thread, and needs
        to import nothing. Otherwise it is a new interpreter.
        """
        self._echo = echo
        self._forks = forks
        self._process: subprocess.Popen[bytes] | Forked | None = None
        self._pipe: Connection | None = None
        self._closed = False
        self._awaited = False  # the supervisor has not answered yet
        self._started_once = False  # it came as far as to answer

    def run(
        self,
        suite: Suite,
        chunk: Chunk,
        job: Job,
        *,
        trial: Trial = run_trial,
        attempt: int = 0,
        ends: float | None = None,
    ) -> pa.RecordBatch:
        """Return one row for each trial; a trial that crashes, hangs or eats memory has a
        violation.

        ``attempt`` is the number of earlier tries by other processes; the rows contain it. From
        ``ends`` on, a moment of ``time.monotonic()``, trials with free runs make no further ones.
        A trial that ends the supervisor, too, costs its own row alone. Raises what a trial raises,
        and SupervisorLostError when a supervisor does not start or was closed.
        """
        from pulsar_ml.campaign.store.schema import batch_of

        began = time.perf_counter_ns()
        order = Order(suite, chunk, job.of(chunk), trial, self._echo, ends=ends)
        text = b"".join(self._rows(order))
        wall_us = (time.perf_counter_ns() - began) // 1000
        return batch_of(
            [row_of(line) for line in text.splitlines()], wall_us=wall_us, attempt=attempt
        )

    def _rows(self, order: Order) -> Iterator[bytes]:
        """Yield the rows of an order; its trials run one by one when they end the supervisor."""
        answer = self._answer(order)
        if answer is not None:
            yield answer
            return
        chunk = order.chunk
        for seed in range(chunk.seed_lo, chunk.seed_hi):
            alone = replace(order, only=seed)
            answer = None if len(chunk) == 1 else self._answer(alone)
            if answer is None:
                answer = self._answer(replace(alone, ended_supervisor=True))
            if answer is None:
                raise SupervisorLostError(ENDED)
            yield answer

    def _answer(self, order: Order) -> bytes | None:
        """Return the rows of an order; None when its supervisors ended before."""
        for _ in range(ATTEMPTS):
            try:
                answer = self._ask(order)
            except (EOFError, OSError):
                started = self._started_once
                self._end()
                if self._closed or not started:
                    raise SupervisorLostError(
                        "the process that supervises trials ended before its first trial"
                    ) from None
                continue
            if isinstance(answer, Exception):
                raise answer
            rows: bytes = answer
            return rows
        return None

    def begin(self) -> None:
        """Start the supervisor, and do not wait."""
        if self._pipe is None:
            self._pipe = self._begun()
            self._awaited, self._started_once = True, False

    def start(self) -> None:
        """Start the supervisor and wait until it has imported what trials need."""
        self.begin()
        if self._awaited:
            assert self._pipe is not None
            self._awaited = False
            with suppress(EOFError, OSError):  # the next request finds that the supervisor is gone
                self._started_once = self._pipe.recv() == READY

    def _ask(self, order: Order) -> Any:
        self.start()
        assert self._pipe is not None
        self._pipe.send(order)
        return self._pipe.recv()

    def _begun(self) -> Connection:
        ours, theirs = Pipe()
        with theirs:
            numbers = theirs.fileno(), os.getpid()
            if self._forks and threads_here() == 1:
                self._process = Forked(target=supervisor.forked, args=numbers)
                self._process.start()
                return ours
            self._process = subprocess.Popen(
                boot_command(supervisor.__name__, *numbers),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # NumPy's threads would make forks unsafe.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                start_new_session=True,  # the parent handles Ctrl-C of the terminal
            )
        return ours

    def _end(self) -> None:
        process, pipe = self._process, self._pipe
        self._process = self._pipe = None
        if process is not None:
            process.kill()
            process.wait()
            end_session(process.pid)
        if pipe is not None:
            pipe.close()

    def close(self) -> None:
        """End the supervisor and the trial that it runs."""
        self._closed = True
        if self._process is not None:
            process = self._process
            process.kill()
            process.wait()
            end_session(process.pid)


def row_of(line: bytes) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(line)
    return {**content, "finished_at": datetime.fromisoformat(content["finished_at"])}
