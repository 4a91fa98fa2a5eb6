"""Fetches a version of a package, and explores its tests in this process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from pulsar_ml.errors import PulsarMlError
from pulsar_ml.harness.pythreads.check import explore_python
from tests import ROOT
from tests.pythreads.packages.cases import BUG, SILENT, Case, Test

FOLDER = ROOT / "build" / "packages"

ALONE_SECONDS = 5

Row = tuple[str, int, str]  # outcome, executions, message


def fetch(requirement: str) -> Path:
    """Have pip install one version of a package into a folder of its own, unless it is there."""
    folder = FOLDER / requirement
    if not folder.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        into = folder.with_name(f"{folder.name}.{os.getpid()}")
        subprocess.run([*command, "--no-deps", "--target", str(into), requirement], check=True)
        into.rename(folder)
    return folder


def load(case: Case) -> Test:
    module, _, name = case.test.partition(".")
    test: Test = getattr(import_module(f"tests.pythreads.packages.{module}"), name)
    return test


def explore_case(case: Case, executions: int, seed: int) -> Row:
    """Explore one test; return its outcome, executions and the failure's message."""
    test = load(case)
    test_alone(test)
    try:
        done, text = explore_python(
            test,
            semantics=case.semantics,
            also=case.also,
            executions=executions,
            seed=seed,
            shrinks=False,
        )
    except PulsarMlError as error:
        return "error", 0, str(error)
    if done.failure is not None:
        return BUG, done.executions, done.failure.message
    return (SILENT if done.verdict == "clean" else done.verdict), done.executions, text


def test_alone(test: Test) -> None:
    """Call a test once without the engine: packages keep what they computed at first use."""
    thread = threading.Thread(target=test, daemon=True)  # may find the bug, and wait for ever
    with suppressed_hook():
        thread.start()
        thread.join(ALONE_SECONDS)


@contextmanager
def suppressed_hook() -> Iterator[None]:
    """Print no exception of a thread for a while."""
    before, threading.excepthook = threading.excepthook, lambda _: None
    try:
        yield
    finally:
        threading.excepthook = before


def explore_version(requirement: str, cases: list[Case], executions: int, seed: int) -> list[Row]:
    """Explore the tests of one version of a package, in a process that has no other version."""
    if requirement:
        sys.path.insert(0, str(fetch(requirement)))
    return [explore_case(case, executions, seed) for case in cases]
