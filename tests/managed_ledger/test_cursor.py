"""Cursors: reading on, acknowledging, replaying, coming back, and the ledgers they let go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsar_ml import ClosedError, Position, StorageError, UsageError
from pulsar_ml.managed_ledger import Fault, LedgerSettings, MemoryStorage
from pulsar_ml.managed_ledger.ledgers import after
from tests.managed_ledger.kit import SECONDS, World, read, stored, texts, world

SMALL = LedgerSettings(managed_ledger_max_entries_per_ledger=3)


@pytest.fixture
def made() -> Iterator[World]:
    with world(settings=SMALL) as one:
        yield one


def test_a_ledger_is_followed_by_the_next_when_it_is_full(made: World) -> None:
    assert made.add(3) + [made.ledger.add_entry(b"3")] == [(1, 0), (1, 1), (1, 2), (2, 0)]


def test_a_read_ends_with_its_ledger_and_the_next_one_goes_on(made: World) -> None:
    cursor = made.ledger.open_cursor("a")
    for i in range(5):
        made.ledger.add_entry(str(i).encode())
    assert [read(cursor), read(cursor), read(cursor)] == [["0", "1", "2"], ["3", "4"], []]
    made.ledger.add_entry(b"5")
    assert read(cursor) == ["5"]


def test_one_read_at_a_time() -> None:
    with world() as made:
        cursor = made.ledger.open_cursor("a")
        made.add(2)
        made.evict()
        made.storage.plan(Fault.STALL)
        pending = cursor.read_entries(1)
        with pytest.raises(UsageError, match="read under way"):
            cursor.read_entries(1)
        made.storage.resume()
        assert texts(pending.result(SECONDS)) == ["0"]
        assert read(cursor) == ["1"]


def test_a_read_that_a_seek_overtook_delivers_nothing_and_marks_nothing() -> None:
    with world() as made:
        cursor, _ = made.ledger.open_cursor("a"), made.ledger.open_cursor("b")
        made.add(3)
        made.ledger.cache.cached.remove_range((1, 2), (1, 2))
        made.storage.plan(Fault.STALL)
        pending = cursor.read_entries(3)
        cursor.seek(Position(1, 1))
        made.storage.resume()
        assert pending.result(SECONDS) == []
        with made.ledger.cache.cached.get((1, 0)) as cached:
            assert cached.expected_reads == 2
        assert read(cursor) == ["1", "2"]


def test_what_is_acknowledged_one_by_one_moves_the_mark_when_nothing_is_missing(
    made: World,
) -> None:
    cursor = made.ledger.open_cursor("a")
    positions = [made.ledger.add_entry(b"x") for _ in range(5)]
    for index in (1, 2, 4):
        cursor.delete(positions[index])
    assert (cursor.mark_delete_position, cursor.backlog) == ((-1, -1), 2)
    cursor.delete(positions[0])
    assert (cursor.mark_delete_position, cursor.backlog) == (positions[2], 1)
    cursor.delete(positions[3])
    assert (cursor.mark_delete_position, cursor.backlog) == (positions[4], 0)


def test_what_was_acknowledged_is_not_delivered_but_counts_as_read() -> None:
    with world() as made:
        cursor, _ = made.ledger.open_cursor("a"), made.ledger.open_cursor("b")
        positions = made.add(3)
        cursor.delete(positions[1])
        assert read(cursor) == ["0", "2"]
        with made.ledger.cache.cached.get(positions[1]) as cached:
            assert cached.expected_reads == 1


def test_a_mark_goes_forward_only_and_not_beyond_the_end() -> None:
    with world() as made:
        cursor = made.ledger.open_cursor("a")
        positions = made.add(3)
        cursor.mark_delete(positions[1])
        cursor.mark_delete(positions[0])
        assert cursor.mark_delete_position == positions[1]
        assert read(cursor) == ["2"]
        with pytest.raises(UsageError, match="does not exist yet"):
            cursor.mark_delete(Position(1, 3))
        with pytest.raises(UsageError, match="does not exist yet"):
            cursor.delete(Position(1, 3))


def test_a_mark_that_overtakes_a_read_is_not_taken_back() -> None:
    with world() as made:
        cursor = made.ledger.open_cursor("a")
        positions = made.add(5)
        made.evict()
        made.storage.plan(Fault.STALL)
        pending = cursor.read_entries(2)
        cursor.mark_delete(positions[3])
        made.storage.resume()
        # All that it read is acknowledged by now: it reads on.
        assert texts(pending.result(SECONDS)) == ["4"]
        assert cursor.read_position == after(positions[4])
        assert read(cursor) == []


def test_a_read_goes_on_over_ledgers_that_are_acknowledged_whole() -> None:
    with world(settings=LedgerSettings(managed_ledger_max_entries_per_ledger=1)) as made:
        cursor = made.ledger.open_cursor("a")
        positions = [made.ledger.add_entry(str(number).encode()) for number in range(1200)]
        for at in positions[1:-1]:
            cursor.delete(at)
        assert read(cursor) == ["0"]
        assert read(cursor) == ["1199"]
        assert read(cursor) == []


# Replay -------------------------------------------------------------------------------------------


def test_replayed_entries_come_in_order_and_expect_one_read_more() -> None:
    with world() as made:
        cursor = made.ledger.open_cursor("a")
        made.add(4)
        entries = cursor.read_entries(4).result(SECONDS)
        cursor.replay_later([entries[3], entries[1]])
        assert [entry.expected_reads for entry in entries] == [1, 2, 1, 2]
        cursor.replay_later([Position(1, 2), entries[1]])
        assert entries[2].expected_reads == 2
        texts(entries)
        assert texts(cursor.replay_entries(2).result(SECONDS)) == ["1", "2"]
        assert texts(cursor.replay_entries(5).result(SECONDS)) == ["3"]
        assert cursor.replay_entries(5).result(SECONDS) == []
        assert made.storage.reads == []


def test_a_replay_from_the_storage_does_not_fill_the_cache() -> None:
    with world() as made:
        cursor = made.ledger.open_cursor("a")
        positions = made.add(3)
        cursor.replay_later(positions)
        made.evict()
        assert texts(cursor.replay_entries(3).result(SECONDS)) == ["0", "1", "2"]
        assert len(made.storage.reads) == 3
        assert positions[0] not in made.ledger.cache.cached


def test_a_replay_that_fails_is_whole_in_the_queue_again() -> None:
    with world() as made:
        cursor = made.ledger.open_cursor("a")
        cursor.replay_later(made.add(3))
        made.ledger.cache.cached.remove_range((1, 1), (1, 1))
        made.storage.plan(Fault.FAIL)
        assert isinstance(cursor.replay_entries(3).exception(SECONDS), StorageError)
        with made.ledger.cache.cached.get((1, 0)) as cached:
            assert cached.expected_reads == 2
        assert texts(cursor.replay_entries(3).result(SECONDS)) == ["0", "1", "2"]


def test_what_was_acknowledged_is_not_replayed() -> None:
    with world() as made:
        cursor = made.ledger.open_cursor("a")
        positions = made.add(4)
        cursor.replay_later(positions)
        cursor.mark_delete(positions[0])
        cursor.delete(positions[2])
        assert texts(cursor.replay_entries(9).result(SECONDS)) == ["1", "3"]


# Trimming -----------------------------------------------------------------------------------------


def test_ledgers_that_every_durable_cursor_passed_are_deleted(made: World) -> None:
    first, second = made.ledger.open_cursor("a"), made.ledger.open_cursor("b")
    made.ledger.open_cursor("reader", durable=False)
    positions = [made.ledger.add_entry(b"x") for _ in range(8)]
    first.mark_delete(positions[7])
    assert made.ledger.ledger_ids == [1, 2, 3]
    second.mark_delete(positions[1])
    assert made.ledger.ledger_ids == [1, 2, 3]
    second.mark_delete(positions[4])
    assert made.ledger.ledger_ids == [2, 3]
    assert [ledger.ledger_id for ledger in made.storage.ledgers("orders")] == [2, 3]
    assert positions[0] not in made.ledger.cache.cached
    second.mark_delete(positions[7])
    assert made.ledger.ledger_ids == [3]


def test_a_cursor_that_is_deleted_holds_nothing_back(made: World) -> None:
    first, _ = made.ledger.open_cursor("a"), made.ledger.open_cursor("slow")
    positions = [made.ledger.add_entry(b"x") for _ in range(8)]
    first.mark_delete(positions[7])
    made.ledger.delete_cursor("slow")
    assert made.ledger.ledger_ids == [3]
    with pytest.raises(KeyError, match="slow"):
        made.ledger.delete_cursor("slow")


def test_a_cursor_whose_ledger_is_gone_reads_on_in_the_next(made: World) -> None:
    reader = made.ledger.open_cursor("reader", durable=False)
    durable = made.ledger.open_cursor("a")
    positions = [made.ledger.add_entry(str(i).encode()) for i in range(5)]
    durable.mark_delete(positions[4])
    assert read(reader) == ["3", "4"]


def test_an_append_that_fails_begins_a_new_ledger(made: World) -> None:
    made.ledger.add_entry(b"0")
    made.storage.fail_appends = 1
    with pytest.raises(StorageError, match="injected fault"):
        made.ledger.add_entry(b"lost")
    assert made.ledger.add_entry(b"1") == (2, 0)
    cursor = made.ledger.open_cursor("a", earliest=True)
    assert [read(cursor), read(cursor)] == [["0"], ["1"]]


# Coming back --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_a_managed_ledger_comes_back_with_its_cursors(kind: str, tmp_path: Path) -> None:
    storage = stored(kind, tmp_path)
    with world(storage, settings=SMALL) as made:
        cursor = made.ledger.open_cursor("a")
        made.ledger.open_cursor("gone")
        made.ledger.open_cursor("passing", durable=False)
        positions = [made.ledger.add_entry(str(i).encode()) for i in range(5)]
        cursor.mark_delete(positions[1])
        made.ledger.delete_cursor("gone")
    again = storage if isinstance(storage, MemoryStorage) else stored(kind, tmp_path)
    with world(again, settings=SMALL) as made:
        assert sorted(made.ledger.cursors) == ["a"]
        cursor = made.ledger.open_cursor("a")
        assert made.ledger.add_entry(b"5").entry_id == 0
        assert [read(cursor), read(cursor), read(cursor)] == [["2"], ["3", "4"], ["5"]]
        assert cursor.backlog == 4


def test_a_closed_ledger_fails_what_is_under_way_and_refuses_the_rest() -> None:
    with world() as made:
        cursor = made.ledger.open_cursor("a")
        made.add(2)
        made.evict()
        made.storage.plan(Fault.STALL)
        pending = cursor.read_entries(2)
        made.ledger.close()
        assert isinstance(pending.exception(SECONDS), ClosedError)
        for call in (
            lambda: made.ledger.add_entry(b""),
            lambda: cursor.read_entries(1),
            lambda: made.ledger.open_cursor("b"),
        ):
            with pytest.raises(ClosedError):
                call()
        made.storage.resume()
        assert made.factory.open("orders") is not made.ledger


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="managed_ledger_max_entries_per_ledger=0"):
        LedgerSettings(managed_ledger_max_entries_per_ledger=0)
