"""``python -m spark.compact``: the command ``pulsar-ml compact``."""

from __future__ import annotations

from pulsar_ml.cli.distribute.compact import command

if __name__ == "__main__":
    command(prog_name="pulsar-ml compact")
