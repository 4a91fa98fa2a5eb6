"""Measures the costs of tasks, chunks and rows with trivial trials."""

from __future__ import annotations

import pickle
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import psutil
import pyarrow as pa

from pulsar_ml.campaign.plan.pace import CHUNKS_PER_TASK, Pace
from pulsar_ml.campaign.plan.plan import Chunk, Plan, pieces_of_size
from pulsar_ml.campaign.run.runner import Watch
from pulsar_ml.campaign.run.waves import run_campaign
from pulsar_ml.campaign.store.ledger import ledger_of
from pulsar_ml.campaign.store.merge import Summary, add_chunks
from pulsar_ml.campaign.store.staging import merge_part, open_staging, remove, write_part
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.campaign.trial.isolation import Isolation
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.distributed.driver import spark_session
from pulsar_ml.distributed.runner import SparkRunner
from pulsar_ml.distributed.scale.costs import Costs, Load, predict
from pulsar_ml.distributed.scale.trivial import BUILD_ID, EVERY, NAME, ROWS, SUITES, trial
from pulsar_ml.distributed.scale.trivial import rows as trivial_rows
from pulsar_ml.distributed.scratch import scratch_directory
from pulsar_ml.distributed.tasks import bunches
from pulsar_ml.distributed.waiting import MASTER_SECONDS
from pulsar_ml.errors import UsageError

SIMULATED_TASK, SIMULATED_WAVE = 1.0, 10.0  # seconds
QUIET = Watch(lambda: False, lambda trials, violations: None)
JOB = Job("scale", BUILD_ID, TrialOptions())


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds of a wave's job and of the driver after it; bytes of files and in the driver."""

    job: float
    driver: float
    rows: int
    ledger: int
    held: int


class Fixed(Pace):
    """Tasks of a fixed number of chunks, whatever their time."""

    def __init__(self, chunks: int) -> None:
        super().__init__(0.0)
        self._count = chunks

    def tasks(self, chunks: Sequence[Chunk], slots: int) -> list[list[Chunk]]:
        return [list(chunks[at : at + self._count]) for at in range(0, len(chunks), self._count)]


class Bench:
    """A session, and runs of trivial trials in it."""

    def __init__(
        self,
        master: str,
        conf: dict[str, str],
        stack: ExitStack,
        note: Callable[[str], None],
        *,
        seconds: float = MASTER_SECONDS,
    ) -> None:
        self.scratch = stack.enter_context(scratch_directory("scale"))
        self.session = spark_session(stack, master, conf, suites=NAME, seconds=seconds)
        self._note = note
        self._runs = 0

    def store(self) -> RunStore:
        self._runs += 1
        return RunStore(self.scratch / f"run-{self._runs}", {"run_id": "scale", "runner": {}})

    def runner(self, store: RunStore, pace: Pace) -> SparkRunner:
        return SparkRunner(
            self.session,
            cpus=1,
            registry=NAME,
            note=self._note,
            pace=pace,
            staging=store.directory,
            maker=ROWS,
        )

    def wave(self, tasks: int, chunks: int, trials: int) -> Timed:
        """A wave of so many tasks of so many chunks of so many trials."""
        plan = Plan(("trivial",), 1, tasks * chunks * trials, tasks * chunks, TrialOptions())
        store = self.store()
        runner = self.runner(store, Fixed(chunks))
        began = time.perf_counter()
        wave = runner.run(JOB, list(plan.chunks()), QUIET)
        ran = time.perf_counter()
        assert wave.staged is not None
        for number, part in enumerate(wave.staged.parts):
            store.publish_part(number, part)
        wave.staged.remove()
        add_chunks(Summary(), wave.staged.chunks)
        published = time.perf_counter()
        rows, ledger = (
            sum(path.stat().st_size for path in (store.directory / table).iterdir())
            for table in ("trials", "chunks")
        )
        held = 2 * (wave.staged.chunks.nbytes + len(pickle.dumps(list(plan.chunks()))))
        store.close()
        shutil.rmtree(store.directory)
        return Timed(ran - began, published - ran, rows, ledger, held)

    def best(self, tasks: int, chunks: int, trials: int) -> Timed:
        """The quicker of two waves, which other work on the machine disturbed less."""
        return min(
            (self.wave(tasks, chunks, trials) for _ in range(2)), key=lambda timed: timed.job
        )

    def files(self, chunks: int, trials: int) -> tuple[float, float]:
        """Seconds in which one core writes rows as a task does, and merges them; best of three."""
        every = [Chunk(at, "trivial", at * trials, (at + 1) * trials) for at in range(chunks)]
        written, merged = [], []
        for _ in range(3):
            directory, _ = open_staging(self.scratch)
            began = time.perf_counter()
            result = (pa.Table.from_batches([trivial_rows(chunk, JOB)]) for chunk in every)
            for some in bunches(write_part(directory, "one", result)):
                ledger_of(pa.concat_tables(some))
            written.append(time.perf_counter() - began)
            merge_part(directory, ["one"], "merged")
            merged.append(time.perf_counter() - began - written[-1])
            remove(directory)
        return min(written), min(merged)

    def memory(self) -> tuple[int, int]:
        """Bytes resident in Python, and used in the JVM's heap when garbage has gone."""
        jvm: Any = self.session.sparkContext._jvm
        jvm.java.lang.System.gc()
        runtime = jvm.java.lang.Runtime.getRuntime()
        return psutil.Process().memory_info().rss, int(runtime.totalMemory() - runtime.freeMemory())


def calibrate(bench: Bench, *, rows: int, tasks: int) -> tuple[Costs, Costs]:
    """The costs of trivial trials in a job, and of trials in processes of their own."""
    slots = bench.runner(bench.store(), Fixed(1)).slots
    bench.wave(slots, 1, 1)  # starts the Python workers
    few = bench.best(tasks, 1, 1)
    many = bench.best(4 * tasks, 1, 1)
    task = max((many.job - few.job) * slots / (3 * tasks), 0.0)
    job = max(few.job - task * tasks / slots, 0.0)
    chunky = bench.best(slots, 10 * tasks, 1)
    chunks = slots * 10 * tasks
    empty = bench.files(1, 1)
    many_chunks, rows_alone = bench.files(500, 1), bench.files(1, rows // 4)
    chunk = (many_chunks[0] - empty[0]) / 499
    row, merge = (
        (long - short) / (rows // 4) for long, short in zip(rows_alone, empty, strict=True)
    )
    long = bench.wave(slots, 1, rows // slots)
    began = time.perf_counter()
    bench.session.range(0, 20 * tasks, 1, 20 * tasks).write.format("noop").mode("overwrite").save()
    schedule = (time.perf_counter() - began) / (20 * tasks)
    python, heap = bench.memory()
    bare = Costs(
        job=job + few.driver,
        task=task,
        chunk=max(chunk, 1e-6),
        row=max(row, 1e-9),
        schedule=schedule,
        driver_chunk=max(chunky.driver - few.driver, 0.0) / chunks,
        merge=max(merge, 1e-9),
        row_bytes=long.rows / rows,
        chunk_bytes=chunky.ledger / chunks,
        memory=python + heap,
        chunk_memory=chunky.held / chunks,
    )
    apart_chunk, apart_row = isolated(rows // 100)
    return bare, replace(bare, chunk=bare.chunk + apart_chunk, row=bare.row + apart_row)


def isolated(trials: int) -> tuple[float, float]:
    """Seconds of a chunk and of a trial that a process of its own costs."""
    place = Isolation()
    try:
        place.run(SUITES["trivial"], Chunk(0, "trivial", 0, 1), JOB, trial=trial)  # starts it
        spent = {1: [0.0], trials: [0.0]}
        for count in (1, trials) * 3:
            began = time.perf_counter()
            place.run(SUITES["trivial"], Chunk(0, "trivial", 0, count), JOB, trial=trial)
            spent[count].append(time.perf_counter() - began)
    finally:
        place.close()
    chunk, many = (min(times[1:]) for times in spent.values())
    return chunk, max(many - chunk, 0.0) / (trials - 1)


def simulate(bench: Bench, costs: Costs, trials: int) -> dict[str, Any]:
    """Runs a whole sweep of trivial trials, beside the model's prediction."""
    store = bench.store()
    runner = bench.runner(store, Pace(SIMULATED_TASK))
    size = max(
        1, min(round(SIMULATED_TASK / CHUNKS_PER_TASK / costs.row), -(-trials // runner.slots))
    )
    plan = Plan(("trivial",), 0, trials, pieces_of_size(trials, size), TrialOptions())
    load = Load(
        seeds=trials, cores=runner.slots, trial=0.0, task=SIMULATED_TASK, wave=SIMULATED_WAVE
    )
    outcome = run_campaign(plan, JOB, runner, store, wave_seconds=SIMULATED_WAVE, staged=True)
    if outcome.failures:
        raise UsageError(f"the simulation failed: {outcome.failures[0]}")
    summary = outcome.summary
    python, heap = bench.memory()
    store.close()
    shutil.rmtree(store.directory)
    return {
        "trials": summary.trials,
        "violations": summary.violations,
        "expected": (trials, -(-trials // EVERY)),
        "signatures": len(summary.groups),
        "waves": outcome.waves,
        "predicted": predict(costs, load).wall,
        "seconds": outcome.seconds,
        "python": python,
        "heap": heap,
    }
