"""A bounded number of fuzzed calls with fixed seeds, and mistakes that the fuzzer must notice."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pulsar_ml import EntryCacheManager, _core
from tests.face_fuzz.__main__ import run_seed
from tests.face_fuzz.face import classes, members, parameters

CALLS = 5_000


@pytest.mark.parametrize("seed", range(6))
def test_no_call_of_the_face_crashes_hangs_or_raises_what_is_not_named(seed: int) -> None:
    run = run_seed(seed, CALLS, 3 if seed % 2 else 1)
    assert not run.problem, run.problem
    assert run.calls >= CALLS - 3
    # Calls of both kinds: objects are made, and mistakes are named.
    assert run.outcomes["returned"] > CALLS // 4
    assert run.outcomes["TypeError"] > CALLS // 50
    assert run.outcomes["InvalidPositionError"] > 0


@pytest.mark.parametrize(
    ("planted", "problem"),
    [
        ("crash", "exit code -11"),
        ("hang", "no end after"),
        ("overflow", "Planted(...) raised OverflowError"),
    ],
)
def test_a_planted_mistake_is_reported_with_its_seed(planted: str, problem: str) -> None:
    run = run_seed(7, 2_000, 1, seconds=10 if planted == "hang" else None, planted=planted)
    assert problem in run.problem
    assert "--seed=7" in run.problem


def test_the_face_that_is_fuzzed_is_all_of_it() -> None:
    found = classes()
    assert {EntryCacheManager, _core.RangeCache, _core.AckState, _core.Permits} <= set(found)
    assert len(found) >= 14
    assert "put" in members(_core.RangeCache)
    assert [each.name for each in parameters(_core.RangeCache, "put")] == [
        "position", "value", "expected_reads", "timestamp_ns",
    ]  # fmt: skip


def test_the_command_shows_progress_and_ends_by_its_number_of_calls() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.face_fuzz", "--calls=2000", "--calls-per-seed=1000"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("1,00") or lines[0].startswith("999")
    assert " calls, 1 seeds, 0 problems, " in lines[0]
