"""``python -m stress``: the commands of ``pulsar-ml`` for this project's suites."""

from __future__ import annotations

import faulthandler
import sys

import click

from pulsar_ml.campaign.local.session import EXIT_CLEAN
from pulsar_ml.cli.stress import cli, main
from stress import invariants


@cli.command("invariants")
@click.option("--write", is_flag=True, help="Write docs/invariants.md instead of printing it.")
def invariants_command(write: bool) -> int:
    """Print which suites and tests check which invariant, and which known bugs break it.

    \b
    Examples:
      python -m stress invariants
      python -m stress invariants --write
    """
    text = invariants.current_page()
    if write:
        invariants.PAGE.write_text(text)
    else:
        click.echo(text, nl=False)
    return EXIT_CLEAN


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
