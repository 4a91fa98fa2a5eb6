"""Starts the Python workers of Spark from a process that has imported what their tasks need.

Spark's own daemon leaves imports to each worker, because packages may start threads, which a fork
would lose. Those that are imported here start none; pyarrow does, and is left to the workers.
"""

from __future__ import annotations

import gc
import os
from importlib import import_module

MODULES = (
    "pyspark.worker",
    "pulsar_ml.campaign.trial.isolation",
    "pulsar_ml.operations._native",
    "pulsar_ml.suites.registry",
    "pulsar_ml.distributed.tasks",
)


def load() -> None:
    """Import modules whose import starts no thread."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's threads
    for name in MODULES:
        import_module(name)
    gc.collect()
    gc.freeze()  # imported objects are no garbage, and workers share their pages


def main() -> None:
    """Serve as Spark's daemon until Spark ends."""
    load()
    from pyspark.daemon import manager

    from pulsar_ml.distributed import tasks

    tasks.forks = True
    manager()


if __name__ == "__main__":
    main()
