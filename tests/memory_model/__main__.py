"""``python -m tests.memory_model``: compares the engine with models on random programs."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterator

import click
from rich.progress import track

from tests.memory_model.compare import MODES, compare, program_of_seed, shrunk
from tests.memory_model.engine import cells

PIECE = 50  # programs a process takes at a time
SHOWN = 5  # disagreements printed in full


def work(piece: range) -> tuple[int, int, int, list[str]]:
    """Compare some programs; return comparisons, exhausted searches, executions, disagreements."""
    outcome = exhausted = executions = 0
    found = []
    for seed in piece:
        for mode in MODES:
            result = compare(program_of_seed(seed), mode)
            outcome += 1
            exhausted += result.exhausted
            executions += result.executions
            if not result.agrees:
                found.append(f"program {seed}\n{shrunk(result)}")
    return outcome, exhausted, executions, found


def pieces(first: int, programs: int) -> Iterator[range]:
    for begin in range(first, first + programs, PIECE):
        yield range(begin, min(begin + PIECE, first + programs))


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--programs", type=click.IntRange(1), default=10_000, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="First program.")
@click.option("--jobs", type=click.IntRange(1), help="Processes.  [default: one a core]")
def main(programs: int, seed: int, jobs: int | None) -> None:
    """Compare the engine with SC, TSO and RC11 on random programs of two to four threads.

    Exit code: 0 all agree, 1 a disagreement was found; each is shrunk and printed.
    """
    cells()  # compiled once, before the processes start
    began = time.monotonic()
    outcome = exhausted = executions = 0
    found: list[str] = []
    parts = list(pieces(seed, programs))
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for result in track(pool.imap_unordered(work, parts), "comparing", total=len(parts)):
            outcome += result[0]
            exhausted += result[1]
            executions += result[2]
            found += result[3]
    seconds = time.monotonic() - began
    for text in found[:SHOWN]:
        click.echo(text + "\n")
    click.echo(
        f"{programs:,} programs in {', '.join(MODES)}: {outcome:,} comparisons, {exhausted:,} searches "
        f"exhausted, {executions:,} executions, {programs / seconds:,.0f} programs a second, "
        f"{len(found):,} disagreements"
    )
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
