"""What a sweep of a billion seeds costs: ``python -m spark.scale`` measures here, and computes the rest.

``--simulate`` runs sweeps of trivial trials on this machine and shows what the model had said of them.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import psutil
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from pulsar_ml.campaign.plan.pace import CHUNKS_PER_TASK, Pace
from pulsar_ml.campaign.plan.plan import Chunk, Plan, pieces_of_size
from pulsar_ml.campaign.run.runner import Watch
from pulsar_ml.campaign.run.waves import run_campaign
from pulsar_ml.campaign.store.ledger import ledger_of
from pulsar_ml.campaign.store.merge import Summary, add_chunks
from pulsar_ml.campaign.store.staging import merge_part, open_staging, remove, write_part
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.campaign.store.summary import short_number
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.campaign.trial.isolation import Isolation
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.distributed.costs import Costs, Estimate, Load, predict, smallest_trial
from pulsar_ml.distributed.runner import SparkRunner
from pulsar_ml.distributed.session import (
    check_environment,
    check_master,
    open_session,
    repeating,
    settings,
)
from pulsar_ml.distributed.shipping import link_installed, pack
from pulsar_ml.distributed.tasks import bunches
from pulsar_ml.distributed.trivial import BUILD_ID, EVERY, ROWS, SUITES, trial
from pulsar_ml.distributed.trivial import rows as trivial_rows
from pulsar_ml.errors import PulsarMlError, UsageError
from pulsar_ml.sweep.progress import clock

CLEAN, USAGE, FAILED = 0, 2, 4
TRIALS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)  # seconds
SIMULATED_TASK, SIMULATED_WAVE = 1.0, 10.0  # seconds
PREDICTED = (
    "A trial", "Wall", "Core-hours", "In trials", "Waves", "Tasks", "Driver busy", "Rows", "Ledger",
    "Driver memory",
)  # fmt: skip
QUIET = Watch(lambda: False, lambda trials, violations: None)
JOB = Job("scale", BUILD_ID, TrialOptions())


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds of a wave's jobs and of the driver behind them; bytes of files, and what the driver held."""

    job: float
    driver: float
    rows: int
    ledger: int
    held: int


class Fixed(Pace):
    """Tasks of a number of chunks, whatever they take."""

    def __init__(self, chunks: int) -> None:
        super().__init__(0.0)
        self._count = chunks

    def tasks(self, chunks: Sequence[Chunk], slots: int) -> list[list[Chunk]]:
        return [list(chunks[at : at + self._count]) for at in range(0, len(chunks), self._count)]


class Bench:
    """A session, and runs of trivial trials in it."""

    def __init__(self, master: str, stack: ExitStack) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="pulsar_ml-scale-"))
        stack.callback(shutil.rmtree, self.scratch, ignore_errors=True)
        defaults = settings(
            master, cpus=1, scratch=self.scratch, site=link_installed(self.scratch / "site")
        )
        given = {"spark.master": repeating(master)}
        self.session = open_session(
            defaults, given, scratch=self.scratch, log=self.scratch / "spark.log"
        )
        stack.callback(self.session.stop)
        self.session.sparkContext.addPyFile(
            str(pack(self.scratch / "apps.zip", "pulsar_ml.distributed.trivial"))
        )
        self._runs = 0

    def store(self) -> RunStore:
        self._runs += 1
        return RunStore(self.scratch / f"run-{self._runs}", {"run_id": "scale", "runner": {}})

    def runner(self, store: RunStore, pace: Pace) -> SparkRunner:
        def note(text: str) -> None:
            click.echo(text, err=True)

        return SparkRunner(
            self.session, cpus=1, registry="pulsar_ml.distributed.trivial", note=note, pace=pace, staging=store.directory,
            maker=ROWS,
        )  # fmt: skip

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
        sizes = [
            sum(path.stat().st_size for path in (store.directory / table).iterdir())
            for table in ("trials", "chunks")
        ]
        held = 2 * (wave.staged.chunks.nbytes + len(pickle.dumps(list(plan.chunks()))))
        store.close()
        shutil.rmtree(store.directory)
        return Timed(ran - began, published - ran, *sizes, held)

    def best(self, tasks: int, chunks: int, trials: int) -> Timed:
        """The quicker of two: what else the machine does is none of a wave's costs."""
        return min(
            (self.wave(tasks, chunks, trials) for _ in range(2)), key=lambda timed: timed.job
        )

    def files(self, chunks: int, trials: int) -> tuple[float, float]:
        """Seconds in which one core writes these rows as a task does, and merges them; the best of three."""
        every = [Chunk(at, "trivial", at * trials, (at + 1) * trials) for at in range(chunks)]
        written, merged = [], []
        for _ in range(3):
            directory, _ = open_staging(self.scratch)
            began = time.perf_counter()
            made = (pa.Table.from_batches([trivial_rows(chunk, JOB)]) for chunk in every)
            for some in bunches(write_part(directory, "one", made)):
                ledger_of(pa.concat_tables(some))
            written.append(time.perf_counter() - began)
            merge_part(directory, ["one"], "merged")
            merged.append(time.perf_counter() - began - written[-1])
            remove(directory)
        return min(written), min(merged)

    def memory(self) -> tuple[int, int]:
        """Bytes resident in Python, and used in the JVM's heap when garbage has gone."""
        jvm = self.session.sparkContext._jvm
        jvm.java.lang.System.gc()
        runtime = jvm.java.lang.Runtime.getRuntime()
        return psutil.Process().memory_info().rss, int(runtime.totalMemory() - runtime.freeMemory())


def calibrate(bench: Bench, *, rows: int, tasks: int) -> tuple[Costs, Costs]:
    """The costs of trivial trials in a job, and of real ones, which run in processes of their own."""
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
    """A whole sweep of trivial trials, rows by executors, beside what the model says of it."""
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


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--seeds", type=click.IntRange(1), default=10**9, show_default=True, help="Of the sweep."
)
@click.option(
    "--cores", type=click.IntRange(1), default=1000, show_default=True, help="Of the cluster."
)
@click.option(
    "--task-seconds", type=click.FloatRange(0, min_open=True), default=30.0, show_default=True
)
@click.option(
    "--wave-seconds", type=click.FloatRange(0, min_open=True), default=300.0, show_default=True
)
@click.option("--master", default="local[2]", show_default=True, help="Where to measure.")
@click.option(
    "--rows", type=click.IntRange(1000), default=400_000, show_default=True, help="To measure with."
)
@click.option(
    "--tasks", type=click.IntRange(2), default=40, show_default=True, help="To measure with."
)
@click.option("--simulate", "simulated", multiple=True, type=click.IntRange(1), metavar="TRIALS",
              help="Run a sweep of so many trivial trials here. Repeatable.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(
    seeds: int,
    cores: int,
    task_seconds: float,
    wave_seconds: float,
    master: str,
    rows: int,
    tasks: int,
    simulated: tuple[int, ...],
    as_json: bool,
) -> None:
    """Measure what tasks, chunks and rows cost here, and compute what a sweep costs on a cluster.

    The figures of the machine are those of its cores and its disk; a driver of its own is faster than one
    that shares its cores with the executors, as here.

    \b
    Examples:
      python -m spark.scale
      python -m spark.scale --seeds 100000000 --cores 64
      python -m spark.scale --simulate 100000 --simulate 10000000

    \b
    Exit codes: 0 done, 2 usage error, 4 failed (no Java, ...).
    """
    try:
        check_environment()
        check_master(master)
        with ExitStack() as stack:
            bench = Bench(master, stack)
            bare, costs = calibrate(bench, rows=rows, tasks=tasks)
            found = [simulate(bench, bare, trials) for trials in simulated]
    except UsageError as error:
        sys.exit(fail(f"Error: {error}", USAGE))
    except (PulsarMlError, OSError) as error:
        sys.exit(fail(f"Failed: {error}", FAILED))
    loads = [
        Load(seeds=seeds, cores=cores, trial=each, task=task_seconds, wave=wave_seconds)
        for each in TRIALS
    ]
    told = [(load, predict(costs, load)) for load in loads]
    limit = smallest_trial(costs, cores=cores, task=task_seconds, wave=wave_seconds, efficiency=0.9)
    if as_json:
        content = {
            "costs": asdict(costs),
            "trivial": asdict(bare),
            "predicted": [{**asdict(load), **asdict(estimate)} for load, estimate in told],
            "smallest_trial": limit,
            "simulated": found,
        }
        click.echo(json.dumps(content, indent=2))
        return
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(costs_table(bare, costs))
    console.print(predicted_table(told))
    console.print(
        f"Cores spend 90 % of their time in trials that take {seconds(limit)} or more. The driver starts "
        f"{1 / costs.schedule:,.0f} tasks/s, which is enough for tasks of {seconds(cores * costs.schedule)} "
        f"on {cores:,} cores.",
        highlight=False,
    )
    if found:
        console.print(simulated_table(found))


def costs_table(bare: Costs, costs: Costs) -> Table:
    table = Table(title=f"Measured here ({os.cpu_count()} cores)", title_justify="left")
    table.add_column("Cost")
    table.add_column("Each", justify="right")
    for name, text in (
        ("a wave in which nothing happens", seconds(costs.job)),
        ("a task, on its core", seconds(costs.task)),
        ("a chunk, on its core", seconds(bare.chunk)),
        ("  and its process", seconds(costs.chunk - bare.chunk)),
        ("a row, on its core", seconds(bare.row)),
        ("  and from the process of its trial", seconds(costs.row - bare.row)),
        ("  and when files are merged", seconds(costs.merge)),
        ("a task, of the driver", seconds(costs.schedule)),
        ("a chunk, of the driver", seconds(costs.driver_chunk)),
        ("a row, on disk", f"{costs.row_bytes:.1f} B"),
        ("a chunk in the ledger, on disk", f"{costs.chunk_bytes:.0f} B"),
        ("the driver's memory", f"{costs.memory / 2**20:.0f} MiB"),
        ("  and for each chunk of a wave", f"{costs.chunk_memory:,.0f} B"),
    ):
        table.add_row(name, text)
    return table


def predicted_table(told: Sequence[tuple[Load, Estimate]]) -> Table:
    load = told[0][0]
    title = f"{load.seeds:,} seeds on {load.cores:,} cores, tasks of {load.task:g} s, waves of {load.wave:g} s"
    table = Table(title=title, title_justify="left")
    for name in PREDICTED:
        table.add_column(name, justify="right")
    for load, estimate in told:
        table.add_row(
            seconds(load.trial),
            clock(estimate.wall),
            short_number(estimate.core_hours(load.cores)),
            f"{estimate.efficiency:.0%}",
            f"{estimate.waves:,}",
            short_number(estimate.tasks),
            f"{estimate.driver_load:.0%}",
            f"{estimate.rows_bytes / 1e9:.1f} GB",
            f"{estimate.ledger_bytes / 1e6:,.0f} MB",
            f"{estimate.memory / 2**20:,.0f} MiB",
        )
    return table


def simulated_table(found: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="Trivial trials, run here", title_justify="left")
    for name in (
        "Trials",
        "Waves",
        "Violations",
        "Signatures",
        "Predicted",
        "Measured",
        "Python",
        "JVM heap",
    ):
        table.add_column(name, justify="right")
    for line in found:
        table.add_row(
            *(f"{line[name]:,}" for name in ("trials", "waves", "violations", "signatures")),
            *(f"{line[name]:.1f} s" for name in ("predicted", "seconds")),
            *(f"{line[name] / 2**20:.0f} MiB" for name in ("python", "heap")),
        )
    return table


def seconds(number: float) -> str:
    """With a unit: 1.5 us, 20 ms, 3 s."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if number >= size * 0.9995:
            return f"{number / size:.3g} {unit}"
    return f"{number * 1e9:.0f} ns"


def fail(text: str, code: int) -> int:
    click.echo(text, err=True)
    return code
