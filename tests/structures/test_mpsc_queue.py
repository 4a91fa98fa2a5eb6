from __future__ import annotations

import pytest

from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.suites.mpsc_queue import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    fail_each_allocation,
    machine_test,
    run_threads,
)

DONE, EMPTY, BEHIND, NO_MEMORY = range(4)

TestMachine = machine_test("mpsc_queue")


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("mpsc_queue", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


@pytest.mark.parametrize("seed", [1, 2])
def test_each_failed_allocation_changes_nothing(seed: int) -> None:
    assert fail_each_allocation("mpsc_queue", NO_MEMORY, seed=seed) >= 3


@pytest.mark.parametrize("chunk_bits", [1, 2, 3, 4])
def test_order_is_kept_over_many_chunks(chunk_bits: int) -> None:
    pair = Pair("mpsc_queue", {"chunk_bits": chunk_bits})
    for number in range(40):
        pair.call("offer", thread=number % 3)
    for _ in range(40):
        pair.call("poll")
    assert pair.call("poll").status == EMPTY
    assert pair.call("size").words[0] == 0


@pytest.mark.parametrize("chunk_bits", [1, 2])
def test_a_chunk_that_was_emptied_serves_again(chunk_bits: int) -> None:
    pair = Pair("mpsc_queue", {"chunk_bits": chunk_bits})
    for _ in range(50):
        pair.call("offer")
        pair.call("poll_known")
        pair.call("poll")


def test_handles_that_were_never_polled_go_with_the_queue() -> None:
    pair = Pair("mpsc_queue", {"chunk_bits": 1})
    for _ in range(10):
        pair.call("offer_after")
    assert pair.call("size").words[0] == 10


# Negative controls.


def test_a_handle_polled_twice_is_noticed() -> None:
    instance = Pair("mpsc_queue", {}).instance
    instance.call("offer_twice")
    instance.call("poll")
    with pytest.raises(InvariantViolation, match="MQ-1"):
        instance.call("poll")


def test_a_lost_handle_is_noticed_by_the_gap() -> None:
    instance = Pair("mpsc_queue", {}).instance
    instance.call("offer_lost")
    instance.call("offer")
    with pytest.raises(InvariantViolation, match="its next one is 1"):
        instance.call("poll")


def test_a_lost_handle_is_noticed_by_a_consumer_that_knows_of_it() -> None:
    instance = Pair("mpsc_queue", {}).instance
    instance.call("offer_lost")
    assert instance.call("poll").status == EMPTY
    with pytest.raises(InvariantViolation, match="finished offers"):
        instance.call("poll_known")


def test_a_handle_polled_before_an_older_one_is_noticed() -> None:
    instance = Pair("mpsc_queue", {}).instance
    instance.call("offer_lost")
    instance.call("offer_after", thread=1)
    with pytest.raises(InvariantViolation, match="were polled before it"):
        instance.call("poll")


def test_a_handle_polled_without_its_note_is_noticed() -> None:
    instance = Pair("mpsc_queue", {}).instance
    instance.call("offer_unwritten")
    with pytest.raises(InvariantViolation, match="note"):
        instance.call("poll")


@pytest.mark.parametrize("wrong", ["offer_twice", "offer_lost"])
def test_a_wrong_number_of_handles_is_noticed_at_quiescence(wrong: str) -> None:
    instance = Pair("mpsc_queue", {}).instance
    instance.call("offer")
    instance.call(wrong)
    with pytest.raises(InvariantViolation, match="MQ-1"):
        instance.check()
