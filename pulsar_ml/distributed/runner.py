"""The Spark driver of the runner interface: a wave of chunks is one job.

Its rows come back together, or the executors leave them in files and only the ledger comes back.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pulsar_ml.campaign.plan.pace import Pace
from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.run.runner import POLL_SECONDS, ChunkFailure, RunnerError, Watch, Wave
from pulsar_ml.campaign.store.ledger import ledger_of
from pulsar_ml.campaign.store.schema import CHUNKS, ROW
from pulsar_ml.campaign.store.staging import Staged, open_staging, path_of, remove
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.distributed.counters import TaskCounters, since
from pulsar_ml.distributed.groups import groups_of, merged_parts
from pulsar_ml.distributed.jobs import results_of, table_of
from pulsar_ml.distributed.session import SessionError, check_answer, java_message
from pulsar_ml.distributed.tasks import MARK, Work, task_for, work_for
from pulsar_ml.distributed.waiting import MASTER_SECONDS, MESSAGE_SECONDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pulsar_ml.distributed.tasks import Counters

LOOK_SECONDS = 1.0  # between two questions about progress to the JVM, which has other work
NO_TASK_SECONDS = 60  # without a running task, before a note says that there may be no room
LEDGER = CHUNKS.append(pa.field("file", pa.string(), nullable=False))  # and where its trials are
CANCEL_SECONDS = 20  # for a cancelled job to end


class SparkRunner:
    """Spreads chunks over the executors of a session, runs of neighbouring ones in one task each.

    The driver collects and writes the rows wave by wave, which needs no shared file system. With
    ``staging``, a run's directory that all executors see, executors write the rows there. Spark
    repeats the chunks of a lost Python worker or executor. A chunk that fails again and again fails
    its job; the job's other chunks are handed back.
    """

    name = "spark"

    def __init__(
        self,
        session: SparkSession,
        *,
        cpus: int,
        registry: str,
        note: Callable[[str], None],
        log: Path | None = None,
        pace: Pace | None = None,
        staging: Path | None = None,
        maker: str = "",
        master: str = "",
        seconds: float = MASTER_SECONDS,
    ) -> None:
        """Without ``pace`` each chunk is a task. ``maker`` makes rows instead of running trials.

        ``log`` is the file of what the driver's JVM prints, when tasks run in it. A ``master`` that
        is gone, while no task runs, may take ``seconds`` to come back.
        """
        self._session = session
        self._pace = pace or Pace(0.0)
        self._staging = staging
        self._maker = maker
        self._master = MasterLife(master, seconds, note)
        self._cpus = cpus
        self._registry = registry
        self._log = "" if log is None else str(log.resolve())
        self._note = note
        self._jobs = 0
        self._counters = TaskCounters(session.sparkContext)
        self._begun: deque[_Collecting] = deque()  # jobs under way

    @property
    def session(self) -> SparkSession:
        return self._session

    @property
    def slots(self) -> int:
        return max(1, self._session.sparkContext.defaultParallelism // self._cpus)

    @property
    def under_way(self) -> bool:
        return bool(self._begun)

    def run(self, job: Job, chunks: Sequence[Chunk], watch: Watch) -> Wave:
        """Run chunks; with ``watch.carry`` return the rows of the job before theirs.

        So Spark has tasks of another job for each core that is free. Not with ``staging``: a job
        merges the files of a wave, and would wait for those tasks.
        """
        if chunks:
            self._begun.append(self._begin(job, chunks, watch))
        if watch.carry and self._staging is None and len(self._begun) == 1:
            return Wave()
        return self._wave(self._begun.popleft(), watch)

    def _begin(self, job: Job, chunks: Sequence[Chunk], watch: Watch) -> _Collecting:
        self._jobs += 1
        wave = watch.wave + len(self._begun)
        labels = (
            f"{job.run_id} wave {wave} job {self._jobs}",
            describe(job.run_id, replace(watch, wave=wave), chunks),
        )
        tasks = self._pace.tasks(chunks, self.slots)
        staging = None
        if self._staging is not None:
            directory, token = open_staging(self._staging)
            staging = str(directory), token
        work = work_for(
            job,
            chunks,
            self._registry,
            tasks=tasks,
            staging=staging,
            maker=self._maker,
            log=self._log,
            ends=None if watch.ends is None else time.time() + watch.ends - time.monotonic(),
            whole=watch.whole,
        )
        counters = self._counters.of_job(self._jobs)
        collecting = _Collecting(self._session, labels, work, chunks, tasks, counters)
        collecting.start()
        return collecting

    def _wave(self, begun: _Collecting, watch: Watch) -> Wave:
        """The wave of a job, which is awaited."""
        wave = None
        try:
            self._follow(begun, watch)
            if begun.rows is None:
                return self._without(begun, watch)
            if begun.directory is None:
                wave, ledger = Wave(batches=begun.rows.to_batches()), ledger_of(begun.rows)
            else:
                wave, ledger = self._staged(begun.group, begun.directory, begun.rows), begun.rows
        finally:
            if wave is None and begun.directory is not None:
                remove(begun.directory)
        self._pace.learn(ledger)
        run = set(ledger["chunk_id"].to_pylist())
        wave.left.extend(chunk for chunk in begun.chunks if chunk.chunk_id not in run)
        if failed := self._count(begun.group)[1]:
            wave.warnings.append(
                f"{failed} task attempts failed in {begun.group}, with their Python worker or "
                "executor; Spark repeated them; see the executors' logs"
            )
        return wave

    def _without(self, begun: _Collecting, watch: Watch) -> Wave:
        """A wave whose job failed or was cancelled."""
        if watch.stopped():
            return Wave(left=list(begun.chunks))
        error = begun.error or RuntimeError("no result")
        wave, suspects = failed_tasks(begun.chunks, begun.tasks, error)
        self._pace.apart(suspects)
        return wave

    def _staged(self, group: str, directory: Path, ledger: pa.Table) -> Wave:
        """A wave whose rows are in files, of which the ledger names those that count."""
        missing = [path for name in set(ledger["file"].to_pylist())
                   if not (path := path_of(directory, "trials", name)).exists()]  # fmt: skip
        if missing:
            raise RunnerError(
                f"{missing[0]} was written by an executor and is missing here; --rows executors "
                "needs a results directory that all machines share, --rows driver does not"
            )
        if not len(ledger):
            remove(directory)
            return Wave()
        parts = merged_parts(self._session, directory, ledger, f"files of {group}")
        groups = []
        if any(ledger["violations"].to_pylist()):
            found = [part.violations for part in parts]
            groups = groups_of(self._session, found, f"violations of {group}", self.slots)
        return Wave(staged=Staged(directory, parts), groups=groups)

    def _follow(self, begun: _Collecting, watch: Watch) -> None:
        """Reports progress until the job ended; cancels the job when a stop is requested."""
        idle_since = next_look = time.monotonic()
        while begun.is_alive():
            begun.join(POLL_SECONDS)
            if watch.stopped():
                self._cancel(begun)
                return
            if begun.is_alive() and time.monotonic() < next_look:
                continue
            next_look = time.monotonic() + LOOK_SECONDS
            done, _, active = self._count(begun.group)
            if done or active:
                idle_since = float("inf")
            elif time.monotonic() - idle_since > NO_TASK_SECONDS:
                self._note(
                    f"no task has started for {NO_TASK_SECONDS} s: an executor may have fewer than "
                    f"the {self._cpus} cores that a task reserves (--task-cpus), or the cluster "
                    "has no room"
                )
                idle_since = float("inf")
            try:
                self._master.look(busy=active > 0)
            except RunnerError:
                self._cancel(begun)
                raise
            self._report(begun, watch)
        # The job may have ended, with tasks that were not counted yet, while progress was shown.
        self._report(begun, watch)

    def _report(self, begun: _Collecting, watch: Watch) -> None:
        """Reports what a job's tasks counted since the last report."""
        trials, violations, executions, classes = begun.news()
        watch.searched(executions, classes)
        watch.done(trials, violations)
        self._publish(watch.wave, watch.round)

    def _publish(self, wave: int, stage: int) -> None:
        with suppress(Exception):  # metrics are a courtesy
            self._counters.publish(wave, stage)

    def _cancel(self, begun: _Collecting) -> None:
        deadline = time.monotonic() + CANCEL_SECONDS
        while begun.is_alive() and time.monotonic() < deadline:
            try:
                # Again and again: a job that is just being submitted is not cancelled by the first.
                self._session.sparkContext.cancelJobGroup(begun.group)
            except Exception:
                return
            begun.join(1.0)

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
        except Exception:
            pass
        return done, failed, active

    def close(self) -> None:
        """Ends the session and its executors."""
        with suppress(Exception):  # the JVM may be gone
            self._session.stop()


class MasterLife:
    """Asks a standalone master, while no task runs, whether it is still there."""

    def __init__(self, master: str, seconds: float, note: Callable[[str], None]) -> None:
        self._master = master
        self._seconds = seconds
        self._note = note
        self._quiet_since = time.monotonic()
        self._gone_since: float | None = None

    def look(self, *, busy: bool) -> None:
        """Raises RunnerError when the master has been gone for too long."""
        now = time.monotonic()
        if busy:
            self._quiet_since, self._gone_since = now, None
        if now - self._quiet_since < MESSAGE_SECONDS:
            return
        self._quiet_since = now
        try:
            check_answer(self._master)
        except SessionError as error:
            if self._gone_since is None:
                self._gone_since = now
                self._note(f"waiting for the Spark master for up to {self._seconds:g} s: {error}")
            elif now - self._gone_since >= self._seconds:
                raise RunnerError(str(error)) from None
        else:
            self._gone_since = None


class _Collecting(threading.Thread):
    """Runs the job of a wave, so that the main thread stays free for progress and Ctrl-C."""

    def __init__(
        self,
        session: SparkSession,
        labels: tuple[str, str],  # the job's group, and what it says to people
        work: Work,
        chunks: Sequence[Chunk],
        tasks: Sequence[Sequence[Chunk]],
        counters: Counters,
    ) -> None:
        super().__init__(daemon=True)
        self._session = session
        self._labels = labels
        self._work = work
        self._counters = counters
        self._reported = dict(counters.value)
        self.group = labels[0]
        self.chunks, self.tasks = chunks, tasks
        # Where executors leave rows, of which only the ledger comes back.
        self.directory = None if work.staging is None else Path(work.staging[0])
        self.rows: pa.Table | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        context = self._session.sparkContext
        try:
            context.setJobGroup(*self._labels, True)
            task = task_for(self._work, self._counters)
            found = results_of(context, len(self._work.tasks), task)
            self.rows = table_of(found, ROW if self.directory is None else LEDGER)
        except Exception as error:
            self.error = error

    def news(self) -> tuple[int, ...]:
        """The counts of the job's tasks since the last call."""
        now = dict(self._counters.value)
        before, self._reported = self._reported, now
        return since(before, now)


def describe(run_id: str, watch: Watch, chunks: Sequence[Chunk]) -> str:
    """The description of a job on Spark's pages: run, round, wave, suites and their seeds."""
    ranges: dict[str, tuple[int, int]] = {}
    for chunk in chunks:
        name = f"{chunk.suite} by {chunk.strategy}" if chunk.strategy else chunk.suite
        low, high = ranges.get(name, (chunk.seed_lo, chunk.seed_hi))
        ranges[name] = min(low, chunk.seed_lo), max(high, chunk.seed_hi)
    suites: dict[tuple[int, int], list[str]] = {}
    for name, span in ranges.items():
        suites.setdefault(span, []).append(name)
    parts = [
        f"{', '.join(names)} seeds {low} to {high - 1}" for (low, high), names in suites.items()
    ]
    trials = sum(map(len, chunks))
    where = f"{run_id}, round {watch.round}, wave {watch.wave}"
    return f"{where}: {'; '.join(parts)} ({len(chunks):,} chunks, {trials:,} trials)"


def failed_wave(chunks: Sequence[Chunk], error: BaseException | None) -> Wave:
    """The wave of a failed job with one task for each chunk."""
    return failed_tasks(chunks, [[chunk] for chunk in chunks], error)[0]


def failed_tasks(
    chunks: Sequence[Chunk], tasks: Sequence[Sequence[Chunk]], error: BaseException | None
) -> tuple[Wave, Sequence[Chunk]]:
    """The wave of a failed job, and the suspects: the chunks of the task that failed it.

    A single suspect is the failure, and the other chunks run again; several suspects run again,
    too, each in a task of its own. Raises ``RunnerError`` when no chunk is to blame, because no
    other chunk would fare better.
    """
    text = str(error)
    if (start := text.find(MARK)) >= 0:
        raise RunnerError(text[start + len(MARK) :].splitlines()[0])
    found = re.search(r"Task (\d+) in stage", text)
    if found is None or int(found[1]) >= len(tasks):
        raise RunnerError(
            f"the Spark job failed: {java_message(error or RuntimeError('no result'))}"
        )
    culprit, *others = tasks[int(found[1])]
    if others:
        return Wave(left=list(chunks)), [culprit, *others]
    left = [chunk for chunk in chunks if chunk is not culprit]
    return Wave(left=left, failures=[ChunkFailure(culprit, cause(text))]), []


def cause(text: str) -> str:
    """The cause of a task's death: a signal, or the last line of a Python traceback."""
    if "Python worker exited unexpectedly" in text:
        crash = re.search(r"Fatal Python error: ([^\n]+)", text)
        return "its Python worker died" + (f" ({crash[1].strip()})" if crash else "")
    lines = [line.strip() for line in text.splitlines()]
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    python = [line for line in errors if not line.startswith("org.apache.spark")]
    return (python or errors or lines or ["no reason given"])[-1]
