"""Runs the command ``python -m pulsar_ml``."""

from __future__ import annotations

from pulsar_ml.cli import main

if __name__ == "__main__":
    main(prog_name="python -m pulsar_ml")
