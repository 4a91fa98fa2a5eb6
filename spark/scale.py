"""``python -m spark.scale``: the command ``pulsar-ml scale``."""

from __future__ import annotations

from pulsar_ml.cli.distribute.scale import command

if __name__ == "__main__":
    command(prog_name="pulsar-ml scale")
