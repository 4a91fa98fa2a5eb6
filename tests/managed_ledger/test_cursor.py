"""Cursors: reads, acknowledgements, replays, restarts, and trimmed ledgers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsar_ml import ClosedError, Position, StorageError, UsageError
from pulsar_ml.managed_ledger import Fault, LedgerSettings, MemoryStorage
from pulsar_ml.managed_ledger.ledgers import after
from tests.managed_ledger.kit import SECONDS, Broker, open_broker, read, require, stored, texts

SMALL = LedgerSettings(managed_ledger_max_entries_per_ledger=3)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with open_broker(settings=SMALL) as one:
        yield one


def test_a_ledger_is_followed_by_the_next_when_it_is_full(broker: Broker) -> None:
    assert [*broker.add(3), broker.ledger.add_entry(b"3")] == [(1, 0), (1, 1), (1, 2), (2, 0)]


def test_a_read_ends_with_its_ledger_and_the_next_one_goes_on(broker: Broker) -> None:
    cursor = broker.ledger.open_cursor("a")
    for i in range(5):
        broker.ledger.add_entry(str(i).encode())
    assert [read(cursor), read(cursor), read(cursor)] == [["0", "1", "2"], ["3", "4"], []]
    broker.ledger.add_entry(b"5")
    assert read(cursor) == ["5"]


def test_one_read_at_a_time() -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("a")
        broker.add(2)
        broker.evict()
        broker.storage.plan(Fault.STALL)
        pending = cursor.read_entries(1)
        with pytest.raises(UsageError, match="read under way"):
            cursor.read_entries(1)
        broker.storage.resume()
        assert texts(pending.result(SECONDS)) == ["0"]
        assert read(cursor) == ["1"]


def test_a_read_that_a_seek_overtook_delivers_nothing_and_marks_nothing() -> None:
    with open_broker() as broker:
        cursor, _ = broker.ledger.open_cursor("a"), broker.ledger.open_cursor("b")
        broker.add(3)
        broker.ledger.cache.cached.remove_range((1, 2), (1, 2))
        broker.storage.plan(Fault.STALL)
        pending = cursor.read_entries(3)
        cursor.seek(Position(1, 1))
        broker.storage.resume()
        assert pending.result(SECONDS) == []
        with require(broker.ledger.cache.cached.get((1, 0))) as cached:
            assert cached.expected_reads == 2
        assert read(cursor) == ["1", "2"]


def test_what_is_acknowledged_one_by_one_moves_the_mark_when_nothing_is_missing(
    broker: Broker,
) -> None:
    cursor = broker.ledger.open_cursor("a")
    positions = [broker.ledger.add_entry(b"x") for _ in range(5)]
    for index in (1, 2, 4):
        cursor.delete(positions[index])
    assert (cursor.mark_delete_position, cursor.backlog) == ((-1, -1), 2)
    cursor.delete(positions[0])
    assert (cursor.mark_delete_position, cursor.backlog) == (positions[2], 1)
    cursor.delete(positions[3])
    assert (cursor.mark_delete_position, cursor.backlog) == (positions[4], 0)


def test_what_was_acknowledged_is_not_delivered_but_counts_as_read() -> None:
    with open_broker() as broker:
        cursor, _ = broker.ledger.open_cursor("a"), broker.ledger.open_cursor("b")
        positions = broker.add(3)
        cursor.delete(positions[1])
        assert read(cursor) == ["0", "2"]
        with require(broker.ledger.cache.cached.get(positions[1])) as cached:
            assert cached.expected_reads == 1


def test_a_mark_goes_forward_only_and_not_beyond_the_end() -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("a")
        positions = broker.add(3)
        cursor.mark_delete(positions[1])
        cursor.mark_delete(positions[0])
        assert cursor.mark_delete_position == positions[1]
        assert read(cursor) == ["2"]
        with pytest.raises(UsageError, match="does not exist yet"):
            cursor.mark_delete(Position(1, 3))
        with pytest.raises(UsageError, match="does not exist yet"):
            cursor.delete(Position(1, 3))


def test_a_mark_that_overtakes_a_read_is_not_taken_back() -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("a")
        positions = broker.add(5)
        broker.evict()
        broker.storage.plan(Fault.STALL)
        pending = cursor.read_entries(2)
        cursor.mark_delete(positions[3])
        broker.storage.resume()
        # The whole range is acknowledged by now, so the read continues with the next range.
        assert texts(pending.result(SECONDS)) == ["4"]
        assert cursor.read_position == after(positions[4])
        assert read(cursor) == []


def test_a_read_goes_on_over_ledgers_that_are_acknowledged_whole() -> None:
    with open_broker(settings=LedgerSettings(managed_ledger_max_entries_per_ledger=1)) as broker:
        cursor = broker.ledger.open_cursor("a")
        positions = [broker.ledger.add_entry(str(number).encode()) for number in range(1200)]
        for at in positions[1:-1]:
            cursor.delete(at)
        assert read(cursor) == ["0"]
        assert read(cursor) == ["1199"]
        assert read(cursor) == []


# Replay -------------------------------------------------------------------------------------------


def test_replayed_entries_come_in_order_and_expect_one_read_more() -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("a")
        broker.add(4)
        entries = cursor.read_entries(4).result(SECONDS)
        cursor.replay_later([entries[3], entries[1]])
        assert [entry.expected_reads for entry in entries] == [1, 2, 1, 2]
        cursor.replay_later([Position(1, 2), entries[1]])
        assert entries[2].expected_reads == 2
        texts(entries)
        assert texts(cursor.replay_entries(2).result(SECONDS)) == ["1", "2"]
        assert texts(cursor.replay_entries(5).result(SECONDS)) == ["3"]
        assert cursor.replay_entries(5).result(SECONDS) == []
        assert broker.storage.reads == []


def test_a_replay_from_the_storage_does_not_fill_the_cache() -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("a")
        positions = broker.add(3)
        cursor.replay_later(positions)
        broker.evict()
        assert texts(cursor.replay_entries(3).result(SECONDS)) == ["0", "1", "2"]
        assert len(broker.storage.reads) == 3
        assert positions[0] not in broker.ledger.cache.cached


def test_a_replay_that_fails_is_whole_in_the_queue_again() -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("a")
        cursor.replay_later(broker.add(3))
        broker.ledger.cache.cached.remove_range((1, 1), (1, 1))
        broker.storage.plan(Fault.FAIL)
        assert isinstance(cursor.replay_entries(3).exception(SECONDS), StorageError)
        with require(broker.ledger.cache.cached.get((1, 0))) as cached:
            assert cached.expected_reads == 2
        assert texts(cursor.replay_entries(3).result(SECONDS)) == ["0", "1", "2"]


def test_what_was_acknowledged_is_not_replayed() -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("a")
        positions = broker.add(4)
        cursor.replay_later(positions)
        cursor.mark_delete(positions[0])
        cursor.delete(positions[2])
        assert texts(cursor.replay_entries(9).result(SECONDS)) == ["1", "3"]


# Trimming -----------------------------------------------------------------------------------------


def test_ledgers_that_every_durable_cursor_passed_are_deleted(broker: Broker) -> None:
    first, second = broker.ledger.open_cursor("a"), broker.ledger.open_cursor("b")
    broker.ledger.open_cursor("reader", durable=False)
    positions = [broker.ledger.add_entry(b"x") for _ in range(8)]
    first.mark_delete(positions[7])
    assert broker.ledger.ledger_ids == [1, 2, 3]
    second.mark_delete(positions[1])
    assert broker.ledger.ledger_ids == [1, 2, 3]
    second.mark_delete(positions[4])
    assert broker.ledger.ledger_ids == [2, 3]
    assert [ledger.ledger_id for ledger in broker.storage.ledgers("orders")] == [2, 3]
    assert positions[0] not in broker.ledger.cache.cached
    second.mark_delete(positions[7])
    assert broker.ledger.ledger_ids == [3]


def test_a_cursor_that_is_deleted_holds_nothing_back(broker: Broker) -> None:
    first, _ = broker.ledger.open_cursor("a"), broker.ledger.open_cursor("slow")
    positions = [broker.ledger.add_entry(b"x") for _ in range(8)]
    first.mark_delete(positions[7])
    broker.ledger.delete_cursor("slow")
    assert broker.ledger.ledger_ids == [3]
    with pytest.raises(KeyError, match="slow"):
        broker.ledger.delete_cursor("slow")


def test_a_cursor_whose_ledger_is_gone_reads_on_in_the_next(broker: Broker) -> None:
    reader = broker.ledger.open_cursor("reader", durable=False)
    durable = broker.ledger.open_cursor("a")
    positions = [broker.ledger.add_entry(str(i).encode()) for i in range(5)]
    durable.mark_delete(positions[4])
    assert read(reader) == ["3", "4"]


def test_an_append_that_fails_begins_a_new_ledger(broker: Broker) -> None:
    broker.ledger.add_entry(b"0")
    broker.storage.fail_appends = 1
    with pytest.raises(StorageError, match="injected fault"):
        broker.ledger.add_entry(b"lost")
    assert broker.ledger.add_entry(b"1") == (2, 0)
    cursor = broker.ledger.open_cursor("a", earliest=True)
    assert [read(cursor), read(cursor)] == [["0"], ["1"]]


# Coming back --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_a_managed_ledger_comes_back_with_its_cursors(kind: str, tmp_path: Path) -> None:
    storage = stored(kind, tmp_path)
    with open_broker(storage, settings=SMALL) as broker:
        cursor = broker.ledger.open_cursor("a")
        broker.ledger.open_cursor("gone")
        broker.ledger.open_cursor("passing", durable=False)
        positions = [broker.ledger.add_entry(str(i).encode()) for i in range(5)]
        cursor.mark_delete(positions[1])
        broker.ledger.delete_cursor("gone")
    again = storage if isinstance(storage, MemoryStorage) else stored(kind, tmp_path)
    with open_broker(again, settings=SMALL) as broker:
        assert sorted(broker.ledger.cursors) == ["a"]
        cursor = broker.ledger.open_cursor("a")
        assert broker.ledger.add_entry(b"5").entry_id == 0
        assert [read(cursor), read(cursor), read(cursor)] == [["2"], ["3", "4"], ["5"]]
        assert cursor.backlog == 4


def test_a_closed_ledger_fails_what_is_under_way_and_refuses_the_rest() -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("a")
        broker.add(2)
        broker.evict()
        broker.storage.plan(Fault.STALL)
        pending = cursor.read_entries(2)
        broker.ledger.close()
        assert isinstance(pending.exception(SECONDS), ClosedError)
        for call in (
            lambda: broker.ledger.add_entry(b""),
            lambda: cursor.read_entries(1),
            lambda: broker.ledger.open_cursor("b"),
        ):
            with pytest.raises(ClosedError):
                call()
        broker.storage.resume()
        assert broker.factory.open("orders") is not broker.ledger


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="managed_ledger_max_entries_per_ledger=0"):
        LedgerSettings(managed_ledger_max_entries_per_ledger=0)
