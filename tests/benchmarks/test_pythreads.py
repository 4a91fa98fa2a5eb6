"""The rows of Python threads: ratios to other tools, and programs as other tools take them."""

from __future__ import annotations

import math
import sys

import pytest

from benchmarks import pythreads
from benchmarks.peers import programs


def test_each_program_is_compared_with_the_faster_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {"a": 100.0, "b": 100.0, "c": 100.0, "d": 100.0}
    rates = {"ours": ours, "one": {"a": 10.0, "b": 1.0}, "other": {"b": 5.0, "c": 2.0}}
    monkeypatch.setattr(pythreads, "rates", rates)
    assert pythreads.ratio_of_programs() == 20  # of 10, 20 and 50: nobody else explores d


def test_a_bug_that_no_other_tool_finds_is_compared_with_infinity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = {"a": [2.0, 2.0, 4.0], "b": [1.0], "c": [1.0]}
    one = {"a": [20.0], "b": [math.inf], "c": [math.inf]}
    other = {"a": [40.0], "b": [30.0], "c": [math.inf]}
    monkeypatch.setattr(pythreads, "bugs", {"ours": ours, "one": one, "other": other})
    assert pythreads.ratio_of_bugs() == 30


def test_a_tool_without_a_verdict_has_no_figure() -> None:
    command = [sys.executable, "-c", "print('no JSON')"]
    assert pythreads.run_peer("frontrun", command, "data/memoise", "test_buggy", 1, 1) == {}
    assert pythreads.peer_bug("frontrun", command, "data/memoise") == math.inf


def test_other_tools_get_as_many_threads_as_the_program_starts() -> None:
    test = programs.load(str(pythreads.PROGRAMS / "data" / "memoise.py"), "test_mended")
    assert programs.count_threads(test) == 3
