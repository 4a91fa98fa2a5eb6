from __future__ import annotations

import pytest

from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.suites.read_count import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    fail_each_allocation,
    machine_test,
    run_threads,
)

DONE, EXHAUSTED, NOT_HELD, HANDS_FULL = range(4)

TestMachine = machine_test("read_count")


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("read_count", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


@pytest.mark.parametrize("seed", [1, 2])
def test_each_failed_allocation_changes_nothing(seed: int) -> None:
    assert fail_each_allocation("read_count", EXHAUSTED, seed=seed) >= 3


def test_a_read_that_was_not_expected_takes_nothing() -> None:
    pair = Pair("read_count", {"limit": 4, "below_zero": 0})
    pair.call("new", 1)
    assert [pair.call("mark_read", 0).words[1] for _ in range(3)] == [1, 0, 0]
    assert pair.call("value", 0).words[1] == 0
    pair.call("increment", 0)
    assert pair.call("value", 0).words[1] == 1
    pair.instance.check()


def test_under_the_rule_of_4_2_4_a_count_goes_below_zero() -> None:
    pair = Pair("read_count", {"limit": 4, "below_zero": 1})
    pair.call("new", 1)
    for _ in range(3):
        pair.call("mark_read", 0)
    assert pair.call("value", 0).words[1] == -2
    pair.call("increment", 0)
    assert pair.call("value", 0).words[1] == -1


def test_a_count_at_its_limit_does_not_rise() -> None:
    pair = Pair("read_count", {"limit": 4, "near_limit": 1})
    pair.call("new", 1)
    for _ in range(3):
        pair.call("increment", 0)
    assert pair.call("value", 0).words[1] == 2**31 - 1
    pair.call("mark_read", 0)
    assert pair.call("value", 0).words[1] == 2**31 - 2
    pair.instance.check()


def test_a_count_lives_until_its_last_reference_goes() -> None:
    pair = Pair("read_count", {"limit": 2})
    pair.call("new", 2)
    pair.call("retain", 0)
    pair.call("pass_on", 0)
    pair.call("pass_on", 0, thread=1)
    pair.call("release", 0)
    assert pair.call("value", 0, thread=1).words[1] == 2
    assert pair.call("new", 1).status == EXHAUSTED
    pair.call("release", 0, thread=1)
    assert pair.call("new", 1).status == DONE


# Negative controls.


def test_a_count_reused_under_its_holder_is_noticed() -> None:
    instance = Pair("read_count", {"limit": 2}).instance
    instance.call("new", 1)
    instance.call("release_and_keep", 0)
    instance.call("new", 2, thread=1)
    with pytest.raises(InvariantViolation, match="I70"):
        instance.call("value", 0)


def test_a_count_without_references_is_noticed_by_its_holder() -> None:
    instance = Pair("read_count", {"limit": 2}).instance
    instance.call("new", 1)
    instance.call("release_and_keep", 0)
    with pytest.raises(InvariantViolation, match="I70"):
        instance.call("value", 0)


def test_a_reference_too_few_is_noticed_at_quiescence() -> None:
    instance = Pair("read_count", {"limit": 2}).instance
    instance.call("new", 1)
    instance.call("retain", 0)
    instance.call("release_and_keep", 0)
    with pytest.raises(InvariantViolation, match="I17"):
        instance.check()


def test_an_unexplained_mark_is_noticed_at_quiescence() -> None:
    instance = Pair("read_count", {"limit": 2}).instance
    instance.call("new", 1)
    instance.call("mark_read_unseen", 0)
    with pytest.raises(InvariantViolation, match="I67"):
        instance.check()


def test_a_lost_count_is_noticed_at_quiescence() -> None:
    instance = Pair("read_count", {"limit": 2}).instance
    instance.call("new", 1)
    instance.call("lose", 0)
    with pytest.raises(InvariantViolation, match="OP-1"):
        instance.check()
