from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsar_ml import StorageError
from pulsar_ml.managed_ledger import (
    DiskStorage,
    Fault,
    FaultyStorage,
    LedgerProperties,
    LedgerStorage,
    MemoryStorage,
    StoredEntry,
)
from tests.managed_ledger.kit import SECONDS, stored


@pytest.fixture(params=["memory", "disk"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LedgerStorage]:
    broker = stored(request.param, tmp_path)
    yield broker
    broker.close()


def filled(storage: LedgerStorage, count: int = 4) -> int:
    ledger = storage.create_ledger("a")
    for i in range(count):
        storage.append(ledger, i, str(i).encode()).result(SECONDS)
    return ledger


def test_what_was_appended_is_read(storage: LedgerStorage) -> None:
    ledger = filled(storage)
    assert storage.read(ledger, 1, 2).result(SECONDS) == [
        StoredEntry(ledger, 1, b"1"),
        StoredEntry(ledger, 2, b"2"),
    ]
    assert storage.ledgers("a") == [LedgerProperties(ledger, 4, 4)]


def test_ledgers_are_numbered_upwards_and_belong_to_a_name(storage: LedgerStorage) -> None:
    first, other, second = (
        storage.create_ledger("a"),
        storage.create_ledger("b"),
        storage.create_ledger("a"),
    )
    assert first < other < second
    assert [ledger.ledger_id for ledger in storage.ledgers("a")] == [first, second]
    assert storage.ledgers("c") == []


@pytest.mark.parametrize("first, last", [(0, 4), (4, 4), (3, 2)])
def test_a_range_that_is_not_there_is_a_failure(
    storage: LedgerStorage, first: int, last: int
) -> None:
    ledger = filled(storage)
    if first <= last:
        assert isinstance(storage.read(ledger, first, last).exception(SECONDS), StorageError)
    assert isinstance(storage.read(ledger + 1, 0, 0).exception(SECONDS), StorageError)


def test_an_entry_is_not_overwritten(storage: LedgerStorage) -> None:
    ledger = filled(storage)
    assert isinstance(storage.append(ledger, 1, b"other").exception(SECONDS), StorageError)
    assert storage.read(ledger, 1, 1).result(SECONDS)[0].data == b"1"


def test_a_deleted_ledger_is_gone_and_its_number_is_not_used_again(storage: LedgerStorage) -> None:
    ledger = filled(storage)
    storage.delete_ledger(ledger).result(SECONDS)
    storage.delete_ledger(ledger).result(SECONDS)
    assert storage.ledgers("a") == []
    assert storage.create_ledger("a") > ledger


def test_texts_are_kept_by_name(storage: LedgerStorage) -> None:
    storage.set_property("a", "cursor/x", "1:2")
    storage.set_property("a", "cursor/x", "1:3")
    storage.set_property("b", "cursor/x", "9:9")
    storage.set_property("b", "cursor/x", None)
    assert storage.properties("a") == {"cursor/x": "1:3"}
    assert storage.properties("b") == {}


def test_a_file_keeps_everything(tmp_path: Path) -> None:
    first = DiskStorage(tmp_path / "l.db")
    ledger = filled(first)
    first.set_property("a", "k", "v")
    first.close()
    again = DiskStorage(tmp_path / "l.db")
    assert again.ledgers("a") == [LedgerProperties(ledger, 4, 4)]
    assert [entry.data for entry in again.read(ledger, 0, 3).result(SECONDS)] == [
        b"0",
        b"1",
        b"2",
        b"3",
    ]
    assert again.properties("a") == {"k": "v"}
    again.close()


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database" * 100)
    with pytest.raises(StorageError, match=r"notes\.txt"):
        DiskStorage(path)


def test_faults_come_in_the_order_in_which_they_were_planned() -> None:
    storage = FaultyStorage(MemoryStorage())
    ledger = filled(storage)
    storage.plan(Fault.FAIL, Fault.SHORT, Fault.FOREIGN, Fault.FOREIGN_INSTEAD, Fault.STALL)
    assert isinstance(storage.read(ledger, 0, 3).exception(SECONDS), StorageError)
    assert [entry.entry_id for entry in storage.read(ledger, 0, 3).result(SECONDS)] == [0, 1, 2]
    foreign = storage.read(ledger, 0, 1).result(SECONDS)
    assert [entry[:2] for entry in foreign] == [
        (ledger, 1),
        (ledger, 0),
        (ledger + 1, 0),
        (ledger, 2**32),
        (ledger, 2),
        (ledger, -1),
        (-1, 0),
        (ledger, 0),
    ]
    assert [entry[:2] for entry in storage.read(ledger, 0, 1).result(SECONDS)] == [
        (ledger + 1, 0),
        (ledger, 2**32),
        (ledger, 2),
        (ledger, -1),
        (-1, 0),
        (ledger, 1),
    ]
    stalled = storage.read(ledger, 0, 0)
    assert not stalled.done()
    storage.resume()
    assert stalled.result(SECONDS)[0].data == b"0"
    assert storage.read(ledger, 0, 0).result(SECONDS)[0].data == b"0"


def test_appends_fail_on_command() -> None:
    storage = FaultyStorage(MemoryStorage())
    ledger = storage.create_ledger("a")
    storage.fail_appends = 1
    assert isinstance(storage.append(ledger, 0, b"x").exception(SECONDS), StorageError)
    assert storage.append(ledger, 0, b"x").exception(SECONDS) is None
