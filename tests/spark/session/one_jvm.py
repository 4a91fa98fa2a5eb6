"""One JVM for the sessions of many tests, which each command opens and stops as ever.

A command starts a JVM of its own and ends it, which is most of what a short sweep costs. Here these
two steps alone are replaced: settings, contexts, executors and the end of a session are as in a
process of its own. ``test_sweep.py``, ``machines`` and ``test_masters.py`` start JVMs as users do.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import click
import pytest
from click.testing import CliRunner

from pulsar_ml.cli.find.sweep import command as sweep_command
from pulsar_ml.distributed.jvm import end_jvm
from pulsar_ml.distributed.session import HOME, at_home, home_with, link_work, settings
from tests import ROOT
from tests.spark.test_sweep import environment, patient


def forget(gateway: object) -> None:
    """PySpark without a JVM, as one that ended leaves it: the next session is the first one."""
    from pyspark import SparkContext

    SparkContext._gateway = SparkContext._jvm = None


class OneJvm:
    """The JVM, started when a command first needs it, with a directory for its files."""

    def __init__(self, scratch: Path) -> None:
        import pyspark.java_gateway

        self._scratch = scratch
        self._launch: Any = pyspark.java_gateway.launch_gateway
        self._gateway: Any = None

    def _launched(self, *_: object, **__: object) -> Any:
        """Stands for PySpark's ``launch_gateway``; executors work where the command wants them."""
        home = self._scratch / "home"
        if self._gateway is None:
            from pyspark import SparkConf

            with mock.patch.dict(os.environ):
                os.environ.pop(HOME, None)
                link_work(home_with(home), self._scratch / "work")
            chosen = settings("local[1]", cpus=1, scratch=self._scratch, site=None)
            java = {key: chosen[key] for key in chosen if key.startswith("spark.driver.")}
            conf = SparkConf(loadDefaults=False).setAll(list(java.items()))
            with (self._scratch / "log").open("ab") as log, at_home(home):
                output = {"stdout": log, "stderr": log, "cwd": self._scratch}
                self._gateway = self._launch(conf, {**output, "start_new_session": True})
        if HOME in os.environ and Path(os.environ[HOME], "work").exists():
            (home / "work").unlink()
            (home / "work").symlink_to(Path(os.environ[HOME], "work").resolve())
        return self._gateway

    @contextmanager
    def serving(self, directory: Path, **changes: str) -> Iterator[None]:
        """While it is entered, sessions of this process, which works there, open in this JVM."""
        with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
            patch.chdir(directory)
            patch.syspath_prepend(str(ROOT / "tests" / "spark"))
            stack.enter_context(mock.patch.dict(os.environ, environment(**changes), clear=True))
            stack.enter_context(self.sessions())
            yield

    @contextmanager
    def sessions(self) -> Iterator[None]:
        """While it is entered, sessions of this process open in this JVM."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pyspark.java_gateway.launch_gateway", self._launched)
            patch.setattr("pulsar_ml.distributed.driver.end_jvm", forget)
            yield

    def run(
        self, command: click.Command, directory: Path, *words: str, **changes: str
    ) -> subprocess.CompletedProcess[str]:
        with self.serving(directory, **changes):
            done = CliRunner().invoke(command, words)
        return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)

    def sweep(
        self, directory: Path, *options: str, **changes: str
    ) -> subprocess.CompletedProcess[str]:
        """A sweep as of ``test_sweep.sweep``, in this process."""
        words = ("--suites", "sweep_suites", "--out", "out", *patient(options))
        return self.run(sweep_command, directory, *words, **changes)

    def end(self) -> None:
        if self._gateway is not None:
            end_jvm(self._gateway)
