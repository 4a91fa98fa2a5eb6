"""A grid of simulations on Spark, and the best settings for a broker.conf."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from rich.table import Table

from pulsar_ml.cli.output import console, print_json
from pulsar_ml.config import BY_KEY
from pulsar_ml.config.setting import OURS
from pulsar_ml.distributed.driver import check_spark, spark_session
from pulsar_ml.distributed.grid import Played, play
from pulsar_ml.simulate.choices import ACCESSED, EXTENSIONS, MIB, SHORT, TTL
from pulsar_ml.simulate.grid import (
    OBJECTIVES,
    Scored,
    grid_advice,
    is_base,
    parse_axis,
    points,
    scored,
)
from pulsar_ml.simulate.workload import parse_workload, workload_text
from pulsar_ml.terminal.progress import ProgressDisplay
from pulsar_ml.terminal.tables import print_table

OPTIONAL = ("MiB most", "eviction steps", "ties")
DEFAULT_GRID = (
    f"{TTL}=500,1000,5000",
    f"{EXTENSIONS}=0,5,20",
    f"{ACCESSED}=true,false",
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
            found = scored(played, objective)
            requested = {parse_axis(axis)[0] for axis in axes}
            show(found, objective, workload, top, base=base, requested=requested, as_json=as_json)


def show(
    found: Sequence[Scored],
    objective: str,
    workload: str,
    top: int,
    *,
    base: dict[str, Any],
    requested: set[str],
    as_json: bool,
) -> None:
    """Prints today's settings and the best combinations, an advice, and lines of broker.conf."""
    today = next((each for each in found if is_base(each, base)), None)
    advice = grid_advice(found, today) if today is not None else ""
    if as_json:
        rows = [{name: getattr(each, name) for name in Scored.__slots__} for each in found]
        print_json(
            {
                "workload": workload,
                "objective": objective,
                "advice": advice,
                "today": None if today is None else found.index(today),
                "points": rows,
            }
        )
        return
    screen = console()
    names = list(dict.fromkeys(name for each in found for name in each.settings))
    varied = [name for name in names if len({str(each.settings.get(name)) for each in found}) > 1]
    result = Table(
        title=f"{workload}: {OBJECTIVES[objective]}, the least first ({found[0].seeds} seeds each)"
    )
    for name in varied:
        result.add_column(SHORT.get(name, name), overflow="fold")
    for name in (objective, "gain", "hit rate", "joined", "p99 ms", "MiB mean", *OPTIONAL):
        result.add_column(name, justify="right")
    best = found[:top]
    for each in best if today is None else [today, *(one for one in best if one is not today)]:
        gain = "0.0%"
        if today and today.objective:
            gain = f"{1 - each.objective / today.objective:.1%}"
        elif today and each.objective:
            gain = "worse"
        result.add_row(
            *(str(each.settings.get(name, "today")) for name in varied),
            f"{each.objective:,.4g}" if objective == "miss_rate" else f"{each.objective:,.0f}",
            "today" if each is today else gain,
            f"{each.hit_rate:.2%}",
            f"{each.joined_rate:.2%}",
            f"{each.p99_millis:,.3g}",
            f"{each.mean_pinned_bytes / MIB:,.1f}",
            f"{each.max_pinned_bytes / MIB:,.1f}",
            f"{each.eviction_steps:,.0f}",
            f"{len(each.ties):,}",
        )
    print_table(screen, result, OPTIONAL)
    if advice:
        screen.print(advice, soft_wrap=True, markup=False)
    screen.print("The best, as lines of broker.conf:")
    for name, value in found[0].settings.items():
        if name in requested or BY_KEY[name].origin != OURS:
            screen.print(f"{name}={value}", soft_wrap=True, markup=False)
