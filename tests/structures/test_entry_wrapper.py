from __future__ import annotations

import pytest

from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.suites.entry_wrapper import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    fail_each_allocation,
    machine_test,
    run_threads,
)

DONE, TAKEN, NOTHING, NO_MEMORY = range(4)

OWN_KEY = -1  # read_stale: the key under which the wrapper was remembered
CHURNED = 8  # read_stale: the wrapper that was churned last

TestMachine = machine_test("entry_wrapper")


@pytest.fixture
def pair() -> Pair:
    return Pair("entry_wrapper", {"keys": 8})


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("entry_wrapper", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_failed_allocation_changes_nothing(seed: int) -> None:
    assert fail_each_allocation("entry_wrapper", NO_MEMORY, seed=seed, calls=80) > 3


def test_a_wrapper_is_read_under_its_own_key_only(pair: Pair) -> None:
    value = pair.call("fill", 3).words[0]
    assert pair.call("read", 3).words[0] == value
    assert pair.call("read_stale", 0, 3, 1).words[0] == value
    assert pair.call("read_stale", 0, 4, 1).words[0] == 0
    pair.instance.check()


def test_a_stale_handle_finds_nothing_after_the_wrapper_was_cleared(pair: Pair) -> None:
    pair.call("fill", 3)
    assert pair.call("clear", 3).status == DONE
    assert pair.call("read_stale", 0, OWN_KEY, 1) == (DONE, (0, 0, 0, 0))
    assert pair.call("clear", 3).status == NOTHING
    pair.instance.check()


def test_a_stale_handle_does_not_read_a_later_incarnation_of_another_key(pair: Pair) -> None:
    pair.call("fill", 3)
    pair.call("clear", 3)
    pair.call("drain", 1)
    value = pair.call("fill", 4, thread=1).words[0]
    assert pair.call("read_stale", 0, OWN_KEY, 1).words[0] == 0
    assert pair.call("read_stale", 0, 4, 1).words[0] == value
    pair.instance.check()


def test_a_taken_key_leaves_the_new_wrapper_unused(pair: Pair) -> None:
    pair.call("fill", 3)
    assert pair.call("fill", 3).status == TAKEN
    assert pair.call("drain", 16).words[:2] == (0, 16)
    assert pair.call("clear", 3).status == DONE
    assert pair.call("drain", 16).words[:2] == (1, 0)
    pair.instance.check()


def test_clearing_answers_size_and_requeues(pair: Pair) -> None:
    value = pair.call("fill", 3).words[0]
    pair.call("drain", 2)
    assert pair.call("clear", 3).words[:2] == (value % 1009 + 1, 2)
    pair.instance.check()


def test_a_new_incarnation_was_never_requeued(pair: Pair) -> None:
    pair.call("fill", 3)
    pair.call("drain", 3)
    pair.call("clear", 3)
    pair.call("drain", 1)
    pair.call("fill", 3)
    assert pair.call("clear", 3).words[1] == 0
    pair.instance.check()


def test_a_churned_wrapper_is_empty_between_its_incarnations(pair: Pair) -> None:
    pair.call("churn", 0, 8)
    for key in range(8):
        assert pair.call("read_stale", CHURNED, key, 4).words[0] == 0
    pair.instance.check()


def test_the_check_may_be_repeated_and_the_instance_used_on(pair: Pair) -> None:
    for key in range(8):
        pair.instance.call("fill", key)
    pair.instance.check()
    pair.instance.check()
    assert pair.instance.call("fill", 3).status == DONE


# Negative controls.


@pytest.mark.parametrize(
    "mistake, invariant",
    [("read_unchecked", "I9"), ("reset_lock", "I29"), ("recycle_twice", "I24")],
)
def test_a_mistake_is_noticed_at_once(pair: Pair, mistake: str, invariant: str) -> None:
    pair.instance.call("fill", 3)
    with pytest.raises(InvariantViolation, match=invariant + ":"):
        pair.instance.call(mistake, 3)


def test_a_lost_wrapper_is_noticed_at_quiescence(pair: Pair) -> None:
    pair.instance.call("fill", 3)
    pair.instance.call("lose", 3)
    with pytest.raises(InvariantViolation, match="I23:"):
        pair.instance.check()
