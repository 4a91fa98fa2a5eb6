"""``python -m stress``: the command ``pulsar-ml``, with the page of this project's invariants."""

from __future__ import annotations

import faulthandler

import click

from pulsar_ml.cli import main
from pulsar_ml.cli.command import Command, option
from stress import invariants


@main.command("invariants", cls=Command)
@option("--write", is_flag=True, help="Bring every file made of invariants.toml up to date.")
def invariants_command(write: bool) -> None:
    """Print the page of invariants: suites and tests that check each, known bugs that break it."""
    if write:
        for path, text in invariants.current_files().items():
            path.write_text(text)
    else:
        click.echo(invariants.current_page(), nl=False)


if __name__ == "__main__":
    faulthandler.enable()
    main(prog_name="python -m stress")
