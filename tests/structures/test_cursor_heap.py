from __future__ import annotations

from functools import partial

import pytest

from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.suites.cursor_heap import SUITE
from tests.structures.cursors import (
    DONE,
    DURABLE,
    FIRST,
    NOT_DURABLE,
    REFUSED,
    UNKNOWN,
    UNTRACKED,
    with_cursors,
)
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    compare_program,
    fail_each_allocation,
    machine_test,
    run_threads,
)

TestMachine = machine_test("cursor_heap")


started = partial(with_cursors, "cursor_heap")


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("cursor_heap", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


def test_a_failed_allocation_changes_nothing() -> None:
    assert fail_each_allocation("cursor_heap", REFUSED) > 4


def test_a_removal_sifts_in_either_direction() -> None:
    """The smallest trace after which the original answers 7."""
    values = (14, 6, 19, 12, 7, 5, 4)
    pair = started(*values)
    for value, slowest in ((14, 4), (4, 5), (5, 6)):
        pair.call("remove", FIRST + values.index(value))
        pair.call("inspect")
        assert pair.call("slowest").words[0] == slowest
    pair.instance.check()


def test_a_cursor_that_fills_a_gap_in_another_branch_goes_up() -> None:
    # Places 1 to 4 are below the first, 5 to 8 below the second, 9 to 12 below the third: the
    # cursor at 3 fills the gap in place 5, whose upper neighbour is at 10.
    values = (1, 10, 2, 20, 30, 11, 12, 13, 14, 3)
    pair = started(*values)
    pair.call("remove", FIRST + values.index(11))
    pair.call("inspect")
    pair.call("remove", FIRST + values.index(1))
    pair.call("remove", FIRST + values.index(2))
    assert pair.call("slowest").words[0] == 3
    pair.instance.check()


def test_an_update_answers_the_slowest_position_before_and_after() -> None:
    """Then the data version it made and which registration it was about."""
    pair = started(5, 9)
    assert pair.call("update", FIRST, 7) == (DONE, (5, 7, 3, 1))
    assert pair.call("update", FIRST, 20) == (DONE, (7, 9, 4, 1))
    assert pair.call("update", FIRST + 1, UNTRACKED) == (DONE, (9, 20, 5, 2))
    assert pair.call("update", FIRST, UNTRACKED) == (DONE, (20, UNTRACKED, 6, 1))
    pair.instance.check()


def test_an_update_of_a_cursor_that_is_unknown_or_not_tracked_changes_nothing() -> None:
    pair = started(5, UNTRACKED)
    assert pair.call("update", FIRST + 1, 1).status == UNKNOWN
    assert pair.call("update", FIRST + 2, 1).status == UNKNOWN
    assert pair.call("version").words[0] == 2
    assert pair.call("slowest").words[0] == 5
    pair.instance.check()


def test_adding_a_name_again_leaves_no_orphan() -> None:
    pair = started(5, 9)
    pair.call("add", FIRST, 12, DURABLE)
    assert pair.call("slowest").words[0] == 9
    assert pair.call("size").words[:2] == (2, 1)
    pair.call("add", FIRST, UNTRACKED, NOT_DURABLE)
    pair.call("remove", FIRST + 1)
    assert pair.call("slowest").words[0] == UNTRACKED
    pair.call("add", FIRST, 3, NOT_DURABLE)
    assert pair.call("slowest").words[0] == 3
    pair.instance.check()


def test_an_empty_heap_has_no_slowest_position() -> None:
    pair = started()
    assert pair.call("slowest").words[0] == UNTRACKED
    pair.call("add", FIRST, 0, NOT_DURABLE)
    pair.call("remove", FIRST)
    assert pair.call("slowest").words[0] == UNTRACKED
    pair.instance.check()


# Negative controls.


@pytest.mark.parametrize(
    "mistake, invariant",
    [("forget", "I79"), ("swap", "I81"), ("misindex", "I81"), ("unpublish", "I80")],
)
def test_a_mistake_is_noticed_at_once_and_at_quiescence(mistake: str, invariant: str) -> None:
    pair = started(1, 2, 3)
    pair.instance.call(mistake, *([FIRST] if mistake == "forget" else []))
    if mistake != "forget":
        with pytest.raises(InvariantViolation, match=invariant):
            pair.instance.call("inspect")
    with pytest.raises(InvariantViolation, match=invariant):
        pair.instance.check()


def test_a_wrong_slowest_position_is_noticed_by_the_thread_whose_cursor_is_there() -> None:
    pair = started(3)
    pair.call("add", 0, 1, NOT_DURABLE)
    pair.instance.call("swap")
    pair.instance.call("unpublish")
    with pytest.raises(InvariantViolation, match="I80"):
        pair.instance.call("slowest")
