"""Today's settings and candidates as a table, with an advice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from pulsar_ml.cli.output import console, print_json
from pulsar_ml.simulate import Result
from pulsar_ml.simulate.choices import advice, frontier, merged, short, shown
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
        first, *columns = shown(today.result)
        for column in (first, "gain", *columns):
            table.add_column(column, justify="right")
        for choice in choices:
            reads, *figures = shown(choice.result).values()
            table.add_row(
                ", ".join(map(short, choice.names)) + (" *" if choice in best else ""),
                reads,
                "" if choice is today else choice.gain_text(today),
                *figures,
            )
        print_table(screen, table, OPTIONAL)
        screen.print("* no choice has as many hits with less memory.", soft_wrap=True)
        screen.print(advice(choices), soft_wrap=True, markup=False)
        if target is not None:
            plot_frontier(choices, target)
    if as_json:
        print_json(documents)
