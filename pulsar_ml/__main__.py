"""Runs the command ``pulsar-ml``, as ``python -m pulsar_ml``."""

from __future__ import annotations

import faulthandler

from pulsar_ml.terminal.signals import leave_at_once


def run() -> None:
    """Run the command; a signal during the imports ends it at once."""
    leave_at_once()
    from pulsar_ml.cli import main

    main(prog_name="pulsar-ml")


if __name__ == "__main__":
    faulthandler.enable()
    run()
