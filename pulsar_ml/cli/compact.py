"""Merges the small files of a run into large ones: ``python -m spark.compact runs/ID``. It needs no Java."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pulsar_ml.campaign.run.resume import past_of
from pulsar_ml.campaign.store.compaction import FILE_ROWS, compact
from pulsar_ml.campaign.store.store import waves_of
from pulsar_ml.campaign.store.summary import counted, short_path
from pulsar_ml.errors import PulsarMlError, UsageError

CLEAN, USAGE, FAILED = 0, 2, 4


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--rows",
    type=click.IntRange(1),
    default=FILE_ROWS,
    show_default=True,
    help="Trials of a file, about.",
)
def main(run: Path, rows: int) -> None:
    """Merge the small files that short waves of a RUN left. Rows stay as they are, and each is seen once.

    A run that a sweep is writing is refused. Killed at any moment, the run is whole, and the same command
    or --resume of the sweep goes on with it.

    \b
    Exit codes: 0 done, also when there was nothing to do; 2 usage error; 4 failed.
    """
    try:
        past = past_of(run)
        try:
            past.store.tidy()
            names = waves_of(run)
            files = compact(run, names, most=rows)
        finally:
            past.store.close()
    except UsageError as error:
        sys.exit(fail(f"Error: {error}", USAGE))
    except (PulsarMlError, OSError) as error:
        sys.exit(fail(f"Failed: {error}", FAILED))
    before = counted(len(names), "wave")
    click.echo(f"{before} in {counted(files, 'file')} of each table in {short_path(run)}")


def fail(text: str, code: int) -> int:
    click.echo(text, err=True)
    return code
