"""``python -m tests.pythreads``: explores the thirty programs and prints the table.

Each bug has to be found with each seed, within the default budget of executions, and each mended
program has to be silent.
"""

from __future__ import annotations

import statistics
import sys

import click
from rich.console import Console
from rich.table import Table

from pulsar_ml.harness.pythreads.check import EXECUTIONS, explore_python
from tests.pythreads.test_programs import PROGRAMS, RACES_WHEN_MENDED, program

WIDTH = 110


def executions_to_bug(name: str, seed: int) -> int | None:
    """Return how many executions found the bug of a program; None if none did."""
    done, _ = explore_python(program(name).test_buggy, isolated=False, shrinks=False, seed=seed)
    return None if done.failure is None else done.executions


def verdict_of_mended(name: str, semantics: str, executions: int) -> str:
    done, _ = explore_python(
        program(name).test_mended,
        isolated=False,
        shrinks=False,
        semantics=semantics,
        executions=executions,
    )
    return done.verdict


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seeds", type=click.IntRange(1), default=20, show_default=True)
@click.option(
    "--executions",
    type=click.IntRange(1),
    default=EXECUTIONS,
    show_default=True,
    help="Executions of each mended program, with each semantics.",
)
@click.option("--program", "pattern", default="", help="Only programs whose name contains this.")
def main(seeds: int, executions: int, pattern: str) -> None:
    """Explore the thirty buggy and mended programs.

    Exit code: 0 each bug was found with each seed and each mended program is silent, 1 otherwise.
    """
    console = Console(width=WIDTH)
    table = Table("program", "found", "median", "most", "mended: gil", "free")
    wrong = 0
    for name in (each for each in PROGRAMS if pattern in each):
        found = [executions_to_bug(name, seed) for seed in range(seeds)]
        counts = [count for count in found if count is not None]
        verdicts = [verdict_of_mended(name, each, executions) for each in ("gil", "free")]
        right = ["clean", "violation" if name in RACES_WHEN_MENDED else "clean"]
        wrong += len(counts) < seeds or verdicts != right
        table.add_row(
            name,
            f"{len(counts)} of {seeds}",
            f"{statistics.median(counts or [0]):,.0f}",
            f"{max(counts, default=0):,}",
            *verdicts,
        )
    console.print(table)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
