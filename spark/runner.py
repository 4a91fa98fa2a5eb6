"""The Spark driver of the runner interface: a wave of chunks is one job, its rows come back together."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pulsar_ml.campaign.chunk import Job
from pulsar_ml.campaign.plan import Chunk
from pulsar_ml.campaign.runner import POLL_SECONDS, ChunkFailure, RunnerError, Watch, Wave
from pulsar_ml.campaign.schema import ROW, loose
from spark.session import java_message
from spark.tasks import MARK, task_for, work_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_TASK_SECONDS = 60  # after this long without a running task, say that the cluster may have no room
CANCEL_SECONDS = 20  # how long a cancelled job may take to end before it is left alone


class SparkRunner:
    """Spreads chunks over the executors of a session, one task each.

    Rows are collected by wave and written by the driver: it works without a shared file system, and
    the driver never holds more than one wave. Spark repeats the chunks of a lost Python worker or executor;
    one that fails again and again takes the rows of its job along, and the others are handed back.
    """

    name = "spark"

    def __init__(
        self, session: SparkSession, *, cpus: int, registry: str, note: Callable[[str], None]
    ) -> None:
        self._session = session
        self._cpus = cpus
        self._registry = registry
        self._note = note
        self._jobs = 0

    @property
    def slots(self) -> int:
        return max(1, self._session.sparkContext.defaultParallelism // self._cpus)

    def run(self, job: Job, chunks: Sequence[Chunk], watch: Watch) -> Wave:
        self._jobs += 1
        group = f"{job.run_id} wave {self._jobs}"
        collecting = _Collecting(self._session, group, job, chunks, self._registry)
        collecting.start()
        self._follow(group, chunks, collecting, watch)
        if collecting.rows is not None:
            rows = collecting.rows
            wave = Wave(batches=rows.to_batches())
            if failed := self._count(group)[1]:
                wave.warnings.append(
                    f"{failed} task attempts failed in {group}, with their Python worker or executor, and "
                    "Spark repeated them; see the executors' logs"
                )
            return wave
        if watch.stopped():
            return Wave(left=list(chunks))
        return failed_wave(chunks, collecting.error)

    def _follow(self, group: str, chunks: Sequence[Chunk], collecting: _Collecting, watch: Watch) -> None:
        """Reports progress until the job ended; cancels it when asked to stop."""
        trials = sum(len(chunk) for chunk in chunks)
        told = 0
        idle_since = time.monotonic()
        while collecting.is_alive():
            collecting.join(POLL_SECONDS)
            if watch.stopped():
                self._cancel(group, collecting)
                return
            done, _, active = self._count(group)
            if done or active:
                idle_since = float("inf")
            elif time.monotonic() - idle_since > NO_TASK_SECONDS:
                self._note(
                    f"no task has started for {NO_TASK_SECONDS} s: an executor may have fewer than the "
                    f"{self._cpus} cores that a task reserves (--task-cpus), or the cluster has no room"
                )
                idle_since = float("inf")
            now = trials * done // len(chunks)
            watch.done(now - told, 0)
            told = now

    def _cancel(self, group: str, collecting: _Collecting) -> None:
        deadline = time.monotonic() + CANCEL_SECONDS
        while collecting.is_alive() and time.monotonic() < deadline:
            try:
                # Again and again: a job that is just being submitted is not cancelled by the first.
                self._session.sparkContext.cancelJobGroup(group)
            except Exception:  # noqa: BLE001  (the JVM may be gone, as under spark-submit)
                return
            collecting.join(1.0)

    def _count(self, group: str) -> tuple[int, int, int]:
        """Tasks of a job group that completed, failed and run."""
        tracker = self._session.sparkContext.statusTracker()
        done = failed = active = 0
        try:
            for job_id in tracker.getJobIdsForGroup(group):
                info = tracker.getJobInfo(job_id)
                for stage_id in info.stageIds if info else ():
                    if stage := tracker.getStageInfo(stage_id):
                        done += stage.numCompletedTasks
                        failed += stage.numFailedTasks
                        active += stage.numActiveTasks
        except Exception:  # noqa: BLE001  (progress is a courtesy; the job itself reports what broke)
            pass
        return done, failed, active

    def close(self) -> None:
        """Ends the session and its executors."""
        try:
            self._session.stop()
        except Exception:  # noqa: BLE001  (there is nothing left to end when the JVM is gone)
            pass


class _Collecting(threading.Thread):
    """Runs the job of a wave, so that the main thread stays free for progress and Ctrl-C."""

    def __init__(
        self, session: SparkSession, group: str, job: Job, chunks: Sequence[Chunk], registry: str
    ) -> None:
        super().__init__(daemon=True)
        self._session = session
        self._group = group
        self._job = job
        self._chunks = chunks
        self._registry = registry
        self.rows: pa.Table | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        from pyspark.sql.pandas.types import from_arrow_schema

        count = len(self._chunks)
        work = work_for(self._job, self._chunks, self._registry)
        try:
            self._session.sparkContext.setJobGroup(self._group, f"chunks of {self._group}", True)
            # One row in one partition for each chunk: other sources of rows end up in few partitions.
            frame = self._session.range(0, count, 1, count).mapInArrow(
                task_for(work), from_arrow_schema(loose(ROW))
            )
            self.rows = frame.toArrow().cast(ROW)
        except Exception as error:  # noqa: BLE001  (handed to the main thread, which explains it)
            self.error = error


def failed_wave(chunks: Sequence[Chunk], error: BaseException | None) -> Wave:
    """Finds out which chunk failed a job; the others are left to run again.

    Raises ``RunnerError`` when it was not a chunk: then no other chunk would fare better.
    """
    text = str(error)
    if (start := text.find(MARK)) >= 0:
        raise RunnerError(text[start + len(MARK) :].splitlines()[0])
    found = re.search(r"Task (\d+) in stage", text)
    if found is None or int(found[1]) >= len(chunks):
        raise RunnerError(f"the Spark job failed: {java_message(error or RuntimeError('no result'))}")
    culprit = chunks[int(found[1])]
    left = [chunk for chunk in chunks if chunk is not culprit]
    return Wave(left=left, failures=[ChunkFailure(culprit, cause(text))])


def cause(text: str) -> str:
    """What a task died of: a crash with its signal, or the last line of a Python traceback."""
    if "Python worker exited unexpectedly" in text:
        crash = re.search(r"Fatal Python error: ([^\n]+)", text)
        return "its Python worker died" + (f" ({crash[1].strip()})" if crash else "")
    lines = [line.strip() for line in text.splitlines()]
    told = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    python = [line for line in told if not line.startswith("org.apache.spark")]
    return (python or told or lines or ["no reason given"])[-1]
