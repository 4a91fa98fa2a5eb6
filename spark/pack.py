"""``python -m spark.pack``: the command ``pulsar-ml pack``."""

from __future__ import annotations

from pulsar_ml.cli.pack import main

if __name__ == "__main__":
    main(prog_name="python -m spark.pack")
