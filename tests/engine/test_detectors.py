"""Each detector sees its bug, names both sides, and leaves the process alive; see the fixed twins
for the negative controls."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import Failure
from tests.engine.programs.build_programs import explorer, program_of, programs

EXPECTED = {
    "plain_race": "data race",
    "read_write_race": "data race",
    "atomic_and_plain": "data race",
    "use_after_free": "use after free",
    "double_checked": "data race",
    "double_free": "double free",
    "leak": "leak",
    "uninitialised": "uninitialised read",
    "overflow": "out of bounds",
    "crash": "crash",
    "recursion": "stack overflow",
    "endless": "endless loop",
    "endless_behind_a_mask": "endless loop",
    "assertion": "assertion",
    "livelock": "livelock",
    "silent_spin": "livelock",
    "ab_ba": "deadlock",
    "foreign_unlock": "lock misuse",
}


def failure_of(name: str, **options: Any) -> Failure:
    found = explore(
        programs().SUBJECTS[name], program_of(name), executions=2_000, seed=5, **options
    ).failure
    assert found is not None
    return found


@pytest.mark.parametrize("name", EXPECTED)
def test_a_detector_sees_its_bug(name: str) -> None:
    assert failure_of(name).kind == EXPECTED[name]


def test_signals_that_the_code_under_test_blocks_are_not_blocked_afterwards() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert failure_of("endless_behind_a_mask").kind == "endless loop"
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_race_names_both_places() -> None:
    found = failure_of("read_write_race")
    assert all("read_write_race_body programs/bugs.h:" in place for place in found.where[:2])


def test_a_use_after_free_without_the_race_detector_names_allocation_and_release() -> None:
    found = failure_of("use_after_free", races=False)
    assert found.kind == "use after free"
    assert "allocated at use_after_free_body" in found.message
    assert "freed by thread 0 at use_after_free_body" in found.message


def test_a_deadlock_names_who_waits_for_whom() -> None:
    message = failure_of("ab_ba").message
    assert "thread 0 waits for mutex" in message
    assert "held by thread 0" in message


def test_an_execution_whose_threads_share_nothing_exercised_nothing() -> None:
    done = explore(programs().SUBJECTS["no_sharing"], program_of("no_sharing"), executions=500)
    assert done.verdict == "nothing_exercised"


def test_a_loop_that_gives_up_is_not_a_livelock() -> None:
    runs = explorer("bounded_spin_fixed", mode="c11")
    assert runs.run(0, 5_000) == 5_000
