"""``python -m spark.scale``: the command ``pulsar-ml scale``."""

from __future__ import annotations

from pulsar_ml.cli.scale import main

if __name__ == "__main__":
    main(prog_name="python -m spark.scale")
