"""Runs the command ``pulsar-ml``, as ``python -m pulsar_ml``."""

from __future__ import annotations

import faulthandler

from pulsar_ml.cli import main

if __name__ == "__main__":
    faulthandler.enable()
    main(prog_name="pulsar-ml")
