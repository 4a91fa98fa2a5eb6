"""``python -m spark.cluster``: the command ``pulsar-ml cluster``."""

from __future__ import annotations

from pulsar_ml.cli.distribute.cluster import command

if __name__ == "__main__":
    command(prog_name="pulsar-ml cluster")
