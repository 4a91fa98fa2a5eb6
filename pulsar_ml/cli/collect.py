"""``python -m pulsar_ml collect``."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from pulsar_ml.campaign.store.collection import collect as collect_run
from pulsar_ml.campaign.store.read_run import open_run
from pulsar_ml.cli.progress import progress


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option(
    "--into", required=True, type=click.Path(path_type=Path, file_okay=False), help="The data set."
)
def collect(runs: tuple[Path, ...], into: Path) -> None:
    """Put RUNs, results directories of sweeps, into one data set that is partitioned by run and suite.

    \b
    python -m pulsar_ml collect runs/20250102T* --into runs/all
    duckdb -c "SELECT suite, sum(executions) FROM 'runs/all/trials/*/*/*.parquet' GROUP BY suite"

    A run that was collected before is replaced. docs/analysis.md has questions and their queries.

    Exit codes: 0 done, 2 something given is wrong or damaged; the runs before it are in the data set.
    """
    opened = [open_run(run) for run in runs]
    with progress(Console(stderr=True)) as begin:
        for run in opened:
            collect_run(run, into, begin(f"collecting {run.directory.name}", run.rows()))
    click.echo(f"{len(opened)} run{'' if len(opened) == 1 else 's'} in {into}")
