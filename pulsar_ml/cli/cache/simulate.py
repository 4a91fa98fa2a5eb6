"""``pulsar-ml simulate``: workloads on a virtual clock, under policies or a grid of settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pulsar_ml.cli import options as shared
from pulsar_ml.cli.cache.grid import DEFAULT_GRID, play_grid
from pulsar_ml.cli.cache.results import print_list, print_results
from pulsar_ml.cli.cache.today import show_choices
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.config import BY_KEY, Reading, read_broker_conf
from pulsar_ml.errors import UsageError
from pulsar_ml.simulate import Result, Workload, built_in_workloads, load_workload, simulate
from pulsar_ml.simulate.choices import RELEASES, candidates
from pulsar_ml.simulate.grid import OBJECTIVES
from pulsar_ml.simulate.plot import plot
from pulsar_ml.simulate.scrape import scraped_workload
from pulsar_ml.simulate.variant import Variant, chosen_variants
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.progress import ProgressDisplay

SETTINGS, GRID = "Settings", "Grid"


@new_command(
    "simulate",
    examples=(
        "simulate --list",
        "simulate fan_out --plot fan_out.svg",
        "simulate my.toml --set managedLedgerCacheSizeMB=256",
        "simulate fan_out --broker-conf broker.conf --release 5.0",
        "simulate --scrape 10:00.prom --scrape 10:01.prom > my.toml",
        "simulate fan_out --grid default",
        "simulate my.toml --grid managedLedgerCacheSizeMB=64,128",
    ),
)
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
@option(
    "--list",
    "only_list",
    is_flag=True,
    group=SETTINGS,
    help="Print the workloads and variants, and stop.",
)
@option(
    "--variant",
    "names",
    multiple=True,
    metavar="NAME",
    group=SETTINGS,
    help="Only this variant. Repeatable.  [default: all]",
)
@shared.broker_conf
@option(
    "--release",
    type=click.Choice(list(RELEASES)),
    default="4.2",
    show_default=True,
    group=SETTINGS,
    help="Pulsar that --broker-conf belongs to.",
)
@option(
    "--scrape",
    "scrapes",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    group=SETTINGS,
    help="Print a workload from two scrapes of a broker, and stop.",
)
@option(
    "--scrape-seconds",
    default=60.0,
    show_default=True,
    type=click.FloatRange(0.001),
    group=SETTINGS,
    help="Time between the two scrapes.",
)
@option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    group=SETTINGS,
    help="broker.conf setting on top. Repeatable.",
)
@option(
    "--grid",
    "axes",
    multiple=True,
    metavar="KEY=V,V|default",
    group=GRID,
    help="Play each combination on Spark and print the best. Repeatable.",
)
@option(
    "--objective",
    type=click.Choice(list(OBJECTIVES)),
    default="storage_entries",
    show_default=True,
    group=GRID,
    help="Figure that should be small.",
)
@option(
    "--top",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    group=GRID,
    help="Combinations to print.",
)
@shared.seed(None, "[default: the workload's; of a grid: 1]")
@shared.seeds(None, "[default: 1; of a grid: 3]")
@shared.master("local[*]")
@shared.master_seconds
@shared.conf
@option(
    "--plot",
    "target",
    type=click.Path(path_type=Path),
    group=shared.OUTPUT,
    help="Also draw: .svg, .png or .pdf.",
)
@shared.as_json
def command(
    workloads: tuple[str, ...],
    only_list: bool,
    names: tuple[str, ...],
    broker_conf: Path | None,
    release: str,
    scrapes: tuple[Path, ...],
    scrape_seconds: float,
    overrides: tuple[str, ...],
    axes: tuple[str, ...],
    objective: str,
    top: int,
    seed: int | None,
    seeds: int | None,
    master: str,
    master_seconds: float,
    conf: tuple[str, ...],
    target: Path | None,
    as_json: bool,
) -> None:
    """Play workloads over the real cache on a virtual clock, and compare policies.

    A WORKLOAD is a built-in name or a TOML file; without one all built-in workloads are played. The
    same seed gives the same figures on every machine.

    --broker-conf plays the settings of a broker first, and then each change of one of Pulsar's
    settings that may pay: the table has its gain over today's, and one sentence says which to
    make. --scrape prints a workload from what a broker exports to Prometheus.

    With --grid one workload is played with every combination of settings, on Spark. The smallest
    objective wins, and among equal ones the least memory. The default grid combines three times to
    live with three budgets of extensions and both values of ...ExtendTTLOfRecentlyAccessed.
    Settings come from the workload, --broker-conf, the variant, --set and --grid; a later one of
    these wins.
    """
    if only_list:
        print_list(as_json)
        return
    if scrapes:
        echo(scraped_workload(scrapes, seconds=scrape_seconds), nl=False)
        return
    changes = dict(shared.key_value(text, "--set") for text in overrides)
    base = settings_of(read_broker_conf(broker_conf)) if broker_conf else {}
    if axes:
        if len(workloads) != 1:
            raise UsageError(f"--grid plays one workload, not {len(workloads)}; name one")
        if names or target:
            raise UsageError("--grid takes neither --variant nor --plot")
        chosen = [axis for one in axes for axis in (DEFAULT_GRID if one == "default" else (one,))]
        first = 1 if seed is None else seed
        play_grid(
            workloads[0], chosen, {**RELEASES[release], **base, **changes},
            range(first, first + (seeds or 3)),
            objective=objective, top=top, master=master, master_seconds=master_seconds,
            conf=shared.spark_settings(conf), as_json=as_json,
        )  # fmt: skip
        return
    played = [load_workload(name) for name in workloads] or list(built_in_workloads().values())
    if target is not None and len(played) > 1:
        raise UsageError(f"--plot draws one workload, not {len(played)}; name one")
    compares_today = broker_conf is not None and not names

    def variants_of(workload: Workload) -> list[Variant]:
        if compares_today:
            return candidates(workload, {**base, **changes}, release)
        return [
            Variant(each.name, each.summary, {**base, **each.settings, **changes})
            for each in chosen_variants(names, {})
        ]

    results: list[Result] = []
    try:
        with ProgressDisplay() as progress:
            for workload in played:
                first = workload.seed if seed is None else seed
                for number in range(seeds or 1):
                    for variant in variants_of(workload):
                        progress.begin(f"{workload.name} {variant.name}", 1)
                        results.append(
                            simulate(
                                workload,
                                variant,
                                seed=first + number,
                                progress=progress.share,
                            )
                        )
    finally:  # also after Ctrl-C
        if compares_today and (results or as_json):
            show_choices(results, as_json=as_json, target=target)
        elif results or as_json:
            print_results(results, as_json=as_json)
    if target is not None and not compares_today:
        plot(results, target)


def settings_of(reading: Reading) -> dict[str, Any]:
    """The settings of a file, without the defaults."""
    return {
        key: getattr(reading.config, BY_KEY[key].name)
        for key, origin in reading.origins.items()
        if origin != "default"
    }
