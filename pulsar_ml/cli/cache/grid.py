"""A grid of simulations on Spark, and the best settings for a broker.conf."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from rich.table import Table

from pulsar_ml.cli.output import console, print_json
from pulsar_ml.distributed.driver import check_spark, spark_session
from pulsar_ml.distributed.grid import Played, play
from pulsar_ml.simulate.grid import OBJECTIVES, Scored, parse_axis, points, scored
from pulsar_ml.simulate.variant import POLICY
from pulsar_ml.simulate.workload import parse_workload, workload_text
from pulsar_ml.terminal.progress import ProgressDisplay
from pulsar_ml.terminal.tables import print_table

MIB = 1 << 20
DEFAULT_GRID = (
    f"{POLICY}=central_queue,released_queue,lru,s3_fifo",
    "managedLedgerCacheEvictionTimeThresholdMillis=500,1000,5000",
    "managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes=0,5,20",
)


def play_grid(
    workload: str,
    axes: Sequence[str],
    base: dict[str, Any],
    seeds: range,
    *,
    objective: str,
    top: int,
    master: str,
    master_seconds: float,
    conf: dict[str, str],
    as_json: bool,
) -> None:
    """Plays every combination of the axes; prints the results, also those before Ctrl-C."""
    text = workload_text(workload)
    parse_workload(text, workload)
    wanted = points(workload, text, dict(parse_axis(axis) for axis in axes), base, seeds)
    check_spark(master)
    played: Played = []
    try:
        with ExitStack() as stack, ProgressDisplay() as progress:
            progress.begin(f"simulations of {workload}", len(wanted))
            session = spark_session(stack, master, conf, seconds=master_seconds)
            play(session, wanted, played, progress.update)
    finally:
        if played:
            show(scored(played, objective), objective, workload, top, as_json=as_json)


def show(
    found: Sequence[Scored], objective: str, workload: str, top: int, *, as_json: bool
) -> None:
    if as_json:
        rows = [{name: getattr(each, name) for name in Scored.__slots__} for each in found]
        print_json({"workload": workload, "objective": objective, "points": rows})
        return
    screen = console()
    varied = [
        name for name in found[0].settings if len({str(each.settings[name]) for each in found}) > 1
    ]
    result = Table(
        title=f"{workload}: {OBJECTIVES[objective]}, the least first ({found[0].seeds} seeds each)"
    )
    for name in varied:
        result.add_column(name, overflow="fold")
    for name in (objective, "hit rate", "MiB mean", "MiB most", "eviction steps", "ties"):
        result.add_column(name, justify="right")
    for each in found[:top]:
        result.add_row(
            *(str(each.settings[name]) for name in varied),
            f"{each.objective:,.4g}" if objective == "miss_rate" else f"{each.objective:,.0f}",
            f"{each.hit_rate:.2%}",
            f"{each.mean_pinned_bytes / MIB:,.1f}",
            f"{each.max_pinned_bytes / MIB:,.1f}",
            f"{each.eviction_steps:,.0f}",
            f"{len(each.ties):,}",
        )
    print_table(screen, result, ("eviction steps", "MiB mean"))
    screen.print("The best, as lines of broker.conf:")
    for name, value in found[0].settings.items():
        screen.print(f"{name}={value}", soft_wrap=True, markup=False)
