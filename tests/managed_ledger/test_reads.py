"""Reads through the cache, with and without a storage that does what it should."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest

from pulsar_ml import Entry, Position, ReadTimeoutError, StorageError, UsageError
from pulsar_ml.managed_ledger import Fault, LedgerSettings
from tests.managed_ledger.kit import SECONDS, World, read, texts, world

WHOLE = [str(i) for i in range(6)]


def test_what_was_added_is_read_from_the_cache() -> None:
    with world() as made:
        cursor = made.ledger.open_cursor("a")
        made.add(6)
        assert read(cursor) == WHOLE
        assert made.storage.reads == []
        assert read(cursor) == []


def test_without_active_cursors_nothing_is_cached_after_the_grace_period() -> None:
    with world() as made:
        made.add(1)
        made.clock.pass_millis(2000)
        made.add(5)
        cursor = made.ledger.open_cursor("a", earliest=True)
        assert read(cursor) == WHOLE
        assert made.storage.reads == [(1, 1, 5)]


def test_what_is_read_from_the_storage_is_cached_for_those_behind() -> None:
    with world() as made:
        cursors = [made.ledger.open_cursor(name) for name in "abc"]
        made.add(6)
        made.evict()
        entries = cursors[0].read_entries(6).result(SECONDS)
        # The reader itself, and two that have not read it yet.
        assert [entry.expected_reads for entry in entries] == [3] * 6
        assert texts(entries) == WHOLE
        assert read(cursors[1]) == read(cursors[2]) == WHOLE
        assert made.storage.reads == [(1, 0, 5)]


def test_holes_are_read_and_hits_are_not() -> None:
    with world() as made:
        cursor = made.ledger.open_cursor("a")
        made.add(6)
        for first, last in ((1, 2), (4, 4)):
            made.ledger.cache.cached.remove_range((1, first), (1, last))
        assert read(cursor) == WHOLE
        assert made.storage.reads == [(1, 1, 2), (1, 4, 4)]


def test_every_delivered_copy_marks_one_read() -> None:
    with world() as made:
        first, second = made.ledger.open_cursor("a"), made.ledger.open_cursor("b")
        made.add(2)
        for cursor, left in ((first, 1), (second, 0)):
            entries = cursor.read_entries(2).result(SECONDS)
            assert [entry.expected_reads for entry in entries] == [left + 1] * 2
            texts(entries)
            with made.ledger.cache.cached.get((1, 0)) as cached:
                assert cached.expected_reads == left


@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.SHORT, Fault.FOREIGN_INSTEAD])
def test_a_hole_that_fails_lets_the_whole_range_be_read_again_and_counts_nothing(
    fault: Fault,
) -> None:
    with world() as made:
        cursor, _ = made.ledger.open_cursor("a"), made.ledger.open_cursor("b")
        made.add(6)
        made.ledger.cache.cached.remove_range((1, 1), (1, 1))
        made.ledger.cache.cached.remove_range((1, 4), (1, 4))
        # What the second attempt brings has counts of its own; these keep those of the first.
        kept = []
        for hit in made.ledger.cache.cached.get_range((1, 0), (1, 5)):
            with hit:
                kept.append(hit.copy())
        made.storage.plan(Fault.NONE, fault)
        entries = cursor.read_entries(6).result(SECONDS)
        assert made.storage.reads == [(1, 1, 1), (1, 4, 4), (1, 0, 5)]
        # The copies of the first attempt were dropped: nobody read them.
        assert [copy.expected_reads for copy in kept] == [2] * 4
        assert texts(entries) == WHOLE
        for copy in kept:
            copy.release(delivered=False)


def test_the_second_attempt_may_fail_too() -> None:
    with world() as made:
        cursor = made.ledger.open_cursor("a")
        made.add(6)
        made.ledger.cache.cached.remove_range((1, 1), (1, 1))
        made.storage.plan(Fault.FAIL, Fault.FAIL)
        assert isinstance(cursor.read_entries(6).exception(SECONDS), StorageError)
        # The position is as it was.
        assert read(cursor) == WHOLE


@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.SHORT, Fault.FOREIGN_INSTEAD])
def test_with_no_hit_a_failure_is_one(fault: Fault) -> None:
    with world() as made:
        cursor = made.ledger.open_cursor("a")
        made.add(6)
        made.evict()
        made.storage.plan(fault)
        assert isinstance(cursor.read_entries(6).exception(SECONDS), StorageError)
        assert len(made.storage.reads) == 1


def test_foreign_entries_are_neither_delivered_nor_cached() -> None:
    with world() as made:
        cursor = made.ledger.open_cursor("a")
        made.add(7)
        made.evict()
        made.storage.plan(Fault.FOREIGN)
        assert read(cursor, 6) == WHOLE
        assert Position(1, 6) not in made.ledger.cache.cached
        assert Position(2, 0) not in made.ledger.cache.cached
        assert Position(1, 2**32) not in made.ledger.cache.cached


def test_a_single_entry_is_read_and_not_cached() -> None:
    with world() as made:
        made.ledger.open_cursor("a")
        positions = made.add(3)
        made.evict()
        assert texts([made.ledger.read_entry(positions[1]).result(SECONDS)]) == ["1"]
        assert positions[1] not in made.ledger.cache.cached
        assert isinstance(made.ledger.read_entry(Position(1, 3)).exception(SECONDS), UsageError)


def test_an_entry_that_is_cached_already_is_released_all_the_same() -> None:
    """#16979: released only if inserted, a duplicate leaked. The world finds what is left."""
    with world() as made:
        cursor = made.ledger.open_cursor("a")
        made.add(3)
        made.evict()
        made.storage.plan(Fault.STALL)
        pending = cursor.read_entries(3)
        for i in range(3):
            assert made.ledger.cache.insert(Position(1, i), b"x")
        made.storage.resume()
        assert texts(pending.result(SECONDS)) == ["0", "1", "2"]


def stalled_readers(made: World) -> list[Future[list[Entry]]]:
    """Two cursors read 0..3 and 2..5 while the storage says nothing."""
    first = made.ledger.open_cursor("a", earliest=True)
    second = made.ledger.open_cursor("b", earliest=True)
    made.add(6)
    made.evict()
    second.seek(Position(1, 2))
    made.storage.plan(Fault.STALL, Fault.STALL)
    return [first.read_entries(4), second.read_entries(4)]


def test_overlapping_reads_read_nothing_twice() -> None:
    with world() as made:
        futures = stalled_readers(made)
        assert made.storage.reads == [(1, 0, 3), (1, 4, 5)]
        made.storage.resume(1)
        made.storage.resume(0)
        assert [texts(future.result(SECONDS)) for future in futures] == [WHOLE[:4], WHOLE[2:]]
        assert made.ledger.cache.pending.counts()["matched_overlapping_miss_right"] == 2


def test_left_and_right_are_read_at_the_same_time() -> None:
    """#24346: one after the other, the second would have come too late to be joined."""
    with world() as made:
        first, second = (made.ledger.open_cursor(name, earliest=True) for name in "ab")
        made.add(6)
        made.evict()
        first.seek(Position(1, 2))
        made.storage.plan(*[Fault.STALL] * 3)
        middle, whole = first.read_entries(2), second.read_entries(6)
        assert sorted(made.storage.reads) == [(1, 0, 1), (1, 2, 3), (1, 4, 5)]
        assert len(made.storage.stalled) == 3
        for _ in range(3):
            made.storage.resume()
        assert texts(middle.result(SECONDS)) == ["2", "3"]
        assert texts(whole.result(SECONDS)) == WHOLE


def test_permits_of_split_reads_are_taken_once() -> None:
    """#23869: the parts that an overlapping read was missing took permits again."""
    size, limit = 36, 10_000
    with world(limit=limit) as made:
        first, second = (made.ledger.open_cursor(name, earliest=True) for name in "ab")
        made.add(6, size=size)
        made.evict()
        second.seek(Position(1, 2))
        made.storage.plan(Fault.STALL, Fault.STALL)
        futures = [first.read_entries(4), second.read_entries(4)]
        assert made.factory.limiter.remaining == limit - 2 * 4 * (size + 64)
        made.storage.resume()
        made.storage.resume()
        for future in futures:
            for entry in future.result(SECONDS):
                entry.release()


def test_every_read_that_hangs_times_out() -> None:
    """#26081: a newer read took the older one's place under the watch, and the older hung for ever."""
    settings = LedgerSettings(managed_ledger_read_entry_timeout_millis=10)
    with world(settings=settings) as made:
        futures = []
        cursors = [made.ledger.open_cursor(name, earliest=True) for name in "ab"]
        made.add(6)
        made.evict()
        cursors[1].seek(Position(1, 4))
        made.storage.plan(Fault.STALL, Fault.STALL)
        for cursor in cursors:
            futures.append(cursor.read_entries(2))
            made.clock.pass_millis(5)
        made.factory.expire()
        assert [future.done() for future in futures] == [True, False]
        made.clock.pass_millis(5)
        made.factory.expire()
        assert [type(future.exception(SECONDS)) for future in futures] == [ReadTimeoutError] * 2
        # The answers come after all: they go nowhere, and the next reads get their own.
        again = cursors[0].read_entries(2)
        made.storage.resume()
        made.storage.resume()
        assert texts(again.result(SECONDS)) == ["0", "1"]


def test_a_callback_may_do_anything_also_under_a_lock_of_its_own() -> None:
    """#23952: a callback that took the dispatcher's lock met a thread that held it and wanted to join."""
    with world() as made:
        dispatcher = threading.RLock()
        cursors = [made.ledger.open_cursor(name, earliest=True) for name in "ab"]
        made.add(6)
        made.evict()
        made.storage.plan(Fault.STALL)
        said: list[list[str]] = []

        def arrived(read: Future[list[Entry]]) -> None:
            with dispatcher:
                said.append(texts(read.result()))
                cursors[1].read_entries(6).add_done_callback(
                    lambda done: said.append(texts(done.result()))
                )
                made.ledger.add_entry(b"more")

        cursors[0].read_entries(6).add_done_callback(arrived)
        with dispatcher:
            other = threading.Thread(target=made.storage.resume)
            other.start()
            # The completing thread waits for the lock; joining its read needs nothing that it holds.
            joined = made.ledger.read_entry(Position(1, 3))
        other.join(SECONDS)
        assert not other.is_alive()
        assert texts([joined.result(SECONDS)]) == ["3"]
        assert said == [WHOLE, WHOLE]
