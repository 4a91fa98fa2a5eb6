"""``python -m spark.compact``: the command ``pulsar-ml compact``."""

from __future__ import annotations

from pulsar_ml.cli.compact import main

if __name__ == "__main__":
    main(prog_name="python -m spark.compact")
