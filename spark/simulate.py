"""``python -m spark.simulate``: the command ``pulsar-ml simulate``."""

from __future__ import annotations

from pulsar_ml.cli.simulate_grid import main

if __name__ == "__main__":
    main(prog_name="python -m spark.simulate")
