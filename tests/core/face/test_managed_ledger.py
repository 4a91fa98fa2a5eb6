"""Misuse of a managed ledger: named errors before anything changed, and no lasting damage."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from pulsar_ml import EntryCacheManager, InvalidPositionError, Position, UsageError
from pulsar_ml.managed_ledger import (
    DiskStorage,
    LedgerSettings,
    ManagedLedgerFactory,
    MemoryStorage,
)
from tests.managed_ledger.kit import Broker, Clock, open_broker, texts


@pytest.mark.parametrize("wrong", [5, 2.5, None, "text", [1, 2]])
def test_an_entry_is_bytes(wrong: object) -> None:
    with open_broker() as broker:
        with pytest.raises(TypeError, match="bytes-like"):
            broker.ledger.add_entry(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="bytes-like"):
            broker.storage.inner.append(1, 0, wrong)  # type: ignore[arg-type]
        assert broker.ledger.last_confirmed == Position(-1, -1)
        assert broker.ledger.add_entry(b"x") == Position(1, 0)


def test_a_disk_storage_takes_bytes_only(tmp_path: object) -> None:
    storage = DiskStorage(f"{tmp_path}/ledgers")
    ledger = storage.create_ledger("a")
    with pytest.raises(TypeError, match="bytes-like"):
        storage.append(ledger, 0, 5)  # type: ignore[arg-type]
    assert storage.ledgers("a")[0].entries == 0
    storage.close()


def cursor(broker: Broker) -> Any:
    """A cursor that takes arguments of any type."""
    return broker.ledger.open_cursor("a")


SETTINGS: Any = LedgerSettings

WRONG_CALLS: dict[str, Callable[[Broker], object]] = {
    "read": lambda broker: cursor(broker).read_entries(2.5),
    "read none": lambda broker: cursor(broker).read_entries(0),
    "replay": lambda broker: cursor(broker).replay_entries(1.5),
    "seek": lambda broker: cursor(broker).seek((1, 0.5)),
    "delete": lambda broker: cursor(broker).delete((1, 0.0)),
    "mark_delete": lambda broker: cursor(broker).mark_delete(None),
    "replay_later": lambda broker: cursor(broker).replay_later([(1, 0.0)]),
    "settings": lambda broker: SETTINGS(managed_ledger_max_entries_per_ledger=2.5),
    "setting": lambda broker: SETTINGS(cache_eviction_by_expected_read_count=1),
    "ledger's name": lambda broker: broker.factory.open("a\x1facks\x1fb"),
    "ledger's surrogate": lambda broker: broker.factory.open("\ud800"),
    "name's type": lambda broker: broker.factory.open(cast(str, 5)),
    "cursor's name": lambda broker: broker.ledger.open_cursor("a\x1fb"),
    "cursor's surrogate": lambda broker: broker.ledger.open_cursor("\udfff"),
    "property": lambda broker: cursor(broker).put_property("k", "\ud800"),
    "key": lambda broker: cursor(broker).put_property("\ud800", "v"),
    "producer": lambda broker: cursor(broker).mark_delete(
        Position(1, 0), sequence_ids={"\ud800": 1}
    ),
}


@pytest.mark.parametrize("call", WRONG_CALLS)
def test_a_wrong_argument_is_named_and_changes_nothing(call: str) -> None:
    with open_broker() as broker:
        broker.add(3)
        with pytest.raises((UsageError, InvalidPositionError)):
            WRONG_CALLS[call](broker)
        cursor = broker.ledger.open_cursor("a", earliest=True)
        assert (cursor.properties, cursor.sequence_ids) == ({}, {})
        broker.factory.expire()
        assert broker.ledger.flush_cursors() == 0


def test_a_ledger_named_like_a_cursors_ledger_is_another_one() -> None:
    storage = MemoryStorage()
    settings = LedgerSettings(managed_ledger_default_mark_delete_rate_limit=0)
    with (
        EntryCacheManager() as manager,
        ManagedLedgerFactory(storage, manager, settings=settings) as factory,
    ):
        ledger = factory.open("t")
        cursor = ledger.open_cursor("x", earliest=True)
        at = [ledger.add_entry(b"x") for _ in range(5)]
        cursor.delete(at[2])
        cursor.flush()
        other = factory.open("t/acks/x")
        assert other.last_confirmed == Position(-1, -1)
        assert other.ledger_ids == []
        other.add_entry(b"mine")
        # Deleting the cursor deletes its own ledgers only.
        ledger.delete_cursor("x")
        assert len(storage.ledgers("t/acks/x")) == 1


def test_a_replay_queue_drops_positions_of_deleted_ledgers() -> None:
    with open_broker(settings=LedgerSettings(managed_ledger_max_entries_per_ledger=2)) as broker:
        at = broker.add(6)
        cursor = broker.ledger.open_cursor("a", earliest=True, durable=False)
        cursor.replay_later([at[0], at[5]])
        broker.ledger.trim()
        assert at[0].ledger_id not in broker.ledger.ledger_ids
        assert texts(cursor.replay_entries(10).result(10)) == ["5"]
        assert cursor.replay_entries(10).result(10) == []
        # Nor does a position that never was.
        cursor.replay_later([Position(99, 99), at[5]])
        assert len(texts(cursor.replay_entries(10).result(10))) == 1


def test_a_mark_listener_that_raises_costs_the_others_nothing() -> None:
    with open_broker() as broker:
        at = broker.add(3)
        cursor = broker.ledger.open_cursor("a", earliest=True)
        marks: list[Position] = []

        def broken(mark: Position) -> None:
            raise RuntimeError("mine")

        cursor.on_mark_delete(broken)
        cursor.on_mark_delete(marks.append)
        with pytest.raises(RuntimeError, match="mine"):
            cursor.mark_delete(at[1])
        assert marks == [at[1]]
        assert cursor.mark_delete_position == at[1]
        assert cursor.is_position_stored


def test_the_checker_goes_on_after_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = threading.Semaphore(0)
    monkeypatch.setattr(threading, "excepthook", lambda report: seen.release())
    clock = Clock()
    with (
        EntryCacheManager() as manager,
        ManagedLedgerFactory(MemoryStorage(), manager, clock=clock, check_interval_ms=1) as factory,
    ):
        first, second = factory.open("first"), factory.open("second")
        expired = threading.Semaphore(0)

        def broken(**times: int) -> int:
            raise RuntimeError("broken")

        def works(**times: int) -> int:
            expired.release()
            return 0

        monkeypatch.setattr(first, "expire", broken)
        monkeypatch.setattr(second, "expire", works)
        for _ in range(3):
            assert seen.acquire(timeout=300)
            assert expired.acquire(timeout=300)
