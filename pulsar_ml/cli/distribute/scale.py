"""``pulsar-ml scale``: the cost of a sweep on a cluster, from costs measured here."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import click
from rich.table import Table

from pulsar_ml.campaign.store.summary import short_number
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.cli.output import console, print_json
from pulsar_ml.distributed.driver import check_spark
from pulsar_ml.distributed.scale.bench import Bench, calibrate, simulate
from pulsar_ml.distributed.scale.costs import Costs, Estimate, Load, predict, smallest_trial
from pulsar_ml.processors import processor_count
from pulsar_ml.terminal.progress import ProgressDisplay, clock
from pulsar_ml.terminal.tables import print_table

TRIALS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)  # seconds
PREDICTED = (
    "A trial", "Wall", "Core-hours", "In trials", "Waves", "Tasks", "Driver busy", "Rows", "Ledger",
    "Driver memory",
)  # fmt: skip
OPTIONAL = ("Driver memory", "Ledger", "Tasks", "Rows", "Waves")
SWEEP, MEASURE = "Sweep", "Measurement"


@new_command(
    "scale",
    examples=(
        "scale",
        "scale --seeds 100000000 --cores 64",
        "scale --simulate 100000 --simulate 10000000",
    ),
)
@shared.seeds(10**9)
@option(
    "--cores",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    group=SWEEP,
    help="Cores of the cluster.",
)
@option(
    "--task-seconds",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    group=SWEEP,
    help="Time of a task.",
)
@shared.wave_seconds(300.0, SWEEP)
@shared.master("local[2]")
@shared.master_seconds
@shared.conf
@option(
    "--measure-rows",
    type=click.IntRange(1000),
    default=400_000,
    show_default=True,
    group=MEASURE,
    help="Rows to write.",
)
@option(
    "--measure-tasks",
    type=click.IntRange(2),
    default=40,
    show_default=True,
    group=MEASURE,
    help="Tasks to run.",
)
@option(
    "--simulate",
    "simulated",
    multiple=True,
    type=click.IntRange(1),
    metavar="TRIALS",
    group=MEASURE,
    help="Also run a sweep of so many trivial trials here. Repeatable.",
)
@shared.as_json
def command(
    seeds: int,
    cores: int,
    task_seconds: float,
    wave_seconds: float,
    master: str,
    master_seconds: float,
    conf: tuple[str, ...],
    measure_rows: int,
    measure_tasks: int,
    simulated: tuple[int, ...],
    as_json: bool,
) -> None:
    """Measure the costs of tasks, chunks and rows here, and compute those of a sweep on a cluster.

    The measured figures are those of this machine's cores and disk. A driver on a machine of its
    own is faster than one that shares its cores with the executors, as here.
    """
    settings = shared.spark_settings(conf)
    check_spark(master)
    progress = ProgressDisplay()
    with ExitStack() as stack:
        stack.enter_context(progress)
        progress.begin("measuring")
        bench = Bench(master, settings, stack, progress.message, seconds=master_seconds)
        bare, costs = calibrate(bench, rows=measure_rows, tasks=measure_tasks)
        found = [simulate(bench, bare, trials) for trials in simulated]
    loads = [
        Load(seeds=seeds, cores=cores, trial=each, task=task_seconds, wave=wave_seconds)
        for each in TRIALS
    ]
    estimates = [(load, predict(costs, load)) for load in loads]
    limit = smallest_trial(costs, cores=cores, task=task_seconds, wave=wave_seconds, efficiency=0.9)
    if as_json:
        print_json(
            {
                "costs": asdict(costs),
                "trivial": asdict(bare),
                "predicted": [{**asdict(load), **asdict(one)} for load, one in estimates],
                "smallest_trial": limit,
                "simulated": found,
            }
        )
        return
    screen = console()
    screen.print(costs_table(bare, costs))
    print_table(screen, predicted_table(estimates), OPTIONAL)
    screen.print(
        f"Cores spend 90 % of their time in trials that take {seconds(limit)} or more. The driver "
        f"starts {1 / costs.schedule:,.0f} tasks/s, which is enough for tasks of "
        f"{seconds(cores * costs.schedule)} on {cores:,} cores."
    )
    if found:
        print_table(screen, simulated_table(found), ("JVM heap", "Python", "Signatures"))


def costs_table(bare: Costs, costs: Costs) -> Table:
    table = Table(title=f"Measured here ({processor_count()} cores)", title_justify="left")
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


def predicted_table(estimates: Sequence[tuple[Load, Estimate]]) -> Table:
    load = estimates[0][0]
    title = (
        f"{load.seeds:,} seeds on {load.cores:,} cores, "
        f"tasks of {load.task:g} s, waves of {load.wave:g} s"
    )
    table = Table(title=title, title_justify="left")
    for name in PREDICTED:
        table.add_column(name, justify="right")
    for load, estimate in estimates:
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
    """A time with its unit: 1.5 us, 20 ms, 3 s."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if number >= size * 0.9995:
            return f"{number / size:.3g} {unit}"
    return f"{number * 1e9:.0f} ns"
