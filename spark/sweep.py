"""``python -m spark.sweep`` and ``spark-submit spark/sweep.py``: ``pulsar-ml sweep``."""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # Started as a file, Python would look for imports beside this file first.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from pulsar_ml.cli.find.sweep import command

if __name__ == "__main__":
    command(prog_name="pulsar-ml sweep")
