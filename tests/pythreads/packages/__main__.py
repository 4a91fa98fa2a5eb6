"""``python -m tests.pythreads.packages``: fetches packages and explores the table of their tests.

Each version of a package has a process of its own.
"""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import click
from rich.console import Console
from rich.table import Table

from pulsar_ml.harness.pythreads.check import EXECUTIONS
from tests.pythreads.packages.cases import BUG, CASES, SILENT, Case, requirements
from tests.pythreads.packages.versions import explore_version

WIDTH = 150


def expected(case: Case) -> str:
    """Return BUG or SILENT, for this version of Python."""
    mended = case.before is not None and sys.version_info >= case.before
    return SILENT if mended else case.expected


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--executions", type=click.IntRange(1), default=EXECUTIONS, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--package", default="", help="Only packages whose name begins with this.")
def main(executions: int, seed: int, package: str) -> None:
    """Explore tests of packages from PyPI and of the standard library.

    Exit code: 0 each outcome is the expected one, 1 another one.
    """
    console = Console(width=WIDTH)
    table = Table("package", "outcome", "semantics", "at or after", "finding", "known")
    cases = [case for case in CASES if case.requirement.startswith(package)]
    wrong = 0
    context = multiprocessing.get_context("spawn")
    for requirement in requirements(cases):
        chosen = [case for case in cases if case.requirement == requirement]
        with ProcessPoolExecutor(1, context) as process:
            rows = process.submit(explore_version, requirement, chosen, executions, seed).result()
        for case, (outcome, count, message) in zip(chosen, rows, strict=True):
            if outcome != expected(case):
                wrong += 1
                console.print(f"{case.test}: expected {expected(case)}, {message}", style="red")
            known = case.known or ("no report found" if case.expected == BUG else "")
            name = requirement or f"Python {sys.version.split()[0]}"
            table.add_row(name, outcome, case.semantics, f"{count:,}", case.finding, known)
    console.print(table)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
