"""Each member of each class beside each other one, and mistakes that the pairs must notice."""

from __future__ import annotations

import pytest

from tests.face_fuzz.__main__ import LEAST_SECONDS, Run, pairs_command, run_child
from tests.face_fuzz.face import classes
from tests.face_fuzz.pairs import CONTROLS, Scene

CALLS = 3  # of each thread in a pair
KINDS = [kind for kind in Scene.MAKERS if kind not in CONTROLS]


def run_pairs(kind: str, only: str = "") -> Run:
    return run_child(pairs_command(kind, 1, CALLS, 1, only), 1, LEAST_SECONDS)


@pytest.mark.parametrize("kind", KINDS)
def test_two_threads_may_call_anything_on_one_object(kind: str) -> None:
    run = run_pairs(kind)
    assert not run.problem, run.problem
    assert run.outcomes["returned"] > run.calls // 3
    assert f"{kind}.fork" in run.returned


def test_each_public_class_has_pairs() -> None:
    without_members = {"MemoryShare", "MemoryShares", "NativeMemory"}
    assert {kind.__name__ for kind in classes()} - without_members <= set(KINDS)


def test_the_calls_of_a_pair_overlap_and_what_they_may_not_raise_is_found() -> None:
    assert "meet raised SystemError: two threads are inside" in run_pairs("Planted", "meet").problem


def test_permits_that_stay_out_are_found() -> None:
    problem = run_pairs("Planted", "leak").problem
    assert "after the pairs of Planted: 45 permits of 50 remain" in problem
