"""``python -m spark.cluster``: the command ``pulsar-ml cluster``."""

from __future__ import annotations

from pulsar_ml.cli.cluster import main

if __name__ == "__main__":
    main(prog_name="python -m spark.cluster")
