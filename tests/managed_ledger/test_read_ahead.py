"""Reads ahead of a cursor, and ledgers that are opened again."""

from __future__ import annotations

import pytest

from pulsar_ml import LedgerHandleClosedError, Position
from pulsar_ml.managed_ledger import Fault
from tests.managed_ledger.kit import SECONDS, Broker, open_broker, read, texts


def ahead(broker: Broker, first: int, last: int, **options: int) -> bool:
    ledger_id = broker.ledger.ledger_ids[0]
    return broker.ledger.read_ahead(ledger_id, first, last, cursor="reader", **options)


def cached(broker: Broker, count: int) -> list[int]:
    ledger_id = broker.ledger.ledger_ids[0]
    return [i for i in range(count) if broker.ledger.has_entry(Position(ledger_id, i))]


def test_a_read_ahead_fills_the_cache_with_the_reads_to_expect() -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("reader")
        other = broker.ledger.open_cursor("other")
        (*_, last) = broker.add(4)
        read(other)
        broker.evict()
        assert ahead(broker, 1, 9)
        assert cached(broker, 4) == [1, 2, 3]
        entry = broker.ledger.cache.cached.get(last)
        assert entry is not None
        with entry:
            assert entry.expected_reads == 1
        broker.evict()
        broker.ledger.delete_cursor("other")
        assert ahead(broker, 2, 3) and cached(broker, 4) == [2, 3]
        reads = len(broker.storage.reads)
        assert texts(cursor.read_entries(2).result(SECONDS)) == ["0", "1"]
        assert len(broker.storage.reads) == reads + 1
        assert texts(cursor.read_entries(2).result(SECONDS)) == ["2", "3"]
        assert len(broker.storage.reads) == reads + 1


def test_nothing_is_cached_for_nobody() -> None:
    with open_broker() as broker:
        broker.ledger.open_cursor("reader", active=False)
        broker.add(2)
        broker.evict()
        assert ahead(broker, 0, 1)
        assert cached(broker, 2) == []


def test_max_bytes_cuts_a_read_ahead_to_whole_average_entries() -> None:
    with open_broker() as broker:
        broker.ledger.open_cursor("reader")
        broker.add(6, size=36)
        broker.evict()
        assert ahead(broker, 0, 5, max_bytes=250)
        assert cached(broker, 6) == [0, 1]
        assert ahead(broker, 3, 5, max_bytes=1)
        assert cached(broker, 6) == [0, 1, 3]


def test_a_read_ahead_is_refused_where_it_would_not_help() -> None:
    with open_broker(limit=1000) as broker:
        cursor = broker.ledger.open_cursor("reader")
        broker.add(10, size=36)
        assert not ahead(broker, 0, 5)  # cached
        broker.evict()
        assert not ahead(broker, 10, 12)  # behind the end
        assert not ahead(broker, 0, 7)  # 800 of 1,000 bytes in flight
        broker.manager.configure(max_size=100)
        broker.manager.range_cache("other").put((9, 9), b"x" * 90)
        assert broker.manager.is_at_eviction_watermark
        assert not ahead(broker, 0, 5)
        broker.manager.configure(max_size=None)
        assert not broker.manager.is_at_eviction_watermark
        broker.storage.plan(Fault.STALL)
        pending = cursor.read_entries(3)
        assert not ahead(broker, 2, 4)  # a storage read has entry 2
        assert ahead(broker, 3, 4)
        broker.storage.resume()
        assert len(texts(pending.result(SECONDS))) == 3
        broker.evict()
        assert ahead(broker, 0, 2)


def test_the_permits_of_a_read_ahead_come_back_also_after_a_failure() -> None:
    with open_broker(limit=1000) as broker:
        broker.ledger.open_cursor("reader")
        broker.add(2)
        broker.evict()
        broker.storage.plan(Fault.FAIL)
        done: list[bool] = []
        assert broker.ledger.cache.read_ahead(
            broker.ledger.ledger_ids[0],
            *(0, 1),
            average=1,
            expected_reads=lambda: 1,
            on_done=lambda: done.append(True),
        )
        assert done == [True]
        assert not broker.ledger.cache.read_ahead(
            *(broker.ledger.ledger_ids[0], 0, 1),
            average=1,
            expected_reads=lambda: 1,
            condition=lambda: False,
        )
        assert broker.factory.limiter.remaining == 1000


def test_a_ledger_whose_handle_was_closed_is_opened_again_once() -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("reader")
        broker.add(3)
        ledger_id = broker.ledger.ledger_ids[0]
        broker.evict()
        broker.storage.plan(Fault.CLOSED)
        assert texts(cursor.read_entries(3).result(SECONDS)) == ["0", "1", "2"]
        assert broker.storage.reopened == [ledger_id]
        assert broker.storage.reads == [(ledger_id, 0, 2)] * 2


def test_a_handle_that_is_closed_again_is_a_failure() -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("reader")
        broker.add(2)
        broker.evict()
        broker.storage.plan(Fault.CLOSED, Fault.CLOSED)
        with pytest.raises(LedgerHandleClosedError):
            cursor.read_entries(2).result(SECONDS)
        assert len(broker.storage.reopened) == 1
        broker.storage.reopen_ledger(broker.ledger.ledger_ids[0])
        assert texts(cursor.read_entries(2).result(SECONDS)) == ["0", "1"]
