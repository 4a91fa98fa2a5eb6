from __future__ import annotations

import pytest

from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.suites.range_cache import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    fail_each_allocation,
    machine_test,
    run_threads,
)

MISS, HIT, LAST, NO_MEMORY = range(4)
OK, EXISTS, MISMATCH = range(3)

BYTES = 24  # counted for a key divisible by five while length_shift is 0
LAST_KEY = 127
AT_ONCE = -1  # dispatch: the copy is released at once

TestMachine = machine_test("range_cache")


@pytest.fixture
def pair() -> Pair:
    return Pair("range_cache", {"caches": 2, "keys": 128})


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("range_cache", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_failed_allocation_changes_nothing(seed: int) -> None:
    assert fail_each_allocation("range_cache", NO_MEMORY, seed=seed, calls=80) > 20


def test_a_put_entry_is_found_until_it_is_removed(pair: Pair) -> None:
    assert pair.call("get", 0, 5).status == MISS
    assert pair.call("put", 0, 5, 0).status == OK
    assert pair.call("get", 0, 5) == (HIT, (1, 0, 2, 0))
    assert pair.call("remove_range", 0, 5, 0).words[2:] == (1, BYTES)
    assert pair.call("get", 0, 5).status == MISS
    pair.instance.check()


def test_caches_may_hold_equal_positions(pair: Pair) -> None:
    pair.call("put", 0, 7, 0)
    pair.call("put", 1, 7, 0)
    assert pair.call("get", 0, 7).words[0] == 1
    assert pair.call("get", 1, 7).words[0] == 2
    pair.call("clear", 0)
    assert pair.call("get", 1, 7).status == HIT
    pair.instance.check()


def test_a_duplicate_changes_nothing_and_leaves_nothing_in_the_queue(pair: Pair) -> None:
    pair.call("put", 0, 5, 0)
    for _ in range(3):
        assert pair.call("put", 0, 5, 2).status == EXISTS
    assert pair.call("get", 0, 5).words[:2] == (1, 2)
    pair.call("put", 0, 10, 0)
    assert pair.call("size", 0).words[0] == 2 * BYTES
    pair.call("clear", 0)
    assert pair.call("sweep", 64).words[0] == 2
    pair.instance.check()


def test_an_entry_is_refused_under_another_position(pair: Pair) -> None:
    assert pair.call("put_foreign", 0, 5).status == MISMATCH
    assert pair.call("size", 0).words[0] == 0
    pair.instance.check()


@pytest.mark.parametrize(
    "first, width", [(0, 0), (0, 63), (3, 4), (60, 8), (64, 63), (127, 0), (100, 63)]
)
def test_both_bounds_of_a_range_are_in_it(pair: Pair, first: int, width: int) -> None:
    for key in range(128):
        pair.call("put", 0, key, 0)
    last = min(first + width, LAST_KEY)
    assert pair.call("read_range", 0, first, width).words[0] == last - first + 1
    width = min(width, 3)
    last = min(first + width, LAST_KEY)
    assert pair.call("remove_range", 0, first, width).words[2] == last - first + 1
    for key in range(128):
        assert pair.call("exists", 0, key).status == (not first <= key <= last)
    pair.instance.check()


def test_the_largest_position_is_an_ordinary_one(pair: Pair) -> None:
    pair.call("put", 0, LAST_KEY, 0)
    pair.call("put", 0, LAST_KEY - 1, 0)
    assert pair.call("get", 0, LAST_KEY).status == HIT
    assert pair.call("read_range", 0, LAST_KEY - 1, 63).words[:2] == (2, 0b11)
    assert pair.call("visit", 0, 0, 0).words[0] == 2
    assert pair.call("remove_range", 0, LAST_KEY, 0).words[2] == 1
    assert pair.call("exists", 0, LAST_KEY - 1).status == 1
    pair.instance.check()


def test_a_range_has_holes_where_nothing_is(pair: Pair) -> None:
    for key in (0, 2, 3, 63):
        pair.call("put", 0, key, 0)
    assert pair.call("read_range", 0, 0, 63) == (0, (4, 1 | 4 | 8 | -(1 << 63), 0, 0))


def test_a_visit_may_clear_the_cache_that_it_walks(pair: Pair) -> None:
    for key in range(0, 128, 2):
        pair.call("put", 0, key, 0)
    seen = pair.call("visit", 0, 0, 10)
    assert seen.words[0] == 10
    assert seen.words[2] == 64
    assert pair.call("size", 0).words[0] == 0
    pair.instance.check()


def test_a_held_entry_outlives_its_removal(pair: Pair) -> None:
    pair.call("put", 0, 5, 0)
    assert pair.call("hold", 0, 5, 3).status == HIT
    pair.call("clear", 0)
    pair.call("put", 0, 5, 0)
    assert pair.call("get", 0, 5).words[0] == 2
    assert pair.call("release", 3) == (LAST, (1, 0, 0, 0))
    pair.instance.check()


def test_each_dispatched_copy_counts_one_read_when_it_is_released(pair: Pair) -> None:
    pair.call("put", 0, 5, 3)
    assert pair.call("dispatch", 0, 5, AT_ONCE) == (HIT, (1, 3, 2, 2))
    assert pair.call("dispatch", 0, 5, 0).words[1] == 2
    assert pair.call("get", 0, 5).words[1] == 2
    pair.call("clear", 0)
    assert pair.call("release", 0) == (LAST, (1, 2, 0, 0))
    pair.instance.check()


@pytest.mark.parametrize("policy, left", [(0, (1, 0, 0)), (1, (1, 0, -1)), (6, (1, 0, 0))])
def test_reads_beyond_those_expected_take_nothing_but_under_released_queue(
    policy: int, left: tuple[int, ...]
) -> None:
    pair = Pair("range_cache", {"policy": policy})
    pair.call("put", 0, 5, 1)
    for expected in left:
        assert pair.call("dispatch", 0, 5, AT_ONCE).words[1] == expected


def test_sums_of_bytes_are_not_cut_to_32_bits() -> None:
    pair = Pair("range_cache", {"keys": 16, "length_shift": 26})
    for key in range(16):
        pair.call("put", 0, key, 0)
    total = pair.call("size", 0).words[0]
    assert total > 2**32
    assert pair.call("clear", 0).words[2:] == (16, total)
    pair.instance.check()


def test_a_value_released_too_often_leaves_no_bytes_behind(pair: Pair) -> None:
    pair.call("put", 0, 5, 0)
    pair.call("over_release", 0, 5)
    assert pair.call("get", 0, 5).status == MISS
    assert pair.call("read_range", 0, 0, 63).words[0] == 0
    assert pair.call("size", 0).words[0] == BYTES
    assert pair.call("clear", 0).words[2:] == (1, BYTES)
    assert pair.call("size", 0).words[0] == 0
    pair.instance.check()


def test_the_check_may_be_repeated_and_the_instance_used_on(pair: Pair) -> None:
    for key in range(0, 128, 3):
        pair.instance.call("put", 0, key, 2)
        pair.instance.call("hold", 0, key, key % 16)
    pair.instance.check()
    pair.instance.check()
    assert pair.instance.call("size", 0).words[0] == 0
    assert pair.instance.call("put", 0, 5, 0).status == OK


def test_a_description_is_of_the_first_entry_from_a_key_on(pair: Pair) -> None:
    assert pair.call("describe", 0, 3).status == MISS
    pair.call("put", 0, 5, 2)
    assert pair.call("describe", 0, 3).words == (5, 24, 1, 2 << 32)
    pair.call("get", 0, 5)
    assert pair.call("describe", 0, 5).words == (5, 24, 1, 2 << 32 | 1)
    assert pair.call("describe", 0, 6).status == MISS


def test_more_caches_than_a_chunk_has_come_and_go(pair: Pair) -> None:
    pair.call("open_close", 20)
    pair.call("put", 0, 5, 0)
    pair.call("open_close", 1)
    assert pair.call("get", 0, 5).status == HIT
    pair.instance.check()


# Negative controls.


@pytest.mark.parametrize(
    "mistake, invariant",
    [("forget", "I15"), ("miscount", "I41"), ("scribble", "I2"), ("over_release", "I3")],
)
def test_a_mistake_is_noticed_at_quiescence(pair: Pair, mistake: str, invariant: str) -> None:
    pair.instance.call("put", 0, 5, 0)
    pair.instance.call(mistake, 0, 5)
    with pytest.raises(InvariantViolation, match=invariant + ":"):
        pair.instance.check()


def test_a_changed_payload_is_noticed_by_the_next_read(pair: Pair) -> None:
    pair.instance.call("put", 0, 5, 0)
    pair.instance.call("scribble", 0, 5)
    with pytest.raises(InvariantViolation, match="I2:"):
        pair.instance.call("get", 0, 5)


def test_a_held_entry_released_by_somebody_else_is_noticed(pair: Pair) -> None:
    pair.instance.call("put", 0, 5, 0)
    pair.instance.call("hold", 0, 5, 0)
    pair.instance.call("over_release", 0, 5)
    pair.instance.call("clear", 0)
    with pytest.raises(InvariantViolation, match="I3:"):
        pair.instance.call("release", 0)
