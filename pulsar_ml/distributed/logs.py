"""The place of an executor's log, found by its Python worker: a path or a URL.

Only the standard library is imported, so that an executor can always say where its log is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

DRIVER = "driver"  # Spark's name of the executor of local[N]


def executor_log(environ: Mapping[str, str], directory: Path, drivers: str) -> tuple[str, str]:
    """The executor's id and its log; empty where Spark does not say.

    ``directory`` is the working directory of its process. ``drivers`` is the driver's log when
    tasks run beside it. A path is one on the executor's host; where a cluster manager serves logs,
    it is a URL.
    """
    if drivers:
        return DRIVER, drivers
    executor = environ.get("SPARK_EXECUTOR_ID", "")
    printed = directory / "stderr"
    if printed.is_file():  # standalone and local-cluster: WORK/APPLICATION/EXECUTOR
        return executor or directory.name, str(printed)
    if url := environ.get("SPARK_LOG_URL_STDERR"):  # YARN
        return executor or environ.get("CONTAINER_ID", ""), url
    return executor, ""
