"""``python -m pulsar_ml simulate``: workloads on a virtual clock, under the policies side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from pulsar_ml.errors import PulsarMlError, UsageError
from pulsar_ml.simulate import VARIANTS, Result, Workload, built_in_workloads, load_workload, simulate
from pulsar_ml.simulate.plot import plot
from pulsar_ml.simulate.variant import chosen_variants

MIB = 1 << 20


@click.command("simulate")
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
@click.option("--variant", "names", multiple=True, metavar="NAME", help="Only these; default: all.")
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="A broker.conf setting on top."
)
@click.option("--seed", type=click.IntRange(0), help="Instead of the workload's own.")
@click.option(
    "--plot", "target", type=click.Path(path_type=Path), help="Also draw: .svg, .png or .pdf."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON array, with values over time."
)
@click.option(
    "--list", "only_list", is_flag=True, help="Print the workloads and variants, and stop."
)
def command(
    workloads: tuple[str, ...],
    names: tuple[str, ...],
    overrides: tuple[str, ...],
    seed: int | None,
    target: Path | None,
    as_json: bool,
    only_list: bool,
) -> None:
    """Play workloads over the real cache on a virtual clock, and compare policies.

    A WORKLOAD is a built-in name or a TOML file; without one all that are built in are played. The same
    seed gives the same figures on every machine.

    \b
    Examples:
      python -m pulsar_ml simulate --list
      python -m pulsar_ml simulate fan_out --plot fan_out.svg
      python -m pulsar_ml simulate my.toml --variant central_queue --set managedLedgerCacheSizeMB=256

    \b
    Exit codes: 0 done, 2 usage error, 4 failed, 130 interrupted; what was played by then is printed.
    """
    results: list[Result] = []
    code = 0
    try:
        if only_list:
            print_list(as_json)
            return
        played = [load_workload(name) for name in workloads] or list(built_in_workloads().values())
        if target is not None and len(played) > 1:
            raise UsageError(f"--plot draws one workload, not {len(played)}; name one")
        variants = chosen_variants(names, dict(parse_setting(text) for text in overrides))
        with Progress(console=Console(stderr=True), transient=True) as progress:
            for workload in played:
                for variant in variants:
                    task = progress.add_task(f"{workload.name} {variant.name}", total=1.0)
                    results.append(
                        simulate(
                            workload,
                            variant,
                            seed=seed,
                            progress=lambda share, task=task: progress.update(
                                task, completed=share
                            ),
                        )
                    )
                    progress.remove_task(task)
        if target is not None:
            plot(results, target)
    except (UsageError, ValueError) as error:
        click.echo(f"Error: {error}", err=True)
        code = 2
    except (PulsarMlError, OSError, MemoryError) as error:
        click.echo(f"Failed: {error}", err=True)
        code = 4
    except KeyboardInterrupt:
        click.echo("Interrupted; what was played so far:", err=True)
        code = 130
    show(results, as_json=as_json)
    sys.exit(code)


def parse_setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"--set {text!r} should be KEY=VALUE")
    return key.strip(), value.strip()


def show(results: Sequence[Result], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([result.to_json() for result in results], indent=2))
        return
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    for workload in dict.fromkeys(result.workload for result in results):
        rows = [result for result in results if result.workload == workload]
        console.print(table(workload, rows))


def table(workload: str, rows: Sequence[Result]) -> Table:
    made = Table(title=f"{workload}, seed {rows[0].seed}, {rows[0].requested:,} entries read")
    made.add_column("variant", no_wrap=True)
    replayed = any(row.replayed for row in rows)
    audited = any(row.audited for row in rows)
    columns = [
        "hit rate",
        "joined",
        "storage reads",
        "entries",
        "MiB read",
        "MiB mean",
        "MiB most",
        "evicted",
        "steps",
    ]
    columns = columns[:2] + (["replay hits"] if replayed else []) + columns[2:]
    for column in columns + (["out of order"] if audited else []):
        made.add_column(column, justify="right")
    for row in rows:
        cells = [f"{row.hit_rate:.1%}", f"{row.joined_rate:.1%}"]
        cells += [f"{row.replay_hit_rate:.1%}"] if replayed else []
        cells += [
            f"{row.storage_reads:,}",
            f"{row.storage_entries:,}",
            f"{row.storage_bytes / MIB:,.1f}",
            f"{row.mean_pinned_bytes / MIB:,.1f}",
            f"{row.max_pinned_bytes / MIB:,.1f}",
            f"{row.evicted:,}",
            f"{row.eviction_steps:,}",
        ]
        if audited:
            cells.append(f"{row.out_of_order / max(row.audited, 1):.1%}")
        made.add_row(row.variant, *cells)
    return made


def print_list(as_json: bool) -> None:
    found: dict[str, Workload] = built_in_workloads()
    if as_json:
        data: dict[str, Any] = {
            "workloads": {name: workload.summary for name, workload in found.items()},
            "variants": {variant.name: variant.summary for variant in VARIANTS},
        }
        click.echo(json.dumps(data, indent=2))
        return
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    for title, rows in (
        ("workloads", [(name, workload.summary) for name, workload in found.items()]),
        ("variants", [(variant.name, variant.summary) for variant in VARIANTS]),
    ):
        made = Table(title=title, title_justify="left", show_header=False, box=None)
        for row in rows:
            made.add_row(*row)
        console.print(made)
