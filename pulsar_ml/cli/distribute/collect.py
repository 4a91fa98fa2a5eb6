"""``pulsar-ml collect``: runs in one partitioned data set."""

from __future__ import annotations

from pathlib import Path

import click

from pulsar_ml.campaign.store.collection import collect
from pulsar_ml.campaign.store.read_run import open_run
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.terminal.progress import ProgressDisplay
from pulsar_ml.wording import counted


@new_command("collect", examples=("collect runs/20250102T* --into runs/all",))
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@option(
    "--into",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    group=shared.OUTPUT,
    help="The data set.",
)
def command(runs: tuple[Path, ...], into: Path) -> None:
    """Put RUNs, results directories, into one data set that is partitioned by run and suite.

    \b
    duckdb -c "SELECT suite, sum(executions)
      FROM 'runs/all/trials/*/*/*.parquet' GROUP BY suite"

    A run that was collected before is replaced. docs/analysis.md has more queries.
    """
    opened = [open_run(run) for run in runs]
    with ProgressDisplay() as progress:
        for run in opened:
            progress.begin(f"collecting {run.directory.name}", run.rows())
            collect(run, into, progress.advance)
    click.echo(f"{counted(len(opened), 'run')} in {into}")
