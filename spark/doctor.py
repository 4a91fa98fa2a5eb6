"""``python -m spark.doctor``: the command ``pulsar-ml doctor``."""

from __future__ import annotations

from pulsar_ml.cli.distribute.doctor import command

if __name__ == "__main__":
    command(prog_name="pulsar-ml doctor")
