from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.specs.receive_buffer import SIZES, Guess
from pulsar_ml.suites.receive_buffer import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    fail_each_allocation,
    machine_test,
    run_threads,
)

DONE, NO_MEMORY, NOT_HELD, HANDS_FULL, LAST, TAKEN, EMPTY, NO_ROOM = range(8)

TestMachine = machine_test("receive_buffer")


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("receive_buffer", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


@pytest.mark.parametrize("seed", [1, 2])
def test_each_failed_allocation_changes_nothing(seed: int) -> None:
    assert fail_each_allocation("receive_buffer", NO_MEMORY, seed=seed) >= 6


def pair_with_buffer(capacity: int = 100) -> Pair:
    pair = Pair("receive_buffer", {"limit": 16})
    pair.call("receive", capacity)
    return pair


def test_a_slice_keeps_its_bytes_after_the_receiver_went_on() -> None:
    pair = pair_with_buffer()
    pair.call("cut", 60)
    pair.call("receive", 100)
    pair.call("cut", 60)
    assert pair.call("read", 0).words[1] == 1
    pair.instance.check()


def test_one_cached_slice_pins_the_whole_buffer_and_a_copy_its_own_bytes() -> None:
    pair = pair_with_buffer()
    pair.call("cut", 5)
    pair.call("copy_bytes", 0)
    assert [pair.call("read", which).words[1] for which in (0, 1)] == [1, 0]
    pair.call("cache", 0, 0)
    pair.call("cache", 0, 1)
    pair.instance.check()


def test_a_buffer_without_room_takes_no_bytes() -> None:
    pair = Pair("receive_buffer", {"limit": 16})
    assert pair.call("cut", 60).status == DONE
    assert pair.call("cut", 5).status == NO_ROOM
    pair.call("receive", 10)
    assert pair.call("cut", 11).status == NO_ROOM
    assert pair.call("cut", 10).status == DONE
    assert pair.call("cut", 1).status == NO_ROOM
    assert pair.call("cut", 0).status == DONE


def test_a_taken_slot_refuses_and_an_empty_one_gives_nothing() -> None:
    pair = pair_with_buffer()
    pair.call("cut", 5)
    pair.call("cut", 6)
    assert pair.call("cache", 0, 2).status == DONE
    assert pair.call("cache", 0, 2).status == TAKEN
    assert pair.call("uncache", 3, thread=1).status == EMPTY
    assert pair.call("uncache", 2, thread=1).status == DONE
    pair.instance.check()


# The size of the next buffer.


def test_a_full_read_raises_the_size_by_four_and_two_small_ones_lower_it_by_one() -> None:
    pair = Pair("receive_buffer", {"limit": 4, "least": 16, "first_above": 3, "most_above": 12})
    assert pair.call("guess", 4, 0).words[1] == 128
    assert pair.call("guess", 0, 1).words[1] == 128
    assert pair.call("guess", 0, 1).words[1] == 112
    assert pair.call("guess", 7, 0).words[1] == 176
    assert pair.call("guess", 18, 0).words[1] == 240
    assert pair.call("guess", 18, 0).words[1] == 256
    assert pair.call("guess", 18, 0).words[1] == 256


def test_a_read_of_the_lowest_size_is_a_small_one() -> None:
    pair = Pair("receive_buffer", {"limit": 4, "least": 16, "first_above": 1, "most_above": 12})
    assert pair.call("guess", 1, 0).words[1] == 32
    assert pair.call("guess", 1, 0).words[1] == 16
    assert pair.call("guess", 1, 0).words[1] == 16
    assert pair.call("guess", 1, 1).words[1] == 80


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    bounds=st.lists(st.integers(1, 2**30), min_size=3, max_size=3).map(sorted),
    reads=st.lists(st.integers(0, 2**30), max_size=30),
)
def test_a_size_stays_inside_its_bounds(bounds: list[int], reads: list[int]) -> None:
    guess = Guess(*bounds)
    for read in reads:
        guess.record(read)
        assert bounds[0] <= guess.next() <= bounds[2]
    assert guess.size in SIZES


# Negative controls.


def test_a_byte_written_into_a_slice_is_noticed() -> None:
    instance = pair_with_buffer().instance
    instance.call("cut", 8)
    instance.call("copy", 0)
    instance.call("write", 0)
    with pytest.raises(InvariantViolation, match="I2"):
        instance.call("read", 1)


def test_a_pin_that_was_not_taken_off_is_noticed_at_quiescence() -> None:
    instance = pair_with_buffer().instance
    instance.call("cut", 8)
    instance.call("pin", 0)
    with pytest.raises(InvariantViolation, match="RB-2"):
        instance.check()


def test_a_pin_that_was_taken_off_too_often_is_noticed_at_quiescence() -> None:
    instance = pair_with_buffer().instance
    instance.call("cut", 8)
    instance.call("cut", 8)
    instance.call("cache", 0, 0)
    instance.call("unpin", 0)
    with pytest.raises(InvariantViolation, match="RB-"):
        instance.check()


def test_a_lost_entry_and_a_lost_buffer_are_noticed_at_quiescence() -> None:
    instance = pair_with_buffer().instance
    instance.call("cut", 8)
    instance.call("lose", 0)
    with pytest.raises(InvariantViolation, match="I17"):
        instance.check()
    instance = pair_with_buffer().instance
    instance.call("lose_buffer")
    with pytest.raises(InvariantViolation, match="I17"):
        instance.check()
