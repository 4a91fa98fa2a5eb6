"""Delayed messages of a topic: bytes of a message with 1 to 1,000 subscriptions.

One manager for all subscriptions is compared with a tracker for each. ``python -m benchmarks
delayed_manager`` prints the rows. ``python -m benchmarks.structures.delayed_manager`` prints one
table of the bytes; ``--plot FILE`` draws it (needs matplotlib), ``--full`` measures ten million
messages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Benchmark, loops

MESSAGES = 100_000
SUBSCRIPTIONS = (1, 10, 100, 1000)
MILLION = 1_000_000
MANY, MANY_SUBSCRIPTIONS, DRAINING = 10 * MILLION, 100, 10
GIB = 2**30


def shared_bytes(subscriptions: int) -> float:
    """Bytes of malloc for each message of a topic, with all its views."""
    return float(loops("delay_loops").manager(MESSAGES, subscriptions, 0)[1] / MESSAGES)


def own_bytes(subscriptions: int) -> float:
    """Bytes of malloc for each message of a topic, with a tracker for each subscription."""
    return float(subscriptions * loops("delay_loops").tracker(MESSAGES)[1] / MESSAGES)


def measured(messages: int, subscriptions: int, draining: int) -> dict[str, float]:
    """MiB of malloc, and ns to add a message, to add it again and to drain one."""
    _, allocated, added, again, total, drained = loops("delay_loops").manager(
        messages, subscriptions, draining
    )
    if total != messages * draining:
        raise RuntimeError(f"{total} messages were drained, not {messages * draining}")
    return {
        "MiB": allocated / 2**20,
        "add": added / messages,
        "add again": again / messages,
        "drain": drained / total,
    }


@cache
def million() -> dict[str, float]:
    return measured(MILLION, MANY_SUBSCRIPTIONS, 10)


def bytes_with(measure: Callable[[int], float], count: int) -> Callable[[], float]:
    return lambda: measure(count)


def of_a_million(what: str) -> Callable[[], float]:
    return lambda: million()[what]


BENCHMARKS = (
    *(
        Benchmark(
            f"delayed_manager: bytes of a message, {count:,} subscriptions",
            bytes_with(shared_bytes, count),
            unit="bytes",
        )
        for count in SUBSCRIPTIONS
    ),
    *(
        Benchmark(
            f"delayed_manager: bytes with a tracker for each, {count:,} subscriptions",
            bytes_with(own_bytes, count),
            unit="bytes",
        )
        for count in SUBSCRIPTIONS
    ),
    *(
        Benchmark(f"delayed_manager: {what}, of a million", of_a_million(what))
        for what in ("add", "add again", "drain")
    ),
)


def bytes_table() -> tuple[Table, list[float], list[float]]:
    shared = [shared_bytes(count) for count in SUBSCRIPTIONS]
    own = [own_bytes(count) for count in SUBSCRIPTIONS]
    table = Table(title=f"bytes of a delayed message, of {MESSAGES:,} within an hour")
    for column in ("subscriptions", "one manager", "a tracker for each", "times"):
        table.add_column(column, justify="right")
    for row in zip(SUBSCRIPTIONS, shared, own, strict=True):
        table.add_row(f"{row[0]:,}", f"{row[1]:.1f}", f"{row[2]:,.1f}", f"{row[2] / row[1]:.0f}")
    return table, shared, own


def full_table() -> Table:
    """Ten million messages with a hundred subscriptions, ten of which drain all."""
    found = measured(MANY, MANY_SUBSCRIPTIONS, DRAINING)
    table = Table(title=f"{MANY:,} messages, {MANY_SUBSCRIPTIONS} subscriptions, one thread")
    for column in ("", "measured", "target"):
        table.add_column(column, justify="left" if not column else "right")
    table.add_row("memory", f"{found['MiB']:.1f} MiB", f"≤ {GIB >> 20} MiB")
    for what in ("add", "add again", "drain"):
        table.add_row(what, f"{1000 / found[what]:.1f} million/s", "")
    return table


@click.command()
@click.option("--plot", type=click.Path(path_type=Path), help="File to draw the bytes into.")
@click.option(
    "--full", is_flag=True, help="Also ten million messages with a hundred subscriptions."
)
def main(plot: Path | None, full: bool) -> None:
    """Print the bytes of a delayed message over subscriptions."""
    console = Console(width=None if Console().is_terminal else 140)
    table, shared, own = bytes_table()
    console.print(table)
    if plot is not None:
        from matplotlib import pyplot

        pyplot.loglog(SUBSCRIPTIONS, shared, marker="o", label="one manager")
        pyplot.loglog(SUBSCRIPTIONS, own, marker="o", label="a tracker for each")
        pyplot.xlabel("subscriptions")
        pyplot.ylabel("bytes of a delayed message")
        pyplot.legend()
        pyplot.savefig(plot)
    if full:
        console.print(full_table())


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.structures.delayed_manager")
