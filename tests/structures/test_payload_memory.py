from __future__ import annotations

import pytest

from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.suites.payload_memory import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    fail_each_allocation,
    machine_test,
    run_threads,
)

DONE, NO_MEMORY, NOT_HELD, HANDS_FULL = range(4)
MOST_HELD = 8

TestMachine = machine_test("payload_memory")


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("payload_memory", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


@pytest.mark.parametrize("seed", [1, 2])
def test_each_failed_allocation_changes_nothing(seed: int) -> None:
    assert fail_each_allocation("payload_memory", NO_MEMORY, seed=seed) >= 3


@pytest.mark.parametrize("most", [0, 100, 1000])
def test_blocks_of_all_sizes_have_their_room_again_and_again(most: int) -> None:
    pair = Pair("payload_memory", {"most": most})
    for size in [*range(16, 81), *range(16, 81)]:
        pair.call("take", size)
        pair.call("take_large", 4064 + size % 49)
        pair.call("read", 0)
        pair.call("give", 1)
        pair.call("give", 0)
    pair.instance.check()


def test_a_chain_of_several_sizes_is_given_back_whole() -> None:
    pair = Pair("payload_memory", {"most": 10_000})
    for size in (16, 80, 80, 17):
        pair.call("take", size)
    pair.call("take_large", 4100)
    pair.call("give_chain", 4)
    assert pair.call("give", 0).words[0] == 0
    assert pair.call("give", 0).status == NOT_HELD
    pair.instance.check()


def test_a_thread_holds_so_many_blocks() -> None:
    pair = Pair("payload_memory", {"most": 100})
    assert [pair.call("take", 16).status for _ in range(MOST_HELD + 1)] == [DONE] * MOST_HELD + [
        HANDS_FULL
    ]


@pytest.mark.parametrize("blocks", range(7))
def test_blocks_given_back_beyond_the_most_leave_no_more_than_that(blocks: int) -> None:
    pair = Pair("payload_memory", {"most": 100})
    for size in (16, 80, 40, 64, 16, 30):
        pair.call("take", size)
    for _ in range(blocks):
        pair.call("give", 0)
    pair.instance.check()


# Negative controls.


def test_a_block_that_is_kept_while_it_is_held_is_noticed() -> None:
    instance = Pair("payload_memory", {"most": 100}).instance
    instance.call("take", 16)
    instance.call("give_and_keep", 0)
    with pytest.raises(InvariantViolation, match="BM-1"):
        instance.check()


def test_a_block_that_another_thread_wrote_is_noticed_by_its_holder() -> None:
    instance = Pair("payload_memory", {"most": 100}).instance
    instance.call("take", 16)
    instance.call("give", 0)
    instance.call("take", 16, thread=1)
    instance.call("write_given")
    with pytest.raises(InvariantViolation, match="BM-1"):
        instance.call("read", 0, thread=1)


def test_a_block_that_two_threads_hold_is_noticed_by_the_first() -> None:
    instance = Pair("payload_memory", {"most": 100}).instance
    instance.call("take", 16)
    instance.call("give_and_keep", 0)
    instance.call("take", 16, thread=1)
    with pytest.raises(InvariantViolation, match="BM-1"):
        instance.call("read", 0)
