"""``python -m spark.shrink``: the command ``pulsar-ml shrink``."""

from __future__ import annotations

from pulsar_ml.cli.shrink_run import main

if __name__ == "__main__":
    main(prog_name="python -m spark.shrink")
