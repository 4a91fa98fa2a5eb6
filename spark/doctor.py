"""``python -m spark.doctor``: the command ``pulsar-ml doctor``."""

from __future__ import annotations

from pulsar_ml.cli.doctor import main

if __name__ == "__main__":
    main(prog_name="python -m spark.doctor")
