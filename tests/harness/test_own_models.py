"""Models of structures with moments of their own: histories that they accept, and wrong twins of
them.
"""

from __future__ import annotations

import pytest

from pulsar_ml.specs import (
    active_cursors,
    answer,
    cursor_heap,
    inflight_limiter,
    pending_reads,
    position_map,
    range_answers,
    receive_buffer,
)
from tests.answers import Row
from tests.harness.test_judge import refused

HEAP = {"cursors": 8, "values": 8, "chunk_bits": 0}
ACTIVE = {**HEAP, "grace": 10}
LIMITER = {"maximum": 10, "timeout": 5, "queue_size": 2, "chunk_bits": 0}
READS = {"immediate": 0, "timeout": 0}
BUFFER = {
    "chunk_bits": 0, "limit": 8, "least": 1, "first_above": 0, "most_above": 0, "size_shift": 0,
}  # fmt: skip
MAP = {"chunk_bits": 1, "limit": 200, "spread": 5}
CACHES = {"caches": 1, "keys": 8, "length_shift": 0, "policy": 0}
SECOND = 1 << 14 | 1  # the tag of the first cursor that thread 1 registers
OWN, SHARED = 0, 5
GRANTED, WAITING, REFUSED = range(3)

ADDED: Row = (0, "add", (SHARED, 4, 0), answer(0, 1, 1), 1, 2)
MOVED: Row = (0, "update", (SHARED, 6), answer(0, 4, 6, 2, 1), 3, 4)


def test_a_query_without_lock_may_be_behind_but_not_of_its_own_thread() -> None:
    assert (
        refused(cursor_heap.Model, HEAP, ADDED, MOVED, (1, "slowest", (), answer(0, 4), 5, 6)) == ""
    )
    late: Row = (1, "slowest", (), answer(0, 4), 5, 6)
    assert "slowest" in refused(cursor_heap.Model, HEAP, ADDED, MOVED, late, fresh=True)
    assert "slowest" in refused(cursor_heap.Model, HEAP, ADDED, MOVED, (0, *late[1:]))
    newer: Row = (1, "slowest", (), answer(0, 6), 5, 6)
    assert "slowest" in refused(
        cursor_heap.Model, HEAP, ADDED, MOVED, newer, (1, "slowest", (), answer(0, 4), 7, 8)
    )
    assert "slowest" in refused(
        cursor_heap.Model, HEAP, ADDED, MOVED, (1, "slowest", (), answer(0, 5), 5, 6)
    )


def test_changes_follow_their_data_versions() -> None:
    other: Row = (1, "update", (SHARED, 2), answer(0, 4, 2, 2, 1), 3, 9)
    assert (
        refused(
            cursor_heap.Model,
            HEAP,
            ADDED,
            other,
            (0, "update", (SHARED, 6), answer(0, 2, 6, 3, 1), 3, 9),
        )
        == ""
    )
    twice: Row = (0, "update", (SHARED, 6), answer(0, 4, 6, 2, 1), 3, 9)
    assert refused(cursor_heap.Model, HEAP, ADDED, other, twice)
    before: Row = (0, "update", (SHARED, 6), answer(0, 4, 6, 3, 1), 3, 9)
    assert refused(cursor_heap.Model, HEAP, ADDED, other, before)


def test_the_cursor_that_came_second_is_removed_in_a_section_of_its_own() -> None:
    mine: Row = (0, "add", (SHARED, 4, 0), answer(0, 1, 1, 3, SECOND), 1, 9)
    theirs: Row = (1, "add", (SHARED, 4, 0), answer(0, 2, SECOND), 1, 9)
    assert (
        refused(
            active_cursors.Model,
            ACTIVE,
            mine,
            theirs,
            (2, "rank", (SHARED,), answer(0, 2, 1), 2, 8),
        )
        == ""
    )
    assert refused(
        active_cursors.Model, ACTIVE, mine, theirs, (2, "rank", (SHARED,), answer(0, 3, 1), 2, 8)
    )
    assert (
        refused(
            active_cursors.Model,
            ACTIVE,
            mine,
            theirs,
            (2, "rank", (SHARED,), answer(0, 2, 1), 10, 11),
        )
        == ""
    )
    late: Row = (2, "rank", (SHARED,), answer(0, 2, 1), 10, 11)
    assert refused(active_cursors.Model, ACTIVE, mine, theirs, late, fresh=True)


def test_the_grace_period_is_that_of_the_last_cursor() -> None:
    rows: list[Row] = [
        (0, "add", (OWN, 1, 0), answer(0, 1, 1), 1, 2),
        (0, "update", (OWN, 2), answer(0, 2, 1), 2, 2),
        (0, "remove", (OWN, 20), answer(0, 3, 1), 3, 9),
    ]
    for now, cached in ((29, 1), (30, 0)):
        kept: Row = (1, "should_cache", (now,), answer(0, cached), 3, 9)
        assert refused(active_cursors.Model, ACTIVE, *rows, kept, fresh=True) == ""
    kept = (1, "should_cache", (29,), answer(0, 0), 3, 9)
    assert "should_cache" in refused(active_cursors.Model, ACTIVE, *rows, kept, fresh=True)


def test_permits_that_are_declined_are_with_nobody_for_a_moment() -> None:
    rows: list[Row] = [
        (0, "acquire", (10, 0), answer(GRANTED, 0), 1, 2),
        (1, "acquire", (10, 1), answer(WAITING, 0, 1), 3, 4),
        (0, "release", (0,), answer(GRANTED, 10, 0, 1), 5, 20),
    ]
    assert (
        refused(
            inflight_limiter.Model,
            LIMITER,
            *rows,
            (2, "acquire", (4, 0), answer(GRANTED, 6, 0, 1), 21, 22),
        )
        == ""
    )
    queued: Row = (2, "acquire", (4, 0), answer(WAITING, 0, 1), 6, 7)
    waits: Row = (0, "release", (0,), answer(GRANTED, 6, 0, 2), 5, 20)
    assert refused(inflight_limiter.Model, LIMITER, *rows[:2], waits, queued) == ""
    assert refused(
        inflight_limiter.Model,
        LIMITER,
        *rows,
        (2, "acquire", (4, 0), answer(WAITING, 10, 1, 1), 21, 22),
    )


@pytest.mark.parametrize(
    ("counts", "right"), [((6, 6), True), ((0, 6), False), ((6, 0), True), ((12, 0), False)]
)
def test_what_was_joined_is_counted_with_what_was_read(
    counts: tuple[int, int], right: bool
) -> None:
    rows: list[Row] = [
        (0, "read", (0, 0, 6), answer(0, 1, 1), 1, 20),
        (1, "read", (0, 0, 6), answer(0, 1, 1), 2, 3),
        (1, "counts", (0,), answer(0, *counts, counts[1]), 4, 5),
    ]
    assert (refused(pending_reads.Model, READS, *rows) == "") is right


def test_a_request_is_told_when_its_read_was_completed() -> None:
    first: Row = (0, "read", (0, 0, 6), answer(0, 1, 1), 1, 2)
    done: Row = (1, "answer", (0, 0, 0), answer(0, 1, 0, 1), 3, 9)
    assert (
        refused(
            pending_reads.Model, READS, first, done, (0, "collect", (0,), answer(0, 0, 0, 1), 4, 8)
        )
        == ""
    )
    assert (
        refused(
            pending_reads.Model,
            READS,
            first,
            done,
            (0, "collect", (0,), answer(1, 0, 0, 1), 10, 11),
        )
        == ""
    )
    waits: Row = (0, "collect", (0,), answer(1, 0, 0, 1), 10, 11)
    assert refused(pending_reads.Model, READS, first, done, waits, fresh=True)
    assert refused(
        pending_reads.Model,
        READS,
        first,
        done,
        waits,
        (0, "collect", (0,), answer(1, 0, 0, 1), 12, 13),
    )
    early: Row = (0, "collect", (0,), answer(0, 1, 1), 2, 2)
    assert refused(pending_reads.Model, READS, first, early)


def test_an_own_put_is_only_missed_by_a_removal_beside_another_one() -> None:
    put: Row = (0, "put", (0, 0), answer(0), 1, 2)
    absent: Row = (0, "remove", (0, 0), answer(2), 3, 4)
    assert "remove" in refused(position_map.Model, MAP, put, absent)
    assert (
        refused(position_map.Model, MAP, put, absent, (1, "remove", (0, 0), answer(0), 3, 9)) == ""
    )


def test_a_range_has_what_its_reader_put() -> None:
    put: Row = (0, "put", (0, 3, 0), answer(0, 1, 48), 1, 2)
    assert (
        refused(
            range_answers.Model, CACHES, put, (0, "read_range", (0, 2, 4), answer(0, 1, 2), 3, 4)
        )
        == ""
    )
    assert refused(
        range_answers.Model, CACHES, put, (0, "read_range", (0, 2, 4), answer(0, 0, 0), 3, 4)
    )
    assert refused(
        range_answers.Model, CACHES, put, (0, "read_range", (0, 2, 4), answer(0, 2, 3), 3, 4)
    )
    assert refused(
        range_answers.Model, CACHES, put, (0, "read_range", (0, 2, 4), answer(0, 2, 2), 3, 4)
    )
    gone: Row = (1, "remove_range", (0, 0, 7), answer(0, 0, 0, 1, 48), 3, 4)
    assert (
        refused(
            range_answers.Model,
            CACHES,
            put,
            gone,
            (0, "read_range", (0, 2, 4), answer(0, 0, 0), 3, 4),
        )
        == ""
    )


def test_a_filled_slot_is_not_empty_and_an_own_empty_one_not_taken() -> None:
    rows: list[Row] = [
        (0, "cut", (8,), answer(0, 1), 1, 2),
        (0, "cache", (0, 1), answer(0, 0), 3, 4),
    ]
    assert "uncache" in refused(
        receive_buffer.Model, BUFFER, *rows, (1, "uncache", (1,), answer(6, 0), 5, 6)
    )
    out: Row = (0, "uncache", (1,), answer(0, 1), 5, 6)
    assert refused(
        receive_buffer.Model, BUFFER, *rows, out, (0, "cache", (0, 1), answer(5, 1), 7, 8)
    )
