"""The caching strategies: expected reads, or the slowest cursor."""

from __future__ import annotations

import pytest

from pulsar_ml import Position
from pulsar_ml.managed_ledger import LedgerSettings
from tests.managed_ledger.kit import Broker, open_broker, read, require

BY_READ = LedgerSettings(cache_eviction_by_expected_read_count=False)
BY_MARK_DELETE = LedgerSettings(
    cache_eviction_by_expected_read_count=False, cache_eviction_by_mark_deleted_position=True
)


def cached(broker: Broker) -> list[int]:
    found = []
    for entry in broker.ledger.cache.cached.get_range((0, 0), (9, 9)):
        with entry:
            found.append(entry.entry_id)
    return found


def test_with_expected_reads_cursors_invalidate_nothing() -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("a")
        broker.add(4)
        read(cursor)
        cursor.mark_delete(Position(1, 3))
        assert cached(broker) == [0, 1, 2, 3]


def test_by_read_position_entries_go_when_every_active_cursor_read_them() -> None:
    with open_broker(settings=BY_READ) as broker:
        first, second = broker.ledger.open_cursor("a"), broker.ledger.open_cursor("b")
        broker.add(4)
        read(first)
        assert cached(broker) == [0, 1, 2, 3]
        read(second, 2)
        assert cached(broker) == [2, 3]
        second.set_inactive()
        assert cached(broker) == []


def test_by_mark_delete_position_entries_stay_until_they_are_acknowledged() -> None:
    with open_broker(settings=BY_MARK_DELETE) as broker:
        cursor = broker.ledger.open_cursor("a")
        broker.add(4)
        read(cursor)
        assert cached(broker) == [0, 1, 2, 3]
        cursor.mark_delete(Position(1, 1))
        assert cached(broker) == [2, 3]


@pytest.mark.parametrize("settings", [BY_READ, BY_MARK_DELETE])
def test_without_expected_reads_there_is_no_grace_period(settings: LedgerSettings) -> None:
    with open_broker(settings=settings) as broker:
        broker.add(1)
        assert cached(broker) == []
        cursor = broker.ledger.open_cursor("a")
        broker.add(1)
        assert cached(broker) == [1]
        cursor.set_inactive()
        assert cached(broker) == []


def test_a_cursor_that_is_not_active_does_not_fill_the_cache() -> None:
    for settings in (LedgerSettings(), BY_READ):
        with open_broker(settings=settings) as broker:
            reader = broker.ledger.open_cursor("a", earliest=True, active=False)
            broker.add(3)
            broker.evict()
            assert read(reader) == ["0", "1", "2"]
            assert cached(broker) == []


def test_entries_that_are_added_expect_every_active_cursor() -> None:
    with open_broker() as broker:
        for name in "abc":
            broker.ledger.open_cursor(name)
        broker.ledger.open_cursor("idle", active=False)
        broker.add(1)
        with require(broker.ledger.cache.cached.get((1, 0))) as entry:
            assert entry.expected_reads == 3


def test_after_the_last_active_cursor_left_entries_are_cached_for_a_while() -> None:
    settings = LedgerSettings(
        continue_caching_added_entries_after_last_active_cursor_leaves_millis=50
    )
    with open_broker(settings=settings) as broker:
        cursor = broker.ledger.open_cursor("a")
        broker.clock.pass_millis(1000)
        cursor.set_inactive()
        broker.clock.pass_millis(49)
        broker.add(1)
        broker.clock.pass_millis(1)
        broker.add(1)
        assert cached(broker) == [0]


def test_without_expected_reads_a_cursor_far_behind_holds_nothing_in_the_cache() -> None:
    settings = LedgerSettings(
        cache_eviction_by_expected_read_count=False, managed_ledger_cursor_backlogged_threshold=3
    )
    with open_broker(settings=settings) as broker:
        near, far = broker.ledger.open_cursor("near"), broker.ledger.open_cursor("far")
        broker.add(4)
        read(near)
        assert cached(broker) == [0, 1, 2, 3]
        broker.factory.expire()
        assert (near.is_active, far.is_active) == (True, False)
        assert cached(broker) == []
        assert read(far) == ["0", "1", "2", "3"]


def test_with_expected_reads_it_stays_active() -> None:
    with open_broker(
        settings=LedgerSettings(managed_ledger_cursor_backlogged_threshold=3)
    ) as broker:
        cursor = broker.ledger.open_cursor("far")
        broker.add(4)
        broker.factory.expire()
        assert cursor.is_active
