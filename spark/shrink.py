"""``python -m spark.shrink``: the command ``pulsar-ml shrink``."""

from __future__ import annotations

from pulsar_ml.cli.understand.shrink import command

if __name__ == "__main__":
    command(prog_name="pulsar-ml shrink")
