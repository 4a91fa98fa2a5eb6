"""``python -m stress``: the commands of ``pulsar-ml`` for this project's suites."""

from __future__ import annotations

import faulthandler
import sys

import click

from pulsar_ml.campaign.local.session import EXIT_CLEAN
from pulsar_ml.cli.stress import cli, main
from stress import invariants


@cli.command("invariants")
@click.option(
    "--write", is_flag=True, help="Write the page, the headers and the structures' pages instead."
)
def invariants_command(write: bool) -> int:
    """Print docs/invariants.md: the suites and tests that check each invariant, and its known bugs.

    With --write, bring everything up to date that is made of pulsar_ml/suites/invariants.toml.

    \b
    Examples:
      python -m stress invariants
      python -m stress invariants --write
    """
    if write:
        for path, text in invariants.current_files().items():
            path.write_text(text)
    else:
        click.echo(invariants.current_page(), nl=False)
    return EXIT_CLEAN


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
