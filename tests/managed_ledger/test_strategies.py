"""What cursors mean for the cache: expected reads, or the slowest position."""

from __future__ import annotations

import pytest

from pulsar_ml import Position
from pulsar_ml.managed_ledger import LedgerSettings
from tests.managed_ledger.kit import World, read, world

BY_READ = LedgerSettings(cache_eviction_by_expected_read_count=False)
BY_MARK_DELETE = LedgerSettings(
    cache_eviction_by_expected_read_count=False, cache_eviction_by_mark_deleted_position=True
)


def cached(made: World) -> list[int]:
    found = []
    for entry in made.ledger.cache.cached.get_range((0, 0), (9, 9)):
        with entry:
            found.append(entry.entry_id)
    return found


def test_with_expected_reads_cursors_invalidate_nothing() -> None:
    with world() as made:
        cursor = made.ledger.open_cursor("a")
        made.add(4)
        read(cursor)
        cursor.mark_delete(Position(1, 3))
        assert cached(made) == [0, 1, 2, 3]


def test_by_read_position_entries_go_when_every_active_cursor_read_them() -> None:
    with world(settings=BY_READ) as made:
        first, second = made.ledger.open_cursor("a"), made.ledger.open_cursor("b")
        made.add(4)
        read(first)
        assert cached(made) == [0, 1, 2, 3]
        read(second, 2)
        assert cached(made) == [2, 3]
        second.set_inactive()
        assert cached(made) == []


def test_by_mark_delete_position_entries_stay_until_they_are_acknowledged() -> None:
    with world(settings=BY_MARK_DELETE) as made:
        cursor = made.ledger.open_cursor("a")
        made.add(4)
        read(cursor)
        assert cached(made) == [0, 1, 2, 3]
        cursor.mark_delete(Position(1, 1))
        assert cached(made) == [2, 3]


@pytest.mark.parametrize("settings", [BY_READ, BY_MARK_DELETE])
def test_without_expected_reads_there_is_no_grace_period(settings: LedgerSettings) -> None:
    with world(settings=settings) as made:
        made.add(1)
        assert cached(made) == []
        cursor = made.ledger.open_cursor("a")
        made.add(1)
        assert cached(made) == [1]
        cursor.set_inactive()
        assert cached(made) == []


def test_a_cursor_that_is_not_active_does_not_fill_the_cache() -> None:
    for settings in (LedgerSettings(), BY_READ):
        with world(settings=settings) as made:
            reader = made.ledger.open_cursor("a", earliest=True, active=False)
            made.add(3)
            made.evict()
            assert read(reader) == ["0", "1", "2"]
            assert cached(made) == []


def test_entries_that_are_added_expect_every_active_cursor() -> None:
    with world() as made:
        for name in "abc":
            made.ledger.open_cursor(name)
        made.ledger.open_cursor("idle", active=False)
        made.add(1)
        with made.ledger.cache.cached.get((1, 0)) as entry:
            assert entry.expected_reads == 3


def test_after_the_last_active_cursor_left_entries_are_cached_for_a_while() -> None:
    settings = LedgerSettings(
        continue_caching_added_entries_after_last_active_cursor_leaves_millis=50
    )
    with world(settings=settings) as made:
        cursor = made.ledger.open_cursor("a")
        made.clock.pass_millis(1000)
        cursor.set_inactive()
        made.clock.pass_millis(49)
        made.add(1)
        made.clock.pass_millis(1)
        made.add(1)
        assert cached(made) == [0]


def test_without_expected_reads_a_cursor_far_behind_holds_nothing_in_the_cache() -> None:
    settings = LedgerSettings(
        cache_eviction_by_expected_read_count=False, managed_ledger_cursor_backlogged_threshold=3
    )
    with world(settings=settings) as made:
        near, far = made.ledger.open_cursor("near"), made.ledger.open_cursor("far")
        made.add(4)
        read(near)
        assert cached(made) == [0, 1, 2, 3]
        made.factory.expire()
        assert (near.is_active, far.is_active) == (True, False)
        assert cached(made) == []
        assert read(far) == ["0", "1", "2", "3"]


def test_with_expected_reads_it_stays_active() -> None:
    with world(settings=LedgerSettings(managed_ledger_cursor_backlogged_threshold=3)) as made:
        cursor = made.ledger.open_cursor("far")
        made.add(4)
        made.factory.expire()
        assert cursor.is_active
