from __future__ import annotations

from functools import partial

import pytest

from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.suites.active_cursors import SUITE
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
    Pair,
    compare_program,
    fail_each_allocation,
    machine_test,
    run_threads,
)

TestMachine = machine_test("active_cursors")


started = partial(with_cursors, "active_cursors")


def ranks(pair: Pair, cursors: int) -> list[int]:
    return [pair.call("rank", FIRST + number).words[0] for number in range(cursors)]


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("active_cursors", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


def test_a_failed_allocation_changes_nothing() -> None:
    assert fail_each_allocation("active_cursors", REFUSED) > 4


# Ranks -------------------------------------------------------------------------------------------


def test_a_rank_counts_the_cursor_itself_and_all_at_its_position_or_before() -> None:
    pair = started(5, 9, 5, 2)
    assert ranks(pair, 4) == [3, 4, 3, 1]
    pair.instance.check()


def test_a_cursor_without_position_is_registered_and_counts_nowhere() -> None:
    pair = started(5, UNTRACKED)
    assert ranks(pair, 2) == [1, 0]
    assert pair.call("size").words[0] == 2
    pair.call("update", FIRST + 1, 3)
    assert ranks(pair, 2) == [2, 1]
    pair.instance.check()


@pytest.mark.parametrize(
    "values, moved, target, expected",
    [
        ((1, 1), 1, 2, [1, 2]),
        ((1, 2), 1, 1, [2, 2]),
        ((1, 1, 1, 1), 3, 2, [3, 3, 3, 4]),
        ((1, 1, 1, 2), 3, 1, [4, 4, 4, 4]),
        ((1, 2, 2), 2, 3, [1, 2, 3]),
        ((3, 3), 0, 1, [1, 2]),
        ((1, 3), 1, 2, [1, 2]),
        ((1, 5, 9), 2, 5, [1, 3, 3]),
        ((1, 5, 9), 0, 9, [3, 1, 3]),
    ],
)
def test_a_move_of_the_tail_keeps_the_ranks_of_the_groups_it_leaves_and_joins(
    values: tuple[int, ...], moved: int, target: int, expected: list[int]
) -> None:
    """The case that the original miscounts: its walk returns early at the tail."""
    pair = started(*values)
    ranks(pair, len(values))  # applies the additions, so that the move is a walk
    pair.call("update", FIRST + moved, target)
    assert ranks(pair, len(values)) == expected
    pair.instance.check()


@pytest.mark.parametrize("queried", [False, True])
def test_null_updates_may_follow_each_other(queried: bool) -> None:
    pair = started(1, 4, 4)
    for value in (UNTRACKED, UNTRACKED, 7, UNTRACKED, 2):
        pair.call("update", FIRST + 1, value)
        if queried:
            assert ranks(pair, 3)[1] == (0 if value == UNTRACKED else 3 if value == 7 else 2)
        pair.call("inspect")
    assert ranks(pair, 3) == [1, 2, 3]
    pair.instance.check()


def test_an_update_of_a_cursor_that_is_pending_replaces_the_pending_one() -> None:
    pair = started(5, 6, 7)
    for value in (9, 1, 6):
        pair.call("update", FIRST, value)
        pair.call("inspect")
    assert ranks(pair, 3) == [2, 2, 3]
    pair.instance.check()


def test_adding_a_name_again_replaces_position_and_durability() -> None:
    pair = started(5, 6)
    pair.call("add", FIRST, 9, DURABLE)
    assert pair.call("size").words[:2] == (2, 1)
    assert ranks(pair, 2) == [2, 1]
    pair.call("add", FIRST, UNTRACKED, NOT_DURABLE)
    assert pair.call("size").words[:2] == (2, 0)
    assert ranks(pair, 2) == [0, 1]
    pair.instance.check()


def test_a_removed_cursor_is_unknown_and_its_number_can_be_used_again() -> None:
    pair = started(5, 6)
    assert pair.call("remove", FIRST, 0).status == DONE
    assert pair.call("remove", FIRST, 0).status == UNKNOWN
    assert pair.call("update", FIRST, 1).status == UNKNOWN
    assert pair.call("rank", FIRST).words[0] == 0
    pair.call("add", FIRST, 8, NOT_DURABLE)
    assert ranks(pair, 2) == [2, 1]
    pair.instance.check()


def test_the_slowest_position_follows_every_kind_of_change() -> None:
    pair = started(5, 6)
    assert pair.call("slowest").words[0] == 5
    pair.call("update", FIRST, 8)
    assert pair.call("slowest").words[0] == 6
    pair.call("add", FIRST + 2, 2, NOT_DURABLE)
    assert pair.call("slowest").words[0] == 2
    pair.call("remove", FIRST + 2, 0)
    pair.call("update", FIRST + 1, UNTRACKED)
    assert pair.call("slowest").words[0] == 8
    pair.call("remove", FIRST, 0)
    assert pair.call("slowest").words[0] == UNTRACKED
    pair.instance.check()


@pytest.mark.parametrize("cursors", [2, 20, 37])
def test_many_changes_at_once_end_in_a_sweep(cursors: int) -> None:
    pair = started(*range(cursors))
    ranks(pair, cursors)
    for number in range(cursors):
        pair.call("update", FIRST + number, (cursors - number) // 2)
    # Far moves, so that the walks cost more than a sweep.
    expected = [sum((cursors - other) // 2 <= (cursors - own) // 2 for other in range(cursors))
                for own in range(cursors)]  # fmt: skip
    assert ranks(pair, cursors) == expected
    pair.instance.check()


# Removed cursors ---------------------------------------------------------------------------------


def test_removed_cursors_do_not_gather_when_nobody_asks() -> None:
    pair = started(1)
    for _ in range(5):
        pair.call("churn", 63, 2, 0)
        pair.call("inspect")
    pair.instance.check()


def test_nothing_is_kept_when_the_last_cursor_has_left() -> None:
    pair = started(1, 2, 3)
    for number in range(3):
        pair.call("remove", FIRST + number, 0)
    pair.call("inspect")
    pair.instance.check()


def test_a_walk_over_the_cursors_skips_what_was_removed() -> None:
    pair = started(1, 2, UNTRACKED)
    pair.call("remove", FIRST + 1, 0)
    assert pair.call("iterate").words[0] == 2
    pair.instance.check()


# Caching without cursors -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "grace, now, cached", [(50, 79, 1), (50, 80, 0), (0, 30, 0), (0, 29, 0), (-1, 30, 0)]
)
def test_added_entries_are_cached_for_the_grace_period_after_the_last_cursor_left(
    grace: int, now: int, cached: int
) -> None:
    pair = started(1, 2, grace=grace)
    pair.call("remove", FIRST, 90)
    assert pair.call("should_cache", now).words[0] == 1
    pair.call("remove", FIRST + 1, 30)
    assert pair.call("should_cache", now).words[0] == cached
    pair.instance.check()


def test_a_container_begins_with_a_grace_period() -> None:
    pair = started(grace=10)
    assert pair.call("should_cache", 9).words[0] == 1
    assert pair.call("should_cache", 10).words[0] == 0


# Negative controls.


@pytest.mark.parametrize(
    "mistake, invariant",
    [
        ("forget", "I79"),
        ("miscount", "I73"),
        ("misplace", "I72"),
        ("drop_changes", "I75"),
        ("linger", "I78"),
    ],
)
def test_a_mistake_is_noticed_at_once_and_at_quiescence(mistake: str, invariant: str) -> None:
    pair = started(1, 2, 3)
    ranks(pair, 3)
    pair.call("update", FIRST, 5)
    pair.instance.call(mistake, *([FIRST] if mistake == "forget" else []))
    if mistake != "forget":
        with pytest.raises(InvariantViolation, match=invariant):
            pair.instance.call("inspect")
    with pytest.raises(InvariantViolation, match=invariant):
        pair.instance.check()


def test_a_wrong_rank_is_noticed_by_the_thread_whose_cursor_it_is() -> None:
    pair = started(3)
    pair.call("add", 0, 3, NOT_DURABLE)
    pair.call("rank", 0)
    for _ in range(60):
        pair.instance.call("miscount")
    with pytest.raises(InvariantViolation, match="I73"):
        pair.instance.call("rank", 0)


@pytest.mark.parametrize("hint", [FIRST, FIRST + 1, FIRST + 2, FIRST + 3])
def test_the_cursors_at_a_position_or_before_it_are_counted_from_any_cursor(hint: int) -> None:
    pair = started(4, 9, 4)
    counts = [pair.call("rank_at", hint, value).words[0] for value in (0, 4, 5, 9, 31)]
    assert counts == [0, 2, 2, 3, 3]
    pair.call("update", FIRST, 20)
    assert pair.call("rank_at", hint, 9).words[0] == 2
    pair.instance.check()
