"""A bounded number of fuzzed calls with fixed seeds, and mistakes that the fuzzer must notice."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pulsar_ml import EntryCacheManager, _core
from tests.face_fuzz.__main__ import run_seed
from tests.face_fuzz.face import classes, members, parameters

CALLS = 5_000
FEW = 10  # methods


@pytest.mark.parametrize("seed", range(6))
def test_no_call_of_the_face_crashes_hangs_or_raises_what_is_not_named(seed: int) -> None:
    run = run_seed(seed, CALLS, 3 if seed % 2 else 1)
    assert not run.problem, run.problem
    assert run.calls >= CALLS - 3
    # Calls of both kinds: objects are made, and mistakes are named.
    assert run.outcomes["returned"] > CALLS // 4
    assert run.outcomes["TypeError"] > CALLS // 50
    assert run.outcomes["InvalidPositionError"] > 0


def methods() -> set[str]:
    return {
        f"{kind.__name__}.{member}(...)"
        for kind in classes()
        for member in members(kind)
        if callable(getattr(kind, member))
    }


def test_nearly_every_method_of_the_face_returns_from_a_call() -> None:
    """So the fuzzer's arguments reach what a method does, not only its checks."""
    returned = set().union(*[run_seed(seed, CALLS, 1).returned for seed in range(0, 16, 2)])
    assert len(methods()) > 90
    assert len(methods() - returned) < FEW, sorted(methods() - returned)


def test_arguments_that_are_not_known_by_name_are_noticed() -> None:
    """Positions whose names the fuzzer does not know leave many methods without an answer."""
    returned = run_seed(0, 4 * CALLS, 1, planted="names").returned
    assert len(methods() - returned) >= FEW


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
