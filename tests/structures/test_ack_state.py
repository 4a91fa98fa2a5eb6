from __future__ import annotations

import pytest
from pulsar_ml.harness.subject import InvariantViolation

from stress.ack_state import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    fail_each_allocation,
    machine_test,
    run_threads,
)

NEW, KNOWN, INVALID, NO_MEMORY = range(4)

TestMachine = machine_test("ack_state")


def started(**settings: int) -> Pair:
    given = {"by_bytes": 0, "max_ranges": 1, "max_batches": 1, "max_store_ranges": 1, **settings}
    return Pair("ack_state", given)


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("ack_state", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


@pytest.mark.parametrize("seed", [1, 2])
def test_each_failed_allocation_changes_nothing(seed: int) -> None:
    assert fail_each_allocation("ack_state", NO_MEMORY, seed=seed) >= 20


def test_ranges_merge_with_their_neighbours_and_the_mark_passes_them() -> None:
    pair = started()
    for entry, ranges in ((1, 1), (3, 2), (2, 1)):
        assert pair.call("ack_entry", 0, entry).words[1] == 64 * ranges
    mark, counts, *_ = pair.call("ack_entry", 0, 0).words
    assert (mark, counts) == (16 + 4, 0)


def test_ranges_of_two_ledgers_merge_when_the_end_of_the_first_is_known() -> None:
    pair = started()
    pair.call("ack_entry", 0, 5)
    assert pair.call("ack_entry", 1, 0).words[1] == 2 * 64
    assert pair.call("end_ledger", 0).words[1] == 64
    assert pair.call("end_ledger", 0).status == KNOWN


def test_the_last_index_of_a_batch_acknowledges_the_entry() -> None:
    pair = started()
    assert pair.call("ack_index", 0, 1, 0).words[1] == 1
    assert pair.call("ack_index", 0, 1, 0).status == KNOWN
    pair.call("ack_index", 0, 1, 1)
    assert pair.call("ack_index", 0, 1, 2).words[1] == 64


def test_as_many_ranges_and_batches_as_the_limits_allow_fit() -> None:
    pair = started()
    pair.call("ack_entry", 0, 1)
    pair.call("ack_index", 0, 3, 0)
    assert pair.call("dispatch", 0).words[3] == 1
    pair.call("ack_index", 0, 5, 0)
    assert pair.call("dispatch", 0).words[3] == 0


def test_as_many_bytes_as_the_limit_fit() -> None:
    pair = started(by_bytes=1, max_bytes=64, max_ranges=0)
    pair.call("ack_entry", 0, 1)
    pair.call("set_metadata", 32)
    assert pair.call("dispatch", 0).words[3] == 1
    pair.call("set_metadata", 33)
    assert pair.call("dispatch", 0).words[3] == 0


def test_batches_above_their_limit_pause_though_no_range_is_there() -> None:
    pair = started(max_ranges=4)
    pair.call("ack_index", 0, 1, 0)
    pair.call("ack_index", 0, 2, 0)
    assert pair.call("dispatch", 0).words[3] == 0


def test_a_paused_dispatcher_is_told_once_when_the_state_fits() -> None:
    pair = started(max_ranges=0)
    pair.call("ack_entry", 0, 1)
    assert pair.call("dispatch", 0).words[3] == 0
    # What closes the gap may be read.
    assert pair.call("dispatch", 1).words[3] == 1
    assert pair.call("ack_entry", 0, 0, thread=1).words[3] == 1
    assert pair.call("ack_entry", 0, 2, thread=1).words[3] == 0
    assert pair.call("dispatch", 0).words[3] == 1


def test_switching_pauses_off_lets_the_dispatcher_go_on() -> None:
    pair = started(max_ranges=0)
    pair.call("ack_entry", 0, 1)
    pair.call("dispatch", 0)
    assert pair.call("set_pauses", 0).words[3] == 1


def test_the_highest_ranges_are_left_out_and_counted() -> None:
    pair = started(max_ranges=2)
    for entry in (1, 3, 5):
        pair.call("ack_entry", 0, entry)
    _, _, counts, restored = pair.call("store", 0).words
    assert counts == 2 + 64
    assert restored == 0b111_000_111_000
    assert pair.call("store", 1).words[2] == 1 + 2 * 64


# Negative controls.


def test_an_acknowledgement_that_nobody_made_is_noticed() -> None:
    pair = started()
    pair.instance.call("ack_unasked", 0, 1)
    with pytest.raises(InvariantViolation, match="AR-3"):
        pair.instance.call("is_acked", 0, 1, 0)
    with pytest.raises(InvariantViolation, match="AC-2"):
        pair.instance.call("store", 0)


def test_an_acknowledgement_that_is_lost_is_noticed() -> None:
    pair = started()
    pair.instance.call("pretend", 0, 1)
    with pytest.raises(InvariantViolation, match="AR-3"):
        pair.instance.call("is_acked", 0, 1, 0)
    with pytest.raises(InvariantViolation, match="AC-2"):
        pair.instance.call("store", 0)


def test_a_dispatcher_that_stays_paused_is_noticed_at_quiescence() -> None:
    pair = started(max_ranges=0)
    pair.call("ack_entry", 0, 1)
    pair.call("dispatch", 0)
    pair.instance.call("open_silently")
    with pytest.raises(InvariantViolation, match="I99"):
        pair.instance.check()


def test_a_wrong_verdict_about_what_fits_is_noticed() -> None:
    pair = started()
    with pytest.raises(InvariantViolation, match="AS-1"):
        pair.instance.call("misjudge")
