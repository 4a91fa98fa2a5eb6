"""``python -m spark.simulate``: the command ``pulsar-ml simulate``."""

from __future__ import annotations

from pulsar_ml.cli.cache.simulate import command

if __name__ == "__main__":
    command(prog_name="pulsar-ml simulate")
