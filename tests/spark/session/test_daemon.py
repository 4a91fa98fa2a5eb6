"""Python workers of an embedded Spark, and their supervisors, begin with all modules."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from pulsar_ml.distributed.driver import spark_session
from pulsar_ml.distributed.jobs import results_of
from tests.spark.session.one_jvm import OneJvm

THREADS = """\
import os, sys
from pulsar_ml.distributed.machines.daemon import load
load()
print(len(os.listdir("/proc/self/task")), "pyarrow" in sys.modules)
"""


def test_what_is_imported_before_a_fork_starts_no_thread() -> None:
    found = subprocess.run(
        [sys.executable, "-c", THREADS], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["1", "False"]


@pytest.mark.parametrize("other", [False, True], ids=["same interpreter", "another"])
def test_workers_and_supervisors_have_their_modules_and_import_nothing_from_archives(
    tmp_path: Path, spark_jvm: OneJvm, other: bool
) -> None:
    import pyspark

    def loaded(numbers: Iterable[int]) -> Iterator[tuple[set[str], str, bool]]:
        """The modules of a worker before its task imports any, where PySpark is, and whether the
        worker's supervisor is a fork of it."""
        modules = set(sys.modules)
        from pulsar_ml.distributed.tasks import isolation

        supervisor = isolation()
        supervisor.start()
        assert supervisor._process is not None
        one, other = (
            psutil.Process(process).cmdline() for process in (os.getpid(), supervisor._process.pid)
        )
        supervisor.close()
        yield modules, str(Path(str(pyspark.__file__)).resolve()), one == other

    python = Path(sys.executable)
    if other:  # of which nothing is known
        python = tmp_path / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
    with spark_jvm.serving(tmp_path, PYSPARK_PYTHON=str(python)), ExitStack() as stack:
        session = spark_session(stack, "local[1]")
        ((modules, place, forked),) = results_of(session.sparkContext, 1, loaded)
    assert ("pulsar_ml.campaign.trial.supervisor" in modules) is not other
    assert forked is not other
    assert place == str(Path(str(pyspark.__file__)).resolve())
