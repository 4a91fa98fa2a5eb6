"""Today's settings and candidates as a table, with an advice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from pulsar_ml.cli.output import console, print_json
from pulsar_ml.simulate import Result
from pulsar_ml.simulate.choices import MIB, advice, frontier, merged, short
from pulsar_ml.simulate.plot import plot_frontier
from pulsar_ml.terminal.tables import print_table

OPTIONAL = ("MiB most", "p99.9 ms", "p50 ms")


def show_choices(results: Sequence[Result], *, as_json: bool, target: Path | None) -> None:
    """Prints the choices of each workload and seed, today's settings first, and the advice."""
    runs = dict.fromkeys((result.workload, result.seed) for result in results)
    documents = []
    for workload, seed in runs:
        choices = merged([one for one in results if (one.workload, one.seed) == (workload, seed)])
        today, best = choices[0], frontier(choices)
        if as_json:
            documents.append(
                {
                    "workload": workload,
                    "seed": seed,
                    "advice": advice(choices),
                    "choices": [
                        {
                            "settings": list(choice.names),
                            "gain": choice.gain(today),
                            "on_frontier": choice in best,
                            "figures": choice.result.to_json(),
                        }
                        for choice in choices
                    ],
                }
            )
            continue
        screen = console()
        table = Table(title=f"{workload}, seed {seed}: {today.result.requested:,} entries read")
        table.add_column("settings", overflow="fold")
        for column in (
            "from storage", "gain", "hit rate", "joined", "p50 ms", "p99 ms", "p99.9 ms",
            "MiB mean", "MiB most",
        ):  # fmt: skip
            table.add_column(column, justify="right")
        for choice in choices:
            result = choice.result
            millis = result.read_millis
            table.add_row(
                ", ".join(map(short, choice.names)) + (" *" if choice in best else ""),
                f"{result.storage_entries:,}",
                "" if choice is today else choice.gain_text(today),
                f"{result.hit_rate:.1%}",
                f"{result.joined_rate:.1%}",
                *(f"{millis[name]:,.3g}" for name in ("p50", "p99", "p99.9")),
                f"{result.mean_pinned_bytes / MIB:,.1f}",
                f"{result.max_pinned_bytes / MIB:,.1f}",
            )
        print_table(screen, table, OPTIONAL)
        screen.print("* no choice has as many hits with less memory.", soft_wrap=True)
        screen.print(advice(choices), soft_wrap=True, markup=False)
        if target is not None:
            plot_frontier(choices, target)
    if as_json:
        print_json(documents)
