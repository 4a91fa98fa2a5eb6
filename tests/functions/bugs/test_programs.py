"""Twenty small programs as their authors would write them, each in a buggy and a mended variant.

The programs know nothing of the engine. Each bug is found in 20 of 20 seeds within the default
budget, and the mended variants are silent.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from pulsar_ml.harness.functions import LANGUAGES
from pulsar_ml.harness.functions.check import build_tests, check_function, replayed_text
from pulsar_ml.harness.functions.source import read_source
from tests.functions.bugs.searched import (
    BUILDABLE,
    BUILDS,
    KINDS,
    PROGRAMS,
    SHOWN,
    Found,
    search_program,
)
from tests.functions.bugs.searched import PROGRAMS_FOLDER as HERE

# Words by which a program would show that it knows where it runs.
OURS = re.compile(r"pulsar|pml|\bcheck:|check\.h|interleav|sanitize|tsan|\bengine\b", re.IGNORECASE)
INCLUDE = re.compile(
    r'#include\s*"([^"]+)"|cdef extern from "([^<"]+)"|cimport\s+(\w+)|from (\S+) cimport'
)


def test_the_table_has_every_program() -> None:
    files = {path.name for path in HERE.iterdir() if path.suffix in LANGUAGES}
    assert files == set(PROGRAMS)
    assert len(files) == 20
    assert set(KINDS.values()) <= files
    assert {Path(name).suffix for name in files} == {".c", ".cpp", ".pyx"}


def foreign_words(text: str) -> list[str]:
    """Return words of this project in a program, and what it includes beside the languages'."""
    included = ["".join(found) for found in INCLUDE.findall(text)]
    known = {path.name for path in HERE.iterdir()}
    return OURS.findall(text) + [
        name
        for name in included
        if name not in known and name.split(".")[0] not in {"libc", "libcpp", "posix"}
    ]


def test_no_program_knows_where_it_runs() -> None:
    for path in HERE.iterdir():
        if path.is_file():
            assert not foreign_words(path.read_text()), path.name
    assert foreign_words("// check: mode=sc\n") == ["check:"]
    assert foreign_words('#include "pulsar_ml/check.h"\n') == [
        "pulsar",
        "check.h",
        "pulsar_ml/check.h",
    ]
    assert foreign_words("from pulsar_ml.sync.atomics cimport pml_i64\n")


@pytest.mark.parametrize("name", BUILDABLE)
def test_the_bug_is_found_and_the_mended_program_is_silent(name: str) -> None:
    found = search_program(name)
    assert found.is_right, found.describe()


def test_a_result_that_is_not_right_is_told_apart() -> None:
    right = Found("barrier.c", 2, (3, 5), frozenset({"deadlock"}), 100, (), 0.1)
    assert right.is_right
    assert right.describe() == "| barrier.c | 2 of 2 | 4 | 5 | deadlock | 100 | silent | 0.10 |"
    for change in (
        {"executions": (3,)},
        {"executions": (), "kinds": frozenset()},
        {"kinds": frozenset({"leak"})},
        {"silent": 0},
        {"false": ("data race",)},
    ):
        assert not replace(right, **change).is_right


@pytest.mark.parametrize("name", [name for name in BUILDABLE if name in SHOWN])
def test_a_failure_is_shrunk_shown_and_made_again_in_another_process(name: str) -> None:
    source = read_source(HERE / name)
    subjects = build_tests(source, into=BUILDS)
    test = next(test for test in source.tests if test.name.endswith("_buggy"))
    result = check_function(source.path, test, subjects[test.name])
    assert result.failure is not None
    assert result.failure.kind in PROGRAMS[name]
    assert name in result.text
    assert "made again, step by step" in result.text
    again, _ = replayed_text(result.failure, subjects[test.name], None)
    assert again.exact
