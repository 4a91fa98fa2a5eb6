"""The range cache: put, get, ranges, invalidation, closing."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_ml import (
    ClosedError,
    Entry,
    EntryCacheManager,
    InvalidPositionError,
    InvalidSizeError,
    PositionMismatchError,
    RangeCache,
    Removed,
    UsageError,
)
from tests.core.conftest import FIXED, assert_nothing_in_use
from tests.core.interrupt import call_interrupted
from tests.core.present import present
from tests.core.test_positions import INT64_MAX, INT64_MIN, bounds, stored

FIRST, LAST = (INT64_MIN, INT64_MIN), (INT64_MAX, INT64_MAX)
SLICE = 2**16  # removals between two looks at pending signals


def positions(entries: list[Entry]) -> list[tuple[int, int]]:
    found = [(entry.ledger_id, entry.entry_id) for entry in entries]
    for entry in entries:
        entry.release()
    return found


def fill(cache: RangeCache, count: int, ledger_id: int = 1) -> None:
    for i in range(count):
        assert cache.put((ledger_id, i), b"%d" % i)


# One position ------------------------------------------------------------------------------------


def test_put_then_get(cache: RangeCache) -> None:
    assert cache.put((1, 2), b"payload") is True
    assert (1, 2) in cache
    assert cache.size == 7
    with present(cache.get((1, 2))) as entry:
        assert entry.position == (1, 2)
        assert bytes(entry) == b"payload"
        assert entry.references == 2


def test_a_miss_is_none(cache: RangeCache) -> None:
    cache.put((1, 2), b"payload")
    for at in [(1, 1), (1, 3), (2, 2), (1, 2 + 64), (1, 2 + 4096), LAST]:
        assert cache.get(at) is None
        assert at not in cache


def test_a_put_on_a_taken_position_changes_the_expected_reads_only(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    cache.put((1, 2), b"first", expected_reads=1, timestamp_ns=10)
    before = manager.objects_in_use()
    assert cache.put((1, 2), b"second, longer", expected_reads=5, timestamp_ns=99) is False
    with manager.entry((1, 2), b"third") as entry:
        assert cache.put((1, 2), entry) is False
        assert entry.references == 1
    assert manager.objects_in_use() == before
    assert cache.size == 5
    with present(cache.get((1, 2))) as entry:
        assert bytes(entry) == b"first"
        assert entry.expected_reads == 0  # as of the third, which was released, too
        assert entry.references == 2


def test_a_put_of_an_entry_leaves_the_reference_with_the_caller(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    entry = manager.entry((1, 2), b"payload", expected_reads=2)
    assert cache.put((1, 2), entry)
    assert entry.references == 1  # the cache took a copy of its own
    entry.expect_read()
    entry.release()
    with present(cache.get((1, 2))) as cached:
        assert bytes(cached) == b"payload"
        assert cached.expected_reads == 2  # 2 + 1, less the read that the release marked


def test_an_entry_goes_only_to_its_own_position(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    with manager.entry((1, 2), b"payload") as entry:
        before = manager.objects_in_use()
        for at in [(1, 3), (2, 2)]:
            with pytest.raises(PositionMismatchError, match=f"not the one at {at[0]}:{at[1]}"):
                cache.put(at, entry)
        assert manager.objects_in_use() == before
        assert entry.references == 1
    assert cache.size == 0


def test_one_entry_can_be_in_several_caches_of_its_manager(manager: EntryCacheManager) -> None:
    first, second = manager.range_cache("first"), manager.range_cache("second")
    with manager.entry((1, 2), b"payload") as entry:
        assert first.put((1, 2), entry)
        assert second.put((1, 2), entry)
    first.clear()
    with present(second.get((1, 2))) as entry:
        assert bytes(entry) == b"payload"


@pytest.mark.parametrize("at", [(0, 0), (0, INT64_MAX), (INT64_MAX, 0), LAST])
def test_the_outermost_positions_are_positions_like_others(
    cache: RangeCache, at: tuple[int, int]
) -> None:
    assert cache.put(at, b"x")
    assert not cache.put(at, b"x")
    assert positions(cache.get_range(FIRST, LAST)) == [at]
    assert cache.clear() == (1, 1)
    assert at not in cache


@pytest.mark.parametrize("timestamp", [2**63, -(2**63) - 1])
def test_a_timestamp_beyond_64_bits_is_an_invalid_size(cache: RangeCache, timestamp: int) -> None:
    with pytest.raises(InvalidSizeError, match=r"timestamp_ns=.* is outside -\d+\.\.\d+"):
        cache.put((1, 1), b"x", timestamp_ns=timestamp)
    assert (1, 1) not in cache


def test_a_put_takes_bytes_or_an_entry(cache: RangeCache) -> None:
    value: Any
    wrong: Any
    for value in ["text", None, 5]:
        with pytest.raises(TypeError, match="bytes-like"):
            cache.put((1, 1), value)
    for wrong in [1.5, "now"]:
        with pytest.raises(TypeError, match="integer"):
            cache.put((1, 1), b"x", timestamp_ns=wrong)
    assert (1, 1) not in cache


# Ranges ------------------------------------------------------------------------------------------


@FIXED
@given(st.sets(stored, max_size=30), bounds, bounds)
def test_a_range_is_what_filtering_a_sorted_dict_gives(
    keys: set[tuple[int, int]], first: tuple[int, int], last: tuple[int, int]
) -> None:
    with EntryCacheManager() as manager:
        cache = manager.range_cache("ledger")
        for key in keys:
            assert cache.put(key, b"%d:%d" % key)
        if first > last:
            with pytest.raises(InvalidPositionError, match="ends before it begins"):
                cache.get_range(first, last)
            first, last = last, first
        expected = sorted(key for key in keys if first <= key <= last)
        with_bytes = [
            (tuple(entry.position), bytes(entry)) for entry in cache.get_range(first, last)
        ]
        assert with_bytes == [(key, b"%d:%d" % key) for key in expected]
        visited: list[tuple[int, int]] = []
        assert cache.visit_range(
            first, last, lambda e: visited.append((e.ledger_id, e.entry_id))
        ) == len(expected)
        assert visited == expected


@FIXED
@given(st.sets(stored, max_size=30), bounds, bounds, st.booleans())
def test_remove_range_takes_out_what_the_naive_one_does(
    keys: set[tuple[int, int]], first: tuple[int, int], last: tuple[int, int], inclusive: bool
) -> None:
    with EntryCacheManager() as manager:
        cache = manager.range_cache("ledger")
        for key in keys:
            cache.put(key, b"%d:%d" % key)
        first, last = sorted([first, last])
        gone = {key for key in keys if first <= key and (key < last or (inclusive and key == last))}
        size = sum(len(b"%d:%d" % key) for key in gone)
        assert cache.remove_range(first, last, last_inclusive=inclusive) == (len(gone), size)
        assert positions(cache.get_range(FIRST, LAST)) == sorted(keys - gone)
        assert cache.size == sum(len(b"%d:%d" % key) for key in keys - gone)


@pytest.mark.parametrize("span", [63, 64, 65, 4095, 4096, 4097])
def test_dense_ranges_across_page_and_branch_edges(cache: RangeCache, span: int) -> None:
    fill(cache, span + 3)
    assert positions(cache.get_range((1, 1), (1, span))) == [(1, i) for i in range(1, span + 1)]
    assert cache.remove_range((1, 1), (1, span), last_inclusive=False).entries == span - 1
    assert positions(cache.get_range(FIRST, LAST)) == [
        (1, i) for i in (0, span, span + 1, span + 2)
    ]


def test_an_exclusive_end_of_nothing_removes_nothing(cache: RangeCache) -> None:
    fill(cache, 3)
    assert cache.remove_range((1, 1), (1, 1), last_inclusive=False) == (0, 0)
    assert cache.remove_range((0, 0), (0, 0), last_inclusive=False) == (0, 0)
    assert cache.remove_range(FIRST, (0, -5), last_inclusive=False) == (0, 0)
    assert cache.remove_range(FIRST, FIRST, last_inclusive=False) == (0, 0)
    assert cache.remove_range((1, 1), (1, 1)) == (1, 1)


@pytest.mark.parametrize(
    "before", [(-1, 0), (0, -1), (0, 0), (0, 3), (1, -1), (1, 0), (1, 1), (2, 0), (9, 9)]
)
def test_invalidation_takes_out_what_is_before_a_position(
    manager: EntryCacheManager, before: tuple[int, int]
) -> None:
    cache = manager.range_cache("before")
    positions = [(0, 0), (0, 5), (1, 0), (1, 1), (3, 0)]
    for at in positions:
        cache.put(at, b"12")
    gone = sum(at < before for at in positions)
    assert cache.invalidate_entries(before) == (gone, 2 * gone)
    assert [at in cache for at in positions] == [at >= before for at in positions]


def test_an_exclusive_end_at_the_start_of_a_ledger_removes_the_ledgers_before(
    cache: RangeCache,
) -> None:
    cache.put((1, INT64_MAX), b"x")
    cache.put((2, 0), b"x")
    assert cache.remove_range((0, 0), (2, 0), last_inclusive=False) == (1, 1)
    assert positions(cache.get_range(FIRST, LAST)) == [(2, 0)]
    cache.put((1, 5), b"x")
    assert cache.remove_range((0, 0), (2, -7), last_inclusive=False) == (1, 1)


def test_a_range_that_ends_before_it_begins_changes_nothing(cache: RangeCache) -> None:
    fill(cache, 3)
    for call in (cache.get_range, cache.remove_range, cache.iterate):
        with pytest.raises(InvalidPositionError, match="ends before it begins"):
            call((1, 2), (1, 1))
    with pytest.raises(InvalidPositionError, match="ends before it begins"):
        cache.visit_range((1, 2), (1, 1), print)
    assert cache.size == 3


def test_entries_of_a_range_carry_a_reference_each(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    fill(cache, 5)
    entries = cache.get_range((1, 1), (1, 3))
    assert [entry.references for entry in entries] == [2, 2, 2]
    cache.clear()
    assert [bytes(entry) for entry in entries] == [b"1", b"2", b"3"]
    assert manager.objects_in_use()["entries"] == 3
    del entries
    assert manager.objects_in_use()["entries"] == 0


# Visitors and iterators --------------------------------------------------------------------------


def test_the_visitor_gets_the_entry_only_for_the_call(cache: RangeCache) -> None:
    fill(cache, 300)
    kept: list[Entry] = []
    assert cache.visit_range((1, 0), (1, 299), kept.append) == 300
    assert all(entry.released for entry in kept)


def test_the_visitor_may_keep_a_copy_or_release_the_entry(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    fill(cache, 3)
    copies: list[Entry] = []
    cache.visit_range((1, 0), (1, 9), lambda entry: copies.append(entry.copy()))
    assert cache.visit_range((1, 0), (1, 9), lambda entry: entry.release()) == 3
    cache.clear()
    assert [bytes(entry) for entry in copies] == [b"0", b"1", b"2"]
    assert manager.objects_in_use()["entries"] == 3


def test_a_visitor_that_raises_leaves_no_reference_behind(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    fill(cache, 600)
    seen: list[int] = []

    def visitor(entry: Entry) -> None:
        seen.append(entry.entry_id)
        if len(seen) == 300:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        cache.visit_range((1, 0), (1, 599), visitor)
    assert seen == list(range(300))
    cache.clear()
    assert manager.objects_in_use()["entries"] == 0


def test_the_visitor_may_clear_the_cache(manager: EntryCacheManager, cache: RangeCache) -> None:
    fill(cache, 600)
    seen: list[bytes] = []

    def visitor(entry: Entry) -> None:
        cache.clear()
        manager.evict_bytes(1)
        seen.append(bytes(entry))

    count = cache.visit_range((1, 0), (1, 599), visitor)
    # The entries that were fetched before the first call are still whole; nothing after them is
    # left.
    assert 0 < count < 600
    assert seen == [b"%d" % i for i in range(count)]
    assert manager.objects_in_use()["entries"] == 0


def test_the_visitor_may_put_ahead_of_itself(cache: RangeCache) -> None:
    cache.put((1, 0), b"x")

    def visitor(entry: Entry) -> None:
        if entry.ledger_id < 600:
            cache.put((entry.ledger_id + 1, 0), b"x")

    assert cache.visit_range(FIRST, LAST, visitor) >= 1
    while cache.visit_range(FIRST, LAST, visitor) < 600:
        pass
    assert cache.size == 600


def test_the_visitor_may_close_the_cache(cache: RangeCache) -> None:
    fill(cache, 3)
    assert cache.visit_range((1, 0), (1, 9), lambda entry: cache.close()) == 3
    assert cache.closed


@pytest.mark.parametrize("taken", [0, 1, 255, 256, 257, 600])
def test_an_iterator_left_early_leaks_nothing(
    manager: EntryCacheManager, cache: RangeCache, taken: int
) -> None:
    fill(cache, 600)
    iterator = cache.iterate((1, 0), (1, 599))
    assert iter(iterator) is iterator
    entries = [next(iterator) for _ in range(taken)]
    del iterator
    cache.clear()
    assert manager.objects_in_use()["entries"] == taken
    del entries
    assert manager.objects_in_use()["entries"] == 0


def test_an_iterator_that_ended_stays_at_its_end(cache: RangeCache) -> None:
    fill(cache, 2)
    iterator = cache.iterate((1, 0), (1, 599))
    assert positions(list(iterator)) == [(1, 0), (1, 1)]
    cache.put((1, 599), b"late")
    assert next(iterator, None) is None
    assert positions(cache.get_range((1, 2), (1, 599))) == [(1, 599)]


def test_an_iterator_in_a_cycle_is_collected_with_its_entries(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    fill(cache, 300)
    cycle: list[Any] = [cache.iterate((1, 0), (1, 299))]
    next(cycle[0]).release()
    cycle.append(cycle)
    del cycle
    gc.collect()
    cache.clear()
    assert manager.objects_in_use()["entries"] == 0


def test_threads_that_share_an_iterator_get_an_error_or_an_entry(cache: RangeCache) -> None:
    fill(cache, 5_000)
    iterator = cache.iterate((1, 0), (1, 4_999))
    found: list[list[int]] = [[] for _ in range(4)]

    def take(mine: list[int]) -> None:
        while True:
            try:
                with next(iterator) as entry:
                    mine.append(entry.entry_id)
            except UsageError as error:
                assert "one for each thread" in str(error)
            except StopIteration:
                return

    threads = [threading.Thread(target=take, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(chain.from_iterable(found)) == list(range(5_000))


# Closing -----------------------------------------------------------------------------------------

CLOSED_USES: dict[str, Callable[[RangeCache], object]] = {
    "put": lambda cache: cache.put((1, 1), b"x"),
    "put_all": lambda cache: cache.put_all([(1, 1)], [b"x"]),
    "get": lambda cache: cache.get((1, 1)),
    "get_all": lambda cache: cache.get_all([(1, 1)]),
    "in": lambda cache: (1, 1) in cache,
    "get_range": lambda cache: cache.get_range((1, 1), (1, 1)),
    "visit_range": lambda cache: cache.visit_range((1, 1), (1, 1), print),
    "iterate": lambda cache: cache.iterate((1, 1), (1, 1)),
    "iterate_cached": lambda cache: cache.iterate_cached((1, 1), (1, 1)),
    "remove_all": lambda cache: cache.remove_all([(1, 1)]),
    "remove_range": lambda cache: cache.remove_range((1, 1), (1, 1)),
    "invalidate_entries": lambda cache: cache.invalidate_entries((1, 1)),
    "clear": lambda cache: cache.clear(),
}


def test_the_uses_above_are_all_there_are() -> None:
    members = {name for name in dir(RangeCache) if not name.startswith("_")}
    assert members - {"closed", "close", "size", "name", "count_misses"} <= set(CLOSED_USES)


@pytest.mark.parametrize("use", CLOSED_USES)
def test_every_use_of_a_closed_cache_is_an_error(cache: RangeCache, use: str) -> None:
    cache.close()
    with pytest.raises(ClosedError, match=r"range cache 'persistent://.*' is closed") as raised:
        CLOSED_USES[use](cache)
    assert isinstance(raised.value, RuntimeError)


def test_close_invalidates_and_says_what(manager: EntryCacheManager, cache: RangeCache) -> None:
    fill(cache, 3)
    held = present(cache.get((1, 1)))
    assert cache.close() == Removed(3, 3)
    assert cache.closed
    assert cache.close() == Removed(0, 0)
    assert cache.size == 0
    assert repr(cache) == "<RangeCache 'persistent://public/default/orders' closed>"
    assert bytes(held) == b"1"
    held.release()
    assert not manager.closed


def test_a_running_iterator_of_a_closed_cache_ends(cache: RangeCache) -> None:
    fill(cache, 600)
    iterator = cache.iterate((1, 0), (1, 599))
    next(iterator).release()
    cache.close()
    rest = positions(list(iterator))
    assert rest == [(1, i) for i in range(1, 1 + len(rest))]
    assert len(rest) < 599


def test_caches_cannot_be_made_by_hand() -> None:
    with pytest.raises(TypeError, match=r"EntryCacheManager\.range_cache"):
        RangeCache()


def test_a_cache_shows_its_name_and_size(cache: RangeCache) -> None:
    fill(cache, 3)
    assert cache.name == "persistent://public/default/orders"
    assert repr(cache) == "<RangeCache 'persistent://public/default/orders' 3 bytes>"


# Interrupts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["clear", "close"])
def test_an_interrupted_removal_is_finished_by_the_next(
    manager: EntryCacheManager, cache: RangeCache, call: str
) -> None:
    for i in range(SLICE + 100):
        cache.put((1, i), b"ab")
    call_interrupted(getattr(cache, call))
    assert cache.size == 200
    assert getattr(cache, call)() == (100, 200)
    assert manager.size == 0


def test_dropping_a_cache_gives_everything_back() -> None:
    manager = EntryCacheManager()
    cache = manager.range_cache("ledger")
    fill(cache, 100)
    manager.remove_range_cache("ledger")
    assert manager.objects_in_use()["range_caches"] == 1
    del cache
    assert manager.objects_in_use()["range_caches"] == 0
    manager.close()
    assert_nothing_in_use(manager)
