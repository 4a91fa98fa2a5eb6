"""``python -m spark.pack``: the command ``pulsar-ml pack``."""

from __future__ import annotations

from pulsar_ml.cli.distribute.pack import command

if __name__ == "__main__":
    command(prog_name="pulsar-ml pack")
