"""One JVM for the sweeps that pages show: each has a session of its own in it.

Most of the time of a short sweep is the start of its JVM. That commands end theirs is what
``test_jvm.py`` tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

STARTED: list[Any] = []  # the gateway to the JVM, which ends with this process


@contextmanager
def one_jvm() -> Iterator[None]:
    """Let the sweeps within use the JVM of earlier ones."""
    from pyspark import SparkContext, java_gateway

    from pulsar_ml.distributed import driver

    launch = java_gateway.launch_gateway

    def launched(*arguments: Any, **options: Any) -> Any:
        if not STARTED or STARTED[0].proc.poll() is not None:
            STARTED[:] = [launch(*arguments, **options)]
        return STARTED[0]

    def kept(gateway: Any) -> None:
        SparkContext._gateway = SparkContext._jvm = None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(java_gateway, "launch_gateway", launched)
        patch.setattr(driver, "end_jvm", kept)
        yield
