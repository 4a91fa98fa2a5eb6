from __future__ import annotations

import pytest

from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.suites.position_map import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    fail_each_allocation,
    machine_test,
    run_threads,
)

DONE, EXISTS, ABSENT, NO_MEMORY = range(4)

TestMachine = machine_test("position_map")


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("position_map", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


@pytest.mark.parametrize("seed", [1, 2])
def test_each_failed_allocation_changes_nothing(seed: int) -> None:
    assert fail_each_allocation("position_map", NO_MEMORY, seed=seed) >= 8


FIRST, LAST = 0, 107  # keys of the positions (0, 0) and (2**63 - 1, 2**63 - 1)


@pytest.mark.parametrize("key", [FIRST, LAST])
def test_the_outermost_positions_are_positions(key: int) -> None:
    pair = Pair("position_map", {"limit": 8, "spread": 5})
    assert pair.call("put", key, 0).status == DONE
    assert pair.call("put", key, 0, thread=1).status == EXISTS
    assert pair.call("find", key, 0).words[0] == 1
    assert pair.call("iterate", key, key, 0).words[0] == 1
    assert pair.call("iterate_all", 0).words[0] == 1
    assert pair.call("remove", key, 0).status == DONE
    assert pair.call("find", key, 0).status == ABSENT


def test_an_iteration_over_everything_sees_everything_once() -> None:
    pair = Pair("position_map", {"limit": 256, "spread": 5})
    for key in range(108):
        pair.call("put", key, 0)
    assert pair.call("iterate_all", 0).words[0] == 108
    assert pair.call("iterate_all", 1).words[0] == 0
    assert pair.call("iterate", LAST, FIRST, 0).words[0] == 0


def test_maps_that_share_pages_share_nothing_else() -> None:
    pair = Pair("position_map", {"limit": 8, "spread": 5})
    pair.call("put", 5, 0)
    assert pair.call("find", 5, 1).status == ABSENT
    pair.call("remove", 5, 0)
    assert pair.call("put", 5, 1).status == DONE


def test_an_empty_page_serves_another_range() -> None:
    pair = Pair("position_map", {"limit": 2, "spread": 5})
    for key in range(27):
        assert pair.call("put", key, 0).status == DONE
        assert pair.call("put", (key + 1) % 27, 1).status == NO_MEMORY
        assert pair.call("remove", key, 0).status == DONE


def test_a_handle_that_was_never_put_is_not_removed() -> None:
    pair = Pair("position_map", {"limit": 8, "spread": 5})
    pair.call("put", 5, 0)
    pair.call("remove_foreign", 5, 0)
    assert pair.call("find", 5, 0).status == DONE


# Negative controls.


def test_two_winners_of_one_position_are_noticed() -> None:
    instance = Pair("position_map", {"limit": 8, "spread": 5}).instance
    instance.call("put", 5, 0)
    with pytest.raises(InvariantViolation, match="I35"):
        instance.call("put_without_winner", 5, 0, thread=1)


@pytest.mark.parametrize(
    ("operation", "arguments", "invariant"),
    [
        ("find_own", (5, 0), "I7"),
        ("put_own", (5, 0), "I35"),
        ("remove_own", (5, 0), "I36"),
        ("iterate_all", (0,), "I7"),
    ],
)
def test_a_handle_that_is_gone_is_noticed_by_its_owner(
    operation: str, arguments: tuple[int, ...], invariant: str
) -> None:
    instance = Pair("position_map", {"limit": 8, "spread": 5}).instance
    instance.call("put_own", 5, 0)
    instance.call("remove_own_unrecorded", 5, 0)
    with pytest.raises(InvariantViolation, match=invariant):
        instance.call(operation, *arguments)


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [("find_own", (5, 0)), ("remove_own", (5, 0)), ("iterate_all", (0,))],
)
def test_a_handle_that_should_be_gone_is_noticed_by_its_owner(
    operation: str, arguments: tuple[int, ...]
) -> None:
    instance = Pair("position_map", {"limit": 8, "spread": 5}).instance
    instance.call("put_own_unrecorded", 5, 0)
    with pytest.raises(InvariantViolation, match="I8"):
        instance.call(operation, *arguments)


def test_a_handle_that_is_gone_is_noticed_at_quiescence() -> None:
    instance = Pair("position_map", {"limit": 8, "spread": 5}).instance
    instance.call("put_own", 5, 0)
    instance.call("remove_own_unrecorded", 5, 0)
    with pytest.raises(InvariantViolation, match="I7"):
        instance.check()


def test_a_handle_that_should_be_gone_is_noticed_at_quiescence() -> None:
    instance = Pair("position_map", {"limit": 8, "spread": 5}).instance
    instance.call("put_own_unrecorded", 5, 0)
    with pytest.raises(InvariantViolation, match="I8"):
        instance.check()


def test_a_page_that_is_left_is_noticed_at_quiescence() -> None:
    instance = Pair("position_map", {"limit": 8, "spread": 5}).instance
    instance.call("leak_page")
    with pytest.raises(InvariantViolation, match="I39"):
        instance.check()


def test_an_iteration_beyond_its_bounds_is_noticed() -> None:
    instance = Pair("position_map", {"limit": 8, "spread": 5}).instance
    instance.call("put", LAST, 0)
    with pytest.raises(InvariantViolation, match="I5"):
        instance.call("iterate_beyond", FIRST, FIRST, 0)


def test_an_iteration_that_goes_back_is_noticed() -> None:
    instance = Pair("position_map", {"limit": 8, "spread": 5}).instance
    instance.call("put", 5, 0)
    with pytest.raises(InvariantViolation, match="I38"):
        instance.call("iterate_twice", 0)
