"""``pulsar-ml compact``: the small files of a run merged into large ones."""

from __future__ import annotations

from pathlib import Path

import click

from pulsar_ml.campaign.run.resume import past_of
from pulsar_ml.campaign.store.compaction import FILE_ROWS, compact
from pulsar_ml.campaign.store.store import waves_of
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.terminal.command_line import short_path
from pulsar_ml.wording import counted


@new_command("compact", examples=("compact runs/ID",))
@click.argument("run", type=click.Path(path_type=Path))
@option(
    "--file-rows",
    type=click.IntRange(1),
    default=FILE_ROWS,
    show_default=True,
    group=shared.OUTPUT,
    help="Trials in each file, about.",
)
def command(run: Path, file_rows: int) -> None:
    """Merge the small files that short waves of RUN left, without Java.

    Rows stay as they are, and each is seen once. A run that a sweep is writing is refused. Killed
    at any moment, the run is whole, and the same command or sweep --resume goes on with it.
    """
    past = past_of(run)
    try:
        past.store.tidy()
        names = waves_of(run)
        files = compact(run, names, most=file_rows)
    finally:
        past.store.close()
    waves = counted(len(names), "wave")
    click.echo(f"{waves} in {counted(files, 'file')} of each table in {short_path(run)}")
