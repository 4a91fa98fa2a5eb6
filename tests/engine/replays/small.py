"""Small tests of C++ whose failures the tests of this folder replay; they are built once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pulsar_ml.harness.functions.check import build_tests, check_function
from pulsar_ml.harness.functions.source import read_source
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.subjects.subject import Subject
from tests import ROOT

SOURCE = Path(__file__).with_name("small_test.cpp")
BUILDS = ROOT / "build" / "functions"


@cache
def subjects() -> dict[str, Subject]:
    return build_tests(read_source(SOURCE), into=BUILDS)


@cache
def failure_of(name: str) -> Failure:
    """The shrunk failure of a test of the file."""
    source = read_source(SOURCE)
    (test,) = (each for each in source.tests if each.name == name)
    failure = check_function(SOURCE, test, subjects()[name]).failure
    assert failure is not None
    return failure


def record_of(name: str, folder: Path) -> Path:
    """The record of that failure, in a file of ``folder``."""
    path = folder / f"{name}.json"
    path.write_text(failure_of(name).to_json())
    return path
