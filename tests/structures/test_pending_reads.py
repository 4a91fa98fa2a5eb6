from __future__ import annotations

import math

import pytest

from benchmarks.measure import loops
from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.operations import _native
from pulsar_ml.suites.pending_reads import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    calls_of,
    compare_program,
    machine_test,
    run_threads,
)

DONE, WAITING, NOTHING, FULL, NO_MEMORY = range(5)
RIGHT, FAILURE, SHORT, FOREIGN_TOO, FOREIGN_INSTEAD, FAILURE_WITH_ENTRIES, NO_ENTRIES = (
    0,
    2,
    3,
    4,
    5,
    6,
    7,
)
OLDEST, NEWEST = 0, 1

TestMachine = machine_test("pending_reads")


def started(**settings: int) -> Pair:
    return Pair("pending_reads", settings)


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("pending_reads", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


def test_equal_requests_make_one_read() -> None:
    pair = started()
    pair.call("read", 0, 4, 4)
    assert pair.call("read", 0, 4, 4, thread=1).words == (1, 1, 0, 0)
    assert pair.call("answer", OLDEST, RIGHT, 0).words[1:] == (0, 2, 0)
    assert pair.call("counts", 0).words == (4, 4, 4, 0)
    pair.instance.check()


def test_a_request_inside_a_read_waits_for_it() -> None:
    pair = started()
    pair.call("read", 0, 0, 8)
    pair.call("read", 0, 2, 3, thread=1)
    assert pair.call("answer", OLDEST, RIGHT, 0).words[1:] == (0, 2, 0)
    assert pair.call("counts", 0).words == (8, 3, 0, 3)
    pair.instance.check()


@pytest.mark.parametrize(
    "first, entries, running, counts",
    [(2, 4, 2, (2, 2, 0, 0)), (6, 4, 2, (0, 0, 2, 0)), (2, 8, 3, (0, 0, 0, 4))],
    ids=["left", "right", "both"],
)
def test_what_a_read_does_not_have_is_read_beside_it(
    first: int, entries: int, running: int, counts: tuple[int, int, int, int]
) -> None:
    pair = started()
    pair.call("read", 0, 4, 4)
    assert pair.call("read", 0, first, entries, thread=1).words[1] == running
    missed, left, right, both = pair.call("counts", 1).words
    # The part on the right is searched for again, and found nowhere.
    assert missed == 4 + (2 if running == 3 or right else 0)
    assert (left, right, both) == (counts[1], counts[2], counts[3])
    for _ in range(running):
        pair.call("answer", NEWEST, RIGHT, 0)
    assert pair.call("collect", 0, thread=1).words == (0, 0, 2, 0)
    pair.instance.check()


def test_left_and_right_are_started_at_once() -> None:
    """#24346: one after the other, the right part would miss what it could have joined."""
    pair = started()
    pair.call("read", 0, 4, 2)
    assert pair.call("read", 0, 2, 6, thread=1).words[:2] == (3, 3)
    # A third request finds all three.
    assert pair.call("read", 0, 2, 6, thread=2).words[:2] == (3, 3)
    pair.instance.check()


def test_reads_of_different_ledgers_do_not_meet() -> None:
    pair = started()
    pair.call("read", 0, 4, 4)
    assert pair.call("read", 1, 4, 4).words[:2] == (2, 2)
    pair.instance.check()


def test_nothing_joins_the_reads_of_an_invalidated_ledger() -> None:
    pair = started()
    pair.call("read", 0, 4, 4)
    pair.call("invalidate", 0)
    assert pair.call("read", 0, 4, 4, thread=1).words[:2] == (2, 2)
    assert pair.call("answer", OLDEST, RIGHT, 0).words[1:] == (1, 1, 0)
    pair.instance.check()


def test_a_failure_reaches_everybody_who_waits_for_that_read_and_nobody_else() -> None:
    pair = started()
    pair.call("read", 0, 4, 4)
    pair.call("read", 0, 6, 6, thread=1)
    pair.call("read", 0, 10, 2, thread=2)
    assert pair.call("answer", OLDEST, FAILURE, 0).words[2:] == (0, 1)
    assert pair.call("answer", OLDEST, RIGHT, 0).words[2:] == (1, 2)
    pair.instance.check()


@pytest.mark.parametrize("kind", [SHORT, FOREIGN_INSTEAD, FAILURE_WITH_ENTRIES, NO_ENTRIES])
def test_an_answer_that_lacks_an_entry_is_a_failure(kind: int) -> None:
    pair = started()
    pair.call("read", 0, 4, 4)
    assert pair.call("answer", OLDEST, kind, 0).words[2:] == (0, 1)
    pair.instance.check()


def test_a_short_answer_serves_those_who_lack_nothing() -> None:
    pair = started()
    pair.call("read", 0, 4, 4)
    pair.call("read", 0, 4, 2, thread=1)
    assert pair.call("answer", OLDEST, SHORT, 0).words[2:] == (1, 1)
    pair.instance.check()


def test_foreign_entries_beside_the_right_ones_are_released() -> None:
    """Entries of another ledger, 2^32 further, beyond the range, and a position twice."""
    pair = started()
    pair.call("read", 0, 4, 4)
    assert pair.call("answer", OLDEST, FOREIGN_TOO, 0).words[2:] == (1, 0)
    pair.instance.check()


def test_a_storage_may_answer_before_start_returns() -> None:
    pair = started(immediate=1)
    assert pair.call("read", 0, 4, 4).words == (0, 0, 1, 0)
    pair.instance.check()


def test_every_read_that_hangs_times_out_the_older_ones_too() -> None:
    """#26081: only the newest was watched."""
    pair = started(timeout=5)
    pair.call("read", 0, 4, 4)
    pair.call("expire", 2)
    pair.call("read", 1, 4, 4)
    assert pair.call("expire", 3).words == (2, 1, 0, 1)
    assert pair.call("expire", 2).words == (2, 0, 0, 2)
    pair.instance.check()


def test_a_late_answer_is_refused_and_does_not_reach_the_next_read() -> None:
    """#4437: time-out and completion both took the same object."""
    pair = started(timeout=5)
    pair.call("read", 0, 4, 4)
    pair.call("expire", 5)
    pair.call("collect", 0)
    # The read reuses the memory under another token.
    pair.call("read", 0, 4, 4)
    assert pair.call("answer", OLDEST, RIGHT, 1).words[1:] == (1, 0, 1)
    assert pair.call("answer", OLDEST, RIGHT, 1).words[1:] == (0, 1, 1)
    pair.instance.check()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_failed_allocation_loses_nothing(seed: int) -> None:
    # Not each shows: the entries of a late answer are released anyway.
    try:
        assert sum(run_failing(seed, failing) for failing in range(80)) > 20
    finally:
        _native.fail_allocation_after(-1)


def run_failing(seed: int, failing: int) -> bool:
    chosen, program = calls_of("pending_reads", seed, 40)
    _native.fail_allocation_after(failing)
    try:
        pair = Pair("pending_reads", chosen)
    except MemoryError:
        return True
    failed = False
    for thread, operation, arguments in program:
        seen = pair.instance.call(operation.name, *arguments, thread=thread)
        if seen.status == NO_MEMORY:
            failed = True
            seen = pair.instance.call(operation.name, *arguments, thread=thread)
        expected = pair.model.step(operation.name, arguments, thread=thread)
        if tuple(seen) != expected:
            # An answer whose entries could not be made fails those who wait for it; all else holds.
            _native.fail_allocation_after(-1)
            pair.instance.check()
            return True
    _native.fail_allocation_after(-1)
    pair.instance.check()
    return failed


# Negative controls.


@pytest.mark.parametrize(
    "mistake, arguments, invariant",
    [("forget", (0,), "I82"), ("lose_entry", (), "I86"), ("mark_unseen", (), "I68")],
)
def test_a_mistake_is_noticed_at_quiescence(
    mistake: str, arguments: tuple[int, ...], invariant: str
) -> None:
    pair = started()
    pair.call("read", 0, 4, 4)
    pair.instance.call(mistake, *arguments)
    with pytest.raises(InvariantViolation, match=invariant):
        pair.instance.check()


def test_a_request_answered_twice_is_noticed() -> None:
    pair = started()
    pair.call("read", 0, 4, 4)
    pair.call("answer", OLDEST, RIGHT, 0)
    with pytest.raises(InvariantViolation, match="I82"):
        pair.instance.call("tell_again", 0)


def test_reads_that_overlap_are_noticed() -> None:
    pair = started()
    pair.call("read", 0, 4, 4)
    with pytest.raises(InvariantViolation, match="PR-7"):
        pair.instance.call("overlap")


def test_a_read_that_no_search_finds_is_noticed() -> None:
    pair = started()
    pair.call("read", 0, 4, 4)
    with pytest.raises(InvariantViolation, match="PR-9"):
        pair.instance.call("hide")


def test_an_answer_under_the_monitor_is_noticed() -> None:
    pair = started()
    pair.call("read", 0, 4, 4)
    with pytest.raises(InvariantViolation, match="I84"):
        pair.instance.call("answer_inside")


@pytest.mark.parametrize("stride", [1, -1, 89, 37_123])
def test_the_steps_of_a_search_grow_with_the_logarithm_of_the_reads(stride: int) -> None:
    """A treap's average is 2 ln n; the reads begin in the order of their entries and in others."""
    count = 100_000
    longest, together = loops("loops_reads").pending_steps(count, stride % count)
    assert longest < 60
    assert together / count < 2.5 * math.log(count)
