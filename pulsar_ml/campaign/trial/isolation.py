"""Runs trials in a separate process, so that a crash cannot hurt the caller."""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import suppress
from datetime import datetime
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.store.schema import batch_of
from pulsar_ml.campaign.trial.boot import boot_command
from pulsar_ml.campaign.trial.chunk import Job, Trial
from pulsar_ml.campaign.trial.engines import run_trial
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.supervisor import READY, Order

ATTEMPTS = 2  # at a chunk whose supervisor dies; a trial cannot kill its supervisor
SUPERVISOR = "pulsar_ml.campaign.trial.supervisor"


class SupervisorLostError(RuntimeError):
    """The process that supervises trials died, and so did its replacement."""


class Isolation:
    """Runs chunks in a supervisor: a process that starts with the first chunk.

    Runs one chunk at a time; any thread may call ``close``. The supervisor ends with the thread
    that started it.
    """

    def __init__(self, *, echo: bool = False) -> None:
        """With ``echo``, output of trials is copied to this process's standard error."""
        self._echo = echo
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._closed = False

    def run(
        self, suite: Suite, chunk: Chunk, job: Job, *, trial: Trial = run_trial, attempt: int = 0
    ) -> pa.RecordBatch:
        """Return one row for each trial; a trial that crashes, hangs or eats memory has a
        violation.

        ``attempt`` is the number of earlier tries by other processes; the rows contain it.
        Raises what a trial raises, and SupervisorLostError.
        """
        order = Order(suite, chunk, job.of(chunk), trial, self._echo)
        began = time.perf_counter_ns()
        for _ in range(ATTEMPTS):
            try:
                answer = self._ask(order)
            except (EOFError, OSError):
                self._end()
                if self._closed:
                    break
                continue
            if isinstance(answer, Exception):
                raise answer
            wall_us = (time.perf_counter_ns() - began) // 1000
            return batch_of(
                [row_of(line) for line in answer.splitlines()], wall_us=wall_us, attempt=attempt
            )
        raise SupervisorLostError(f"the process that supervises its trials ended {ATTEMPTS} times")

    def start(self) -> None:
        """Start the supervisor and wait until it has imported what trials need."""
        if self._pipe is None:
            self._pipe = self._started()
            with suppress(EOFError, OSError):  # the next request finds that the supervisor is gone
                assert self._pipe.recv() == READY

    def _ask(self, order: Order) -> Any:
        self.start()
        assert self._pipe is not None
        self._pipe.send(order)
        return self._pipe.recv()

    def _started(self) -> Connection:
        ours, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                boot_command(SUPERVISOR, theirs.fileno(), os.getpid()),
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
        if pipe is not None:
            pipe.close()

    def close(self) -> None:
        """End the supervisor and the trial that it runs."""
        self._closed = True
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def row_of(line: bytes) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(line)
    return {**content, "finished_at": datetime.fromisoformat(content["finished_at"])}
