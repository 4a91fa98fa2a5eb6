"""Sweeps on Spark: speed against a bare pool, costs of tasks, rows and isolation, recovery.

Further rows measure the time to the first result, the loss of an executor, and the resumption of a
large run. A trial spins in native code until its thread has used a fixed processor time, so other
work on the machine makes it longer, never shorter. Rows that are compared are measured in the same
repeat. Executors import this file for its suites, so its functions import what executors do not
need. ``python -m benchmarks report`` measures the page about a run.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import count, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.measure import Benchmark
from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.store.columns import SPENT
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.processors import processor_count

if TYPE_CHECKING:
    from multiprocessing.pool import Pool

    import pyarrow as pa

    from pulsar_ml.campaign.trial.chunk import Job
    from pulsar_ml.campaign.trial.isolation import Isolation
    from pulsar_ml.distributed.runner import SparkRunner

COSTS = {
    "nothing": 0,
    "1_ms": 10**6,
    "100_ms": 10**8,
    "1_s": 10**9,
}  # nanoseconds of processor time
SUITES = {
    name: Suite(
        name=name,
        subject="spinning",
        summary="Spins.",
        settings={"nanoseconds": (cost, cost)},
        threads=1,
        operations=1,
    )
    for name, cost in COSTS.items()
}
REGISTRY = "benchmarks.spark"
BUILD_ID = "spinning"
HERE = Path(__file__).resolve().parent
SLOT_SECONDS = 8  # of work for each core, in tasks of one second
EMPTY_TASKS = 40  # beside one for each core
ROWS = 4_000  # of a task that spends its time on rows
ISOLATED = 1_000  # trials of 1 ms
RESUMED = 1_000_000  # trials
WAVES = 5  # of the run with these trials
CHUNK = 1_000
KILLED_SEEDS = 160  # trials of 100 ms in chunks of a second, on two executors
POLL_SECONDS = 0.01
TIMEOUT = 600.0
AGREE = 0.02  # spread of three repeats that makes more repeats unnecessary
# Columns that differ between two runs of the same trials.
UNSTABLE = ("run_id", "host", "finished_at", "duration_us", *SPENT)


def module() -> str:
    """The native module of the trials, compiled on first use."""
    from benchmarks.measure import loops

    path = loops("spinning").__file__
    assert path is not None
    return path


@cache
def job() -> Job:
    from pulsar_ml.campaign.trial.chunk import Job
    from pulsar_ml.campaign.trial.trial import TrialOptions

    return Job("benchmark", BUILD_ID, TrialOptions(threads=1, noise=False, module=module()))


def cores() -> int:
    return processor_count()


def chunks_of(name: str, count: int, size: int) -> list[Chunk]:
    return [Chunk(number, name, number * size, (number + 1) * size) for number in range(count)]


@cache
def spark() -> SparkRunner:
    """Spark on this machine, as ``pulsar-ml sweep`` starts it, one task on each core."""
    from pulsar_ml.distributed.runner import SparkRunner
    from pulsar_ml.distributed.session import open_session, settings
    from pulsar_ml.distributed.shipping import link_installed, pack

    scratch = Path(tempfile.mkdtemp(prefix="pulsar_ml-benchmark-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    site = link_installed(scratch / "site")
    defaults = settings(f"local[{cores()}]", cpus=1, scratch=scratch, site=site)
    session = open_session(defaults, {}, scratch=scratch, log=scratch / "spark.log")
    session.sparkContext.addPyFile(str(pack(scratch / "apps.zip", REGISTRY)))
    runner = SparkRunner(session, cpus=1, registry=REGISTRY, note=lambda text: None)
    atexit.register(runner.close)
    by_spark(
        runner, chunks_of("nothing", 4 * cores(), 1)
    )  # workers, supervisors, the first job's classes
    return runner


@cache
def pool() -> Pool:
    """Processes that only run chunks, without isolation and Spark."""
    from multiprocessing import get_context

    # Linux divides processor time among sessions, and each supervisor has its own session.
    processes = get_context("spawn").Pool(cores(), initializer=os.setsid)
    atexit.register(processes.terminate)
    by_pool(processes, chunks_of("nothing", 4 * cores(), 1))
    return processes


def in_pool(work: tuple[Job, Chunk]) -> pa.RecordBatch | None:
    from pulsar_ml.campaign.trial.chunk import run_chunk

    return run_chunk(SUITES[work[1].suite], work[1], work[0])


def by_pool(place: Pool, chunks: Sequence[Chunk]) -> float:
    """Seconds until all rows are here."""
    began = time.perf_counter()
    batches = list(place.imap_unordered(in_pool, [(job(), chunk) for chunk in chunks]))
    spent = time.perf_counter() - began
    check_whole([batch for batch in batches if batch is not None], chunks)
    return spent


def by_spark(runner: SparkRunner, chunks: Sequence[Chunk]) -> float:
    """Seconds until all rows are here."""
    from pulsar_ml.campaign.run.runner import Watch

    began = time.perf_counter()
    wave = runner.run(job(), chunks, Watch(lambda: False, lambda trials, violations: None))
    spent = time.perf_counter() - began
    check_whole(wave.batches, chunks)
    return spent


class Turns:
    """Measurements that several rows share. The first row of a repeat measures for all of them.

    ``measure`` gets the number of the repeat, so that it can alternate the order.
    """

    def __init__(self, measure: Callable[[int], Mapping[str, float]]) -> None:
        self._measure = measure
        self._figures: list[Mapping[str, float]] = []

    def row(self, name: str) -> Callable[[], float]:
        at = count()

        def run() -> float:
            repeat = next(at)
            while len(self._figures) <= repeat:
                self._figures.append(self._measure(len(self._figures)))
            return self._figures[repeat][name]

        return run


def side_by_side(name: str, size: int) -> Turns:
    """Trials per second of the pool and of Spark, and Spark's percentage of the pool."""

    def measure(repeat: int) -> dict[str, float]:
        chunks = chunks_of(name, SLOT_SECONDS * cores(), size)
        trials = len(chunks) * size
        sides: list[tuple[str, Callable[[], float]]] = [
            ("pool", lambda: by_pool(pool(), chunks)),
            ("spark", lambda: by_spark(spark(), chunks)),
        ]
        rates = {side: trials / run() for side, run in (sides, sides[::-1])[repeat % 2]}
        return {**rates, "share": rates["spark"] / rates["pool"] * 100}

    return Turns(measure)


def one_wave() -> float:
    """Milliseconds."""
    return by_spark(spark(), chunks_of("nothing", cores(), 1)) * 1e3


def empty_task() -> float:
    """Milliseconds of a core for one more task, less those of a chunk in the pool."""
    few, many = (chunks_of("nothing", number, 1) for number in (cores(), cores() + EMPTY_TASKS))
    spent = by_spark(spark(), many) - by_spark(spark(), few)
    spent -= by_pool(pool(), many) - by_pool(pool(), few)
    return spent / EMPTY_TASKS * cores() * 1e3


def one_row() -> float:
    """Microseconds of a row, less those of a row in the pool."""
    one, many = (chunks_of("nothing", 1, number) for number in (1, 1 + ROWS))
    spent = by_spark(spark(), many) - by_spark(spark(), one)
    spent -= by_pool(pool(), many) - by_pool(pool(), one)
    return spent / ROWS * 1e6


@cache
def place() -> Isolation:
    from pulsar_ml.campaign.trial.isolation import Isolation

    isolation = Isolation()
    atexit.register(isolation.close)
    isolation.start()
    return isolation


def isolation() -> float:
    """Microseconds of an isolated trial, less those of a trial in this process."""
    from pulsar_ml.campaign.trial.chunk import run_chunk

    suite, (chunk,) = SUITES["1_ms"], chunks_of("1_ms", 1, ISOLATED)
    began = time.perf_counter()
    place().run(suite, chunk, job())
    isolated = time.perf_counter()
    run_chunk(suite, chunk, job())
    return (2 * isolated - began - time.perf_counter()) / ISOLATED * 1e6


def sweep(out: Path, *options: str) -> subprocess.Popen[str]:
    """``python -m spark.sweep`` over the suites of this file."""
    command = [sys.executable, "-m", "spark.sweep", "--suites", REGISTRY, "--module", module()]
    return subprocess.Popen(
        [*command, "--out", str(out), "--json", *options],
        cwd=HERE.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def sweep_result(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The JSON object that a sweep prints at its end."""
    output, problem = process.communicate(timeout=TIMEOUT)
    if process.returncode:
        raise RuntimeError(f"a sweep ended with {process.returncode}: {problem.strip()[-300:]}")
    content: dict[str, Any] = json.loads(output)
    return content


def wait_for(found: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while process.poll() is None and not found():
        time.sleep(POLL_SECONDS)


def first_result(*options: str) -> Callable[[], float]:
    """Seconds from the start of the command until a wave of rows is on disk."""

    def run() -> float:
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory) / "run"
            began = time.perf_counter()
            process = sweep(
                out, "--suite", "1_ms", "--seeds", "400", "--chunk-size", "100", *options
            )
            wait_for((out / "trials" / "wave-00000.parquet").exists, process)
            spent = time.perf_counter() - began
            sweep_result(process)
            return spent

    return run


def with_a_loss(repeat: int) -> dict[str, float]:
    """Seconds of a sweep on two executors, without and with a killed one; rows that differ."""
    with tempfile.TemporaryDirectory() as directory:
        runs = [Path(directory) / name for name in ("undisturbed", "killed")]
        options = ["--suite", "100_ms", "--seeds", str(KILLED_SEEDS), "--chunk-size", "10"]
        options += ["--wave-seconds", "60", "--master", "local-cluster[2,1,1024]"]
        seconds = []
        for run in runs:
            process = sweep(run, *options)
            if run is runs[1]:
                # The first wave had one chunk for each executor; the second has all others.
                wait_for((run / "trials" / "wave-00000.parquet").exists, process)
                executors_of(process.pid)[0].kill()
            seconds.append(float(sweep_result(process)["seconds"]))
        tables = [stable(run) for run in runs]
    return {"undisturbed": seconds[0], "killed": seconds[1], "differing": differing(*tables)}


def differing(rows: Sequence[Any], others: Sequence[Any]) -> int:
    return sum(one != other for one, other in zip_longest(rows, others))


def executors_of(pid: int) -> list[psutil.Process]:
    """The executors of a driver, each a Java process."""
    found = []
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):  # trials come and go
            if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
                found.append(process)
    return found


def stable(run: Path) -> list[dict[str, Any]]:
    """The rows of a run, without the columns that differ between two runs of the same trials."""
    from pulsar_ml.campaign.store.store import read_trials

    rows: list[dict[str, Any]] = read_trials(run).drop_columns(list(UNSTABLE)).to_pylist()
    return sorted(rows, key=lambda row: row["seed"])


@cache
def large_run() -> Path:
    """A run that was interrupted after five of its six waves."""
    from pulsar_ml.campaign.plan.plan import Plan
    from pulsar_ml.campaign.store.store import RunStore

    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    directory = Path(folder.name) / "run"
    trials = RESUMED + RESUMED // WAVES
    plan = Plan(("nothing",), 0, trials, trials // CHUNK, job().options)
    facts = {"run_id": job().run_id, "build_id": BUILD_ID, "plan": plan.to_json(), "runner": {}}
    store = RunStore(directory, facts)
    for wave in range(WAVES):
        store.write_wave(wave, *wave_of(wave))
    store.close()
    return directory


def wave_of(wave: int) -> tuple[pa.Table, pa.Table]:
    import numpy as np
    import pyarrow as pa

    from pulsar_ml.campaign.store.schema import TRIALS, VIOLATIONS

    seeds = np.arange(RESUMED // WAVES) + wave * (RESUMED // WAVES)
    known = {
        "run_id": job().run_id, "chunk_id": seeds // CHUNK, "suite": "nothing", "seed": seeds,
        "build_id": BUILD_ID, "threads": 1, "operations": 1, "engine": "threads",
        "verdict": "clean", "host": "here",
        "finished_at": np.datetime64("2025-01-02T03:04", "us"), "duration_us": seeds % 1000,
    }  # fmt: skip
    columns = []
    for field in TRIALS:
        value = known.get(field.name, "" if pa.types.is_string(field.type) else 0)
        if not isinstance(value, np.ndarray):
            value = pa.repeat(pa.scalar(value), len(seeds))
        columns.append(pa.array(value).cast(field.type) if isinstance(value, np.ndarray) else value)
    return pa.table(columns, names=TRIALS.names).cast(TRIALS), VIOLATIONS.empty_table()


def resume() -> float:
    """Seconds until the finished and the missing trials of a run are known."""
    from pulsar_ml.campaign.run.resume import past_of

    run = large_run()
    began = time.perf_counter()
    past = past_of(run)
    spent = time.perf_counter() - began
    past.store.close()
    if past.summary.trials != RESUMED:
        raise RuntimeError("a benchmark lost trials")
    return spent


def check_whole(batches: Sequence[pa.RecordBatch], chunks: Sequence[Chunk]) -> None:
    if sum(batch.num_rows for batch in batches) != sum(len(chunk) for chunk in chunks):
        raise RuntimeError("a benchmark lost trials")


RATES = {
    "1 ms": side_by_side("1_ms", 1_000),
    "100 ms": side_by_side("100_ms", 10),
    "1 s": side_by_side("1_s", 1),
}
LOSS = Turns(with_a_loss)
BENCHMARKS = (
    *(
        benchmark
        for length, turns in RATES.items()
        for benchmark in (
            Benchmark(
                f"spark: trials of {length}, bare pool",
                turns.row("pool"),
                "1/s",
                about="processes that run the same chunks, one on each core",
                enough=AGREE,
            ),
            Benchmark(
                f"spark: trials of {length}, through Spark",
                turns.row("spark"),
                "1/s",
                about="tasks of one second, isolated, until their rows are in the driver; "
                "in turn with the pool",
                enough=AGREE,
            ),
            Benchmark(
                f"spark: trials of {length}, of the pool's rate",
                turns.row("share"),
                "%",
                95.0,
                at_least=True,
                about="Spark over the pool, in the same repeat",
                enough=AGREE,
            ),
        )
    ),
    Benchmark(
        "spark: a wave of empty tasks", one_wave, "ms", about="a job with one task for each core"
    ),
    Benchmark(
        "spark: a task",
        empty_task,
        "ms",
        about="one more task with one empty trial, less a chunk in the pool",
    ),
    Benchmark(
        "spark: a row",
        one_row,
        "us",
        about="one more empty trial of a task, less one in the pool",
    ),
    Benchmark(
        "spark: isolation of a trial",
        isolation,
        "us",
        about="1 ms in a supervisor, less 1 ms in this process",
    ),
    Benchmark(
        "spark: start to first result",
        first_result("--master", f"local[{cores()}]"),
        "s",
        about="from the command until its first wave is on disk, including the start of Java",
        enough=AGREE,
    ),
    Benchmark(
        "spark: start to first result, --runner pool",
        first_result("--runner", "pool"),
        "s",
        about="from the command until its first wave is on disk, without Spark",
        enough=AGREE,
    ),
    Benchmark(
        "spark: a sweep on two executors",
        LOSS.row("undisturbed"),
        "s",
        about=f"{KILLED_SEEDS} trials of 100 ms on local-cluster, without the start",
        enough=AGREE,
    ),
    Benchmark(
        "spark: a sweep on two executors, one of them killed",
        LOSS.row("killed"),
        "s",
        about="after the first wave, with kill -9",
        enough=AGREE,
    ),
    Benchmark(
        "spark: rows that differ from the sweep without the loss",
        LOSS.row("differing"),
        "rows",
        0.0,
        about="missing, twice, or with another content",
        enough=AGREE,
    ),
    Benchmark(
        "spark: resume a run of a million trials",
        resume,
        "s",
        about=f"until the command knows the missing trials; {WAVES} waves",
    ),
)
