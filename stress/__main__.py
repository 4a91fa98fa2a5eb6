"""``python -m stress``: the command ``pulsar-ml``, with the page of this project's invariants."""

from __future__ import annotations

import faulthandler

from pulsar_ml.cli import main
from pulsar_ml.cli.command import Command, option
from pulsar_ml.terminal.printer import echo
from stress import invariants


@main.command("invariants", cls=Command)
@option(
    "--write", is_flag=True, help="Write the page, the headers and the structures' pages instead."
)
def invariants_command(write: bool) -> None:
    """Print docs/invariants.md: the suites and tests that check each invariant, and its known bugs.

    With --write, bring everything up to date that is made of pulsar_ml/suites/invariants.toml.
    """
    if write:
        for path, text in invariants.current_files().items():
            path.write_text(text)
    else:
        echo(invariants.current_page(), nl=False)


if __name__ == "__main__":
    faulthandler.enable()
    main(prog_name="python -m stress")
