"""``python -m spark.sweep``, or ``spark-submit spark/sweep.py``: the command ``pulsar-ml sweep``."""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # Started as a file, Python would look for imports beside this file first.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from pulsar_ml.cli.sweep import main  # noqa: E402

if __name__ == "__main__":
    main(prog_name="python -m spark.sweep")
