from __future__ import annotations

import pytest

from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.suites.object_pool import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    fail_each_allocation,
    machine_test,
    run_threads,
)

DONE, EXHAUSTED, NOT_HELD = range(3)

TestMachine = machine_test("object_pool")


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("object_pool", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


@pytest.mark.parametrize("seed", [1, 2])
def test_each_failed_allocation_changes_nothing(seed: int) -> None:
    assert fail_each_allocation("object_pool", EXHAUSTED, seed=seed) >= 3


@pytest.mark.parametrize("chunk_bits", range(5))
def test_a_pool_hands_out_one_object_less_than_its_limit(chunk_bits: int) -> None:
    pair = Pair("object_pool", {"chunk_bits": chunk_bits, "limit": 9})
    assert [pair.call("take").status for _ in range(10)] == [DONE] * 8 + [EXHAUSTED] * 2
    pair.call("give", 3)
    assert pair.call("take").status == DONE


def test_a_chain_is_given_back_whole() -> None:
    pair = Pair("object_pool", {"limit": 8})
    for _ in range(7):
        pair.call("take")
    pair.call("give_chain", 4)
    assert [pair.call("take", thread=1).status for _ in range(5)] == [DONE] * 4 + [EXHAUSTED]


def test_an_object_in_the_pool_can_be_looked_at() -> None:
    pair = Pair("object_pool", {"limit": 4})
    pair.call("take")
    pair.call("give", 0)
    assert pair.call("look_stale").status == DONE


def test_the_check_gives_everything_back() -> None:
    pair = Pair("object_pool", {"limit": 4})
    for _ in range(3):
        pair.call("take")
    pair.instance.check()
    pair.instance.check()
    assert [pair.instance.call("take").status for _ in range(4)] == [DONE] * 3 + [EXHAUSTED]


# Negative controls.


def test_an_object_handed_to_two_takers_is_noticed() -> None:
    instance = Pair("object_pool", {"limit": 4}).instance
    instance.call("take")
    instance.call("give_and_keep", 0)
    with pytest.raises(InvariantViolation, match="OP-1"):
        instance.call("take", thread=1)


def test_an_object_that_changed_hands_is_noticed_by_its_holder() -> None:
    instance = Pair("object_pool", {"limit": 4}).instance
    instance.call("take")
    instance.call("give_and_keep", 0)
    with pytest.raises(InvariantViolation, match="OP-1"):
        instance.call("take", thread=1)
    with pytest.raises(InvariantViolation, match="I24"):
        instance.call("read", 0)


def test_an_object_given_back_twice_is_noticed_by_the_second_taker() -> None:
    instance = Pair("object_pool", {"limit": 4}).instance
    instance.call("take")
    instance.call("give_twice", 0)
    instance.call("take")
    with pytest.raises(InvariantViolation, match="OP-1"):
        instance.call("take", thread=1)


def test_memory_that_became_another_object_is_noticed() -> None:
    instance = Pair("object_pool", {"limit": 4}).instance
    instance.call("take")
    instance.call("retype")
    instance.call("give", 0)
    with pytest.raises(InvariantViolation, match="OP-3"):
        instance.call("look_stale")
    with pytest.raises(InvariantViolation, match="OP-3"):
        instance.call("take", thread=1)


@pytest.mark.parametrize("wrong", ["give_and_keep", "give_twice", "lose"])
def test_a_wrong_balance_is_noticed_at_quiescence(wrong: str) -> None:
    instance = Pair("object_pool", {"limit": 4}).instance
    instance.call("take")
    instance.call("take")
    instance.call(wrong, 0)
    with pytest.raises(InvariantViolation, match="OP-1"):
        instance.check()
