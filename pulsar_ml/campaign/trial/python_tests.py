"""Makes the tests of a Python module subjects and suites, as sweeps take them.

A module without ``SUBJECTS`` and ``SUITES`` gets them here: a suite for each function ``test_*()``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.harness.functions.source import TestFunction, python_tests
from pulsar_ml.harness.pythreads import _fibers
from pulsar_ml.harness.pythreads.check import Test, engine_options, python_subject
from pulsar_ml.harness.pythreads.failures import SWEEPS
from pulsar_ml.harness.pythreads.native_modules import checked_modules
from pulsar_ml.harness.pythreads.session import session
from pulsar_ml.harness.subjects.subject import Subject

ONE = ControlledSize(threads=(1, 1), operations=(1, 1))  # the test starts its own threads
OPEN: list[Test] = []  # the test of the session under way


def with_tests(module: ModuleType) -> ModuleType:
    """Return ``module``; one of tests in Python gets SUBJECTS and SUITES.

    ``semantics`` and ``also`` of each test are those of the file's comments.
    """
    file = getattr(module, "__file__", None) or ""
    if hasattr(module, "SUBJECTS") or hasattr(module, "SUITES") or not file.endswith(".py"):
        return module
    functions = {
        name: value
        for name, value in vars(module).items()
        if name.startswith("test_") and inspect.isfunction(value)
    }
    if not functions:
        return module
    tests = {each.name: each for each in python_tests(Path(file), inspect.getsource(module))}
    if chosen := {name: functions[name] for name in tests if name in functions}:
        suites = {name: suite_of(name, function, tests[name]) for name, function in chosen.items()}
        subjects = {name: subject_of(name, each, tests[name]) for name, each in chosen.items()}
        vars(module).update(SUITES=suites, SUBJECTS=subjects)
        SWEEPS.append(module.__name__)
    return module


def semantics_of(test: TestFunction) -> str:
    return str(test.options.get("semantics", "gil"))


def suite_of(name: str, function: Callable[[], object], test: TestFunction) -> Suite:
    free = int(semantics_of(test) == "free")
    return Suite(
        name=name,
        subject=name,
        summary=(inspect.getdoc(function) or f"The test {name} of Python.").partition("\n")[0],
        settings={"free": (free, free)},
        threads=1,
        operations=1,
        controlled=ONE,
    )


def subject_of(name: str, function: Test, test: TestFunction) -> Subject:
    """Return the subject of a test, whose executions open a session of its semantics."""
    subject = python_subject(function, name)
    also = cast("tuple[str, ...]", test.options.get("also", ()))
    subject.around = partial(around, name, function, semantics_of(test), also)
    return subject


@contextmanager
def around(name: str, function: Test, semantics: str, also: tuple[str, ...] = ()) -> Iterator[None]:
    """Prepare this process for executions of one test; within its session this does nothing."""
    if OPEN and OPEN[-1] is function:
        yield
        return
    _fibers.set_test(function, name)
    with session(semantics=semantics, also=also):
        OPEN.append(function)
        try:
            yield
        finally:
            OPEN.pop()


def trial_options(suite: Suite, mode: str) -> dict[str, Any]:
    """Return the engine's options of a trial of such a suite; ``mode`` matters to native code."""
    semantics = "free" if suite.settings["free"][0] else "gil"
    chosen = engine_options(semantics, {"mode": mode} if checked_modules() else {})
    del chosen["executions"]
    return chosen
