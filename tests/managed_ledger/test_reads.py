"""Reads through the cache, over a correct and over a faulty storage."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest

from pulsar_ml import (
    Entry,
    LedgerHandleClosedError,
    Position,
    ReadTimeoutError,
    StorageError,
    UsageError,
)
from pulsar_ml.managed_ledger import Fault, LedgerSettings
from tests.managed_ledger.kit import SECONDS, Broker, open_broker, read, require, texts

WHOLE = [str(i) for i in range(6)]


def test_what_was_added_is_read_from_the_cache() -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("a")
        broker.add(6)
        assert read(cursor) == WHOLE
        assert broker.storage.reads == []
        assert read(cursor) == []


def test_without_active_cursors_nothing_is_cached_after_the_grace_period() -> None:
    with open_broker() as broker:
        broker.add(1)
        broker.clock.pass_millis(2000)
        broker.add(5)
        cursor = broker.ledger.open_cursor("a", earliest=True)
        assert read(cursor) == WHOLE
        assert broker.storage.reads == [(1, 1, 5)]


def test_what_is_read_from_the_storage_is_cached_for_those_behind() -> None:
    with open_broker() as broker:
        cursors = [broker.ledger.open_cursor(name) for name in "abc"]
        broker.add(6)
        broker.evict()
        entries = cursors[0].read_entries(6).result(SECONDS)
        # One read by the reader itself, and two by cursors that have not read the entries yet.
        assert [entry.expected_reads for entry in entries] == [3] * 6
        assert texts(entries) == WHOLE
        assert read(cursors[1]) == read(cursors[2]) == WHOLE
        assert broker.storage.reads == [(1, 0, 5)]


def test_holes_are_read_and_hits_are_not() -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("a")
        broker.add(6)
        for first, last in ((1, 2), (4, 4)):
            broker.ledger.cache.cached.remove_range((1, first), (1, last))
        assert read(cursor) == WHOLE
        assert broker.storage.reads == [(1, 1, 2), (1, 4, 4)]


def test_every_delivered_copy_marks_one_read() -> None:
    with open_broker() as broker:
        first, second = broker.ledger.open_cursor("a"), broker.ledger.open_cursor("b")
        broker.add(2)
        for cursor, left in ((first, 1), (second, 0)):
            entries = cursor.read_entries(2).result(SECONDS)
            assert [entry.expected_reads for entry in entries] == [left + 1] * 2
            texts(entries)
            with require(broker.ledger.cache.cached.get((1, 0))) as cached:
                assert cached.expected_reads == left


@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.SHORT, Fault.FOREIGN_INSTEAD])
def test_a_hole_that_fails_lets_the_whole_range_be_read_again_and_counts_nothing(
    fault: Fault,
) -> None:
    with open_broker() as broker:
        cursor, _ = broker.ledger.open_cursor("a"), broker.ledger.open_cursor("b")
        broker.add(6)
        broker.ledger.cache.cached.remove_range((1, 1), (1, 1))
        broker.ledger.cache.cached.remove_range((1, 4), (1, 4))
        # Entries of the second attempt count their own reads; these copies count those of the
        # first.
        copies = []
        for hit in broker.ledger.cache.cached.get_range((1, 0), (1, 5)):
            with hit:
                copies.append(hit.copy())
        broker.storage.plan(Fault.NONE, fault)
        entries = cursor.read_entries(6).result(SECONDS)
        assert broker.storage.reads == [(1, 1, 1), (1, 4, 4), (1, 0, 5)]
        # The copies of the first attempt were dropped without marking a read.
        assert [copy.expected_reads for copy in copies] == [2] * 4
        assert texts(entries) == WHOLE
        for copy in copies:
            copy.release(delivered=False)


def test_the_second_attempt_may_fail_too() -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("a")
        broker.add(6)
        broker.ledger.cache.cached.remove_range((1, 1), (1, 1))
        broker.storage.plan(Fault.FAIL, Fault.FAIL)
        assert isinstance(cursor.read_entries(6).exception(SECONDS), StorageError)
        # The read position did not move.
        assert read(cursor) == WHOLE


@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.SHORT, Fault.FOREIGN_INSTEAD])
def test_with_no_hit_a_failure_is_one(fault: Fault) -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("a")
        broker.add(6)
        broker.evict()
        broker.storage.plan(fault)
        assert isinstance(cursor.read_entries(6).exception(SECONDS), StorageError)
        assert len(broker.storage.reads) == 1


def test_foreign_entries_are_neither_delivered_nor_cached() -> None:
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("a")
        broker.add(7)
        broker.evict()
        broker.storage.plan(Fault.FOREIGN)
        assert read(cursor, 6) == WHOLE
        assert Position(1, 6) not in broker.ledger.cache.cached
        assert Position(2, 0) not in broker.ledger.cache.cached
        assert Position(1, 2**32) not in broker.ledger.cache.cached


def test_a_single_entry_is_read_and_not_cached() -> None:
    with open_broker() as broker:
        broker.ledger.open_cursor("a")
        positions = broker.add(3)
        broker.evict()
        assert texts([broker.ledger.read_entry(positions[1]).result(SECONDS)]) == ["1"]
        assert positions[1] not in broker.ledger.cache.cached
        assert isinstance(broker.ledger.read_entry(Position(1, 3)).exception(SECONDS), UsageError)


def test_an_entry_that_is_cached_already_is_released_all_the_same() -> None:
    """#16979: a duplicate leaked, as only inserted entries were released.

    The broker checks leaks.
    """
    with open_broker() as broker:
        cursor = broker.ledger.open_cursor("a")
        broker.add(3)
        broker.evict()
        broker.storage.plan(Fault.STALL)
        pending = cursor.read_entries(3)
        for i in range(3):
            assert broker.ledger.cache.insert(Position(1, i), b"x")
        broker.storage.resume()
        assert texts(pending.result(SECONDS)) == ["0", "1", "2"]


def stalled_readers(broker: Broker) -> list[Future[list[Entry]]]:
    """Two cursors read 0..3 and 2..5 while the storage stalls."""
    first = broker.ledger.open_cursor("a", earliest=True)
    second = broker.ledger.open_cursor("b", earliest=True)
    broker.add(6)
    broker.evict()
    second.seek(Position(1, 2))
    broker.storage.plan(Fault.STALL, Fault.STALL)
    return [first.read_entries(4), second.read_entries(4)]


def test_overlapping_reads_read_nothing_twice() -> None:
    with open_broker() as broker:
        futures = stalled_readers(broker)
        assert broker.storage.reads == [(1, 0, 3), (1, 4, 5)]
        broker.storage.resume(1)
        broker.storage.resume(0)
        assert [texts(future.result(SECONDS)) for future in futures] == [WHOLE[:4], WHOLE[2:]]
        assert broker.ledger.cache.pending.counts()["matched_overlapping_miss_right"] == 2


def test_left_and_right_are_read_at_the_same_time() -> None:
    """#24346: with sequential reads, the second would have come too late to be joined."""
    with open_broker() as broker:
        first, second = (broker.ledger.open_cursor(name, earliest=True) for name in "ab")
        broker.add(6)
        broker.evict()
        first.seek(Position(1, 2))
        broker.storage.plan(*[Fault.STALL] * 3)
        middle, whole = first.read_entries(2), second.read_entries(6)
        assert sorted(broker.storage.reads) == [(1, 0, 1), (1, 2, 3), (1, 4, 5)]
        assert len(broker.storage.stalled) == 3
        for _ in range(3):
            broker.storage.resume()
        assert texts(middle.result(SECONDS)) == ["2", "3"]
        assert texts(whole.result(SECONDS)) == WHOLE


def test_permits_of_split_reads_are_taken_once() -> None:
    """#23869: the missing ranges of an overlapping read took permits again."""
    size, limit = 36, 10_000
    with open_broker(limit=limit) as broker:
        first, second = (broker.ledger.open_cursor(name, earliest=True) for name in "ab")
        broker.add(6, size=size)
        broker.evict()
        second.seek(Position(1, 2))
        broker.storage.plan(Fault.STALL, Fault.STALL)
        futures = [first.read_entries(4), second.read_entries(4)]
        assert broker.factory.limiter.remaining == limit - 2 * 4 * (size + 64)
        broker.storage.resume()
        broker.storage.resume()
        for future in futures:
            for entry in future.result(SECONDS):
                entry.release()


def test_every_read_that_hangs_times_out() -> None:
    """#26081: a newer read replaced the older one in the timeout check, and the older one hung."""
    settings = LedgerSettings(managed_ledger_read_entry_timeout_millis=10)
    with open_broker(settings=settings) as broker:
        futures = []
        cursors = [broker.ledger.open_cursor(name, earliest=True) for name in "ab"]
        broker.add(6)
        broker.evict()
        cursors[1].seek(Position(1, 4))
        broker.storage.plan(Fault.STALL, Fault.STALL)
        for cursor in cursors:
            futures.append(cursor.read_entries(2))
            broker.clock.pass_millis(5)
        broker.factory.expire()
        assert [future.done() for future in futures] == [True, False]
        broker.clock.pass_millis(5)
        broker.factory.expire()
        assert [type(future.exception(SECONDS)) for future in futures] == [ReadTimeoutError] * 2
        # Late answers are ignored, and the next reads get their own.
        again = cursors[0].read_entries(2)
        broker.storage.resume()
        broker.storage.resume()
        assert texts(again.result(SECONDS)) == ["0", "1"]


def test_a_callback_may_do_anything_also_under_a_lock_of_its_own() -> None:
    """#23952: a callback waited for a lock, held by a thread that wanted to join its read."""
    with open_broker() as broker:
        dispatcher = threading.RLock()
        cursors = [broker.ledger.open_cursor(name, earliest=True) for name in "ab"]
        broker.add(6)
        broker.evict()
        broker.storage.plan(Fault.STALL)
        delivered: list[list[str]] = []

        def arrived(read: Future[list[Entry]]) -> None:
            with dispatcher:
                delivered.append(texts(read.result()))
                cursors[1].read_entries(6).add_done_callback(
                    lambda done: delivered.append(texts(done.result()))
                )
                broker.ledger.add_entry(b"more")

        cursors[0].read_entries(6).add_done_callback(arrived)
        with dispatcher:
            other = threading.Thread(target=broker.storage.resume)
            other.start()
            # The completing thread waits for the lock; joining its read needs no lock that it
            # holds.
            joined = broker.ledger.read_entry(Position(1, 3))
        other.join(SECONDS)
        assert not other.is_alive()
        assert texts([joined.result(SECONDS)]) == ["3"]
        assert delivered == [WHOLE, WHOLE]


# Reads ahead, and ledgers that are opened again.


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
