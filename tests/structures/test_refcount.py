from __future__ import annotations

import pytest

from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.suites.refcount import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    machine_test,
    run_threads,
)

DONE, REFUSED, NOT_HELD, LAST = range(4)

TestMachine = machine_test("refcount")


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("refcount", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


def test_retain_of_a_count_at_zero_is_refused() -> None:
    pair = Pair("refcount", {})
    assert pair.call("retain", 0).status == REFUSED
    pair.call("publish", 0)
    assert pair.call("release", 0, 1).status == LAST
    assert pair.call("retain", 0).status == REFUSED


def test_one_release_may_give_back_several_references() -> None:
    pair = Pair("refcount", {})
    pair.call("publish", 0)
    pair.call("retain", 0)
    pair.call("retain", 0, thread=1)
    assert pair.call("release", 0, 3) == (DONE, (0, 0, 0, 0))
    assert pair.call("release", 0, 1, thread=1).status == LAST


def test_a_release_of_more_than_there_are_changes_nothing() -> None:
    pair = Pair("refcount", {})
    pair.call("release_too_often", 0)
    pair.call("publish", 0)
    pair.call("release_too_often", 0)
    assert pair.call("read", 0) == (DONE, (1, 1, 0, 0))


def test_a_full_count_is_not_retained() -> None:
    assert Pair("refcount", {}).call("retain_full").status == REFUSED


def test_a_new_incarnation_follows_the_last_release() -> None:
    pair = Pair("refcount", {})
    assert pair.call("publish", 0).words[0] == 1
    assert pair.call("publish", 0, thread=1).status == REFUSED
    pair.call("release", 0, 1)
    assert pair.call("publish", 0, thread=1).words[0] == 2


def test_the_check_may_be_repeated_and_the_instance_used_on() -> None:
    pair = Pair("refcount", {"objects": 4})
    for which in range(4):
        pair.instance.call("publish", which)
    pair.instance.check()
    pair.instance.check()
    assert pair.instance.call("publish", 0).words[0] == 2


# Negative controls.


def test_a_retain_that_adds_to_zero_is_noticed() -> None:
    instance = Pair("refcount", {}).instance
    instance.call("publish", 0)
    instance.call("release", 0, 1)
    with pytest.raises(InvariantViolation, match="I12"):
        instance.call("retain_fetch_add", 0)


def test_a_forgotten_release_is_noticed_at_quiescence() -> None:
    instance = Pair("refcount", {}).instance
    instance.call("publish", 0)
    instance.call("retain", 0)
    instance.call("release_forgotten", 0)
    with pytest.raises(InvariantViolation, match="I17"):
        instance.check()


def test_two_last_releases_of_one_incarnation_are_noticed() -> None:
    instance = Pair("refcount", {}).instance
    instance.call("publish", 0)
    with pytest.raises(InvariantViolation, match="I14"):
        instance.call("release_last_twice", 0)


def test_a_count_below_the_references_of_a_holder_is_noticed() -> None:
    instance = Pair("refcount", {}).instance
    instance.call("publish", 0)
    instance.call("retain", 0)
    instance.call("release_and_keep", 0)
    with pytest.raises(InvariantViolation, match="I13"):
        instance.call("read", 0)
    with pytest.raises(InvariantViolation, match="I13"):
        instance.call("release", 0, 2)
