"""Tables of simulations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from pulsar_ml.cli.output import console, print_json
from pulsar_ml.simulate import VARIANTS, Result, Workload, built_in_workloads
from pulsar_ml.terminal.tables import print_table

MIB = 1 << 20
OPTIONAL = ("steps", "evicted", "MiB read", "storage reads")


def print_results(results: Sequence[Result], *, as_json: bool) -> None:
    """Prints a table for each workload and seed, or one JSON array."""
    if as_json:
        print_json([result.to_json() for result in results])
        return
    screen = console()
    for workload, seed in dict.fromkeys((result.workload, result.seed) for result in results):
        rows = [one for one in results if (one.workload, one.seed) == (workload, seed)]
        print_table(screen, table(workload, rows), OPTIONAL)


def table(workload: str, rows: Sequence[Result]) -> Table:
    outcome = Table(title=f"{workload}, seed {rows[0].seed}, {rows[0].requested:,} entries read")
    outcome.add_column("variant", no_wrap=True)
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
        outcome.add_column(column, justify="right")
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
        outcome.add_row(row.variant, *cells)
    return outcome


def print_list(as_json: bool) -> None:
    found: dict[str, Workload] = built_in_workloads()
    if as_json:
        data: dict[str, Any] = {
            "workloads": {name: workload.summary for name, workload in found.items()},
            "variants": {variant.name: variant.summary for variant in VARIANTS},
        }
        print_json(data)
        return
    for title, rows in (
        ("workloads", [(name, workload.summary) for name, workload in found.items()]),
        ("variants", [(variant.name, variant.summary) for variant in VARIANTS]),
    ):
        outcome = Table(title=title, title_justify="left", show_header=False, box=None)
        for row in rows:
            outcome.add_row(*row)
        console().print(outcome)
