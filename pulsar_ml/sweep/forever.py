"""The endless sweep: its options, its campaign, and the report that is published meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from pulsar_ml.campaign.plan.endless import Endless
from pulsar_ml.campaign.plan.plan import Plan
from pulsar_ml.campaign.run.progress import Progress
from pulsar_ml.campaign.run.runner import Runner
from pulsar_ml.campaign.run.waves import Outcome, run_campaign, wave_length
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.campaign.store.witnesses import witnesses_of
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.distributed.runner import SparkRunner
from pulsar_ml.distributed.stream import CHECKPOINT, ChunkStream
from pulsar_ml.sweep.display import Display

MOST_WARNINGS = 100  # of the last waves
NICE = 10  # a report may wait, trials should not
REPORT = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from pulsar_ml.cli import main
main(["report", sys.argv[2]])
"""


@dataclass(frozen=True, slots=True)
class EndlessOptions:
    """The options of an endless sweep.

    Attributes:
        report_every: minutes between two reports.
        witnesses: records to keep of each signature.
        waves: the number of waves after which this process ends; None: no limit.
        chunk_seconds: the time that a chunk takes, about.
    """

    report_every: float
    witnesses: int
    waves: int | None
    chunk_seconds: float


def run_forever(
    plan: Plan,
    job: Job,
    runner: Runner,
    store: RunStore,
    options: EndlessOptions,
    *,
    outcome: Outcome,
    done: Collection[int],
    stop_requested: Callable[[], bool],
    display: Display,
    wave_seconds: float,
    cores: int,
) -> None:
    """Runs chunks of a plan until a stop is requested; Spark gets them as a checkpointed stream.

    Raises as ``run_campaign`` does, and ``RunnerError`` when the stream fails.
    """
    directory = store.directory
    last = None if options.waves is None else outcome.waves + options.waves
    next_chunk = max(done, default=-1) + 1
    store.bound = witnesses_of(directory, options.witnesses).bound
    publisher = Publisher(directory, 60 * options.report_every, display.note)

    def stopped() -> bool:
        return stop_requested() or (last is not None and outcome.waves >= last)

    def show(progress: Progress) -> None:
        del outcome.warnings[:-MOST_WARNINGS]
        display.show(progress)
        publisher.tick(outcome.waves)

    with ExitStack() as stack:
        stack.callback(publisher.close)
        if isinstance(runner, SparkRunner):
            rows = wave_length(runner.slots, options.chunk_seconds, plan.chunk_trials, wave_seconds)
            stream = ChunkStream(
                runner.session,
                directory,
                name=job.run_id,
                next_chunk=next_chunk,
                rows=rows,
                stopped=stopped,
            )
            stack.callback(stream.close)
            source = Endless(plan, next_chunk, stream.batches)
        else:  # a later stream begins after the chunks of this runner
            shutil.rmtree(directory / CHECKPOINT, ignore_errors=True)
            source = Endless(plan, next_chunk)
        run_campaign(
            source,
            job,
            runner,
            store,
            outcome=outcome,
            done=done,
            stopped=stopped,
            show=show,
            on_found=display.found,
            wave_seconds=wave_seconds,
            cores=cores,
        )


def publish(directory: Path, note: Callable[[str], None]) -> None:
    """Makes the last report and waits for it."""
    publisher = Publisher(directory, 0, note)
    publisher.tick(1)
    publisher.close()


class Publisher:
    """Makes ``RUN/report.html`` from time to time, in a process beside the sweep.

    The page is replaced whole; ``note`` gets a message when a page cannot be made.
    """

    def __init__(self, directory: Path, seconds: float, note: Callable[[str], None]) -> None:
        self._directory = directory
        self._seconds = seconds
        self._note = note
        self._next = time.monotonic() + seconds
        self._published = 0  # waves at the last report
        self._process: subprocess.Popen[bytes] | None = None
        self._before: object = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed by close)

    def tick(self, waves: int) -> None:
        """Starts a report when it is due; called often. ``waves`` are finished."""
        if self._process is not None and self._process.poll() is not None:
            self._finish()
        if self._process is None and waves > self._published and time.monotonic() >= self._next:
            self._next = time.monotonic() + self._seconds
            self._published = waves
            self._start()

    def close(self) -> None:
        """Waits for the report under way."""
        self._finish()
        self._errors.close()

    def _start(self) -> None:
        self._errors.seek(0)
        self._errors.truncate()
        self._before = self._page()
        self._process = subprocess.Popen(
            [sys.executable, "-c", REPORT, json.dumps(sys.path), str(self._directory)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C of the terminal is the sweep's business
        )
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, NICE)

    def _finish(self) -> None:
        if self._process is None:
            return
        code = self._process.wait()  # the run's exit code, if there is a page
        self._process = None
        if self._page() == self._before:
            self._errors.seek(0)
            lines = self._errors.read().decode(errors="replace").strip().splitlines()
            self._note(
                f"no report could be made: {lines[-1] if lines else f'it ended with {code}'}"
            )

    def _page(self) -> object:
        """The identity of the page, which differs between two pages."""
        try:
            stat = (self._directory / "report.html").stat()
        except OSError:
            return None
        return stat.st_ino, stat.st_mtime_ns
