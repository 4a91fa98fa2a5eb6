"""``python -m tests.memory_model``: compares the engine with models, or RC11 with Arm's."""

from __future__ import annotations

import sys
import time
from typing import Any

import click
from rich.console import Console
from rich.progress import track

from tests.memory_model.arm import sweep as arm_sweep
from tests.memory_model.engine import cells
from tests.memory_model.models import oracle
from tests.memory_model.sweep import Counts, pieces, pool_of, work

REPORTS = 50  # lines of progress of a sweep that no terminal shows
INTERRUPTED = 130


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--programs", type=click.IntRange(1), default=10_000, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="First program.")
@click.option("--workers", type=click.IntRange(1), help="Processes.  [default: one a core]")
@click.option(
    "--executions",
    type=click.IntRange(1),
    default=20_000,
    show_default=True,
    help="Most executions of a search. One that does not end proves nothing missing.",
)
@click.option("--arm", is_flag=True, help="Compare RC11 with AArch64, on accesses and fences.")
def main(programs: int, seed: int, workers: int | None, executions: int, arm: bool) -> None:
    """Compare the engine with SC, TSO and RC11 on random programs of two to four threads.

    Ctrl-C prints the counts so far and the seed with which to go on.

    Exit code: 0 all agree, 1 a disagreement was found; each is shrunk and printed.
    """
    oracle()  # compiled once, before the processes start
    if not arm:
        cells()
    began = time.monotonic()
    counts: Any = arm_sweep.ArmCounts() if arm else Counts()
    console = Console(stderr=True)
    parts = list(pieces(seed, programs, executions))
    interrupted = False
    try:
        with pool_of(workers) as pool:
            results = pool.imap(arm_sweep.work if arm else work, parts)
            for at, result in enumerate(
                track(results, "comparing", total=len(parts), console=console)
            ):
                counts.add(result)
                if not console.is_terminal and at % max(1, len(parts) // REPORTS) == 0:
                    click.echo(f"{counts}, {time.monotonic() - began:,.0f} s", err=True)
    except KeyboardInterrupt:
        interrupted = True
    seconds = time.monotonic() - began
    for text in counts.found:
        click.echo(text + "\n")
    click.echo(f"{counts}, {counts.programs / seconds:,.0f} programs a second")
    if interrupted:
        click.echo(f"interrupted; go on with --seed {seed + counts.programs}")
    sys.exit(1 if counts.disagreements else INTERRUPTED if interrupted else 0)


if __name__ == "__main__":
    main()
