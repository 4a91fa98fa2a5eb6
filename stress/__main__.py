"""``python -m stress``: the command ``pulsar-ml``, with the page of this project's invariants."""

from __future__ import annotations

import faulthandler

import click

from pulsar_ml.cli import main
from pulsar_ml.cli.command import Command, option
from stress import invariants


@main.command("invariants", cls=Command)
@option("--write", is_flag=True, help="Write docs/invariants.md instead of printing it.")
def invariants_command(write: bool) -> None:
    """Print the page of invariants: suites and tests that check each, known bugs that break it."""
    text = invariants.current_page()
    if write:
        invariants.PAGE.write_text(text)
    else:
        click.echo(text, nl=False)


if __name__ == "__main__":
    faulthandler.enable()
    main(prog_name="python -m stress")
