"""The manager: caches by name, eviction in queue order, settings, closing, accounts."""

from __future__ import annotations

import gc
import threading
from functools import partial
from typing import Any

import pytest

from pulsar_ml import ClosedError, EntryCacheManager, Evicted, InvalidSizeError, RangeCache
from tests.core.conftest import assert_nothing_in_use
from tests.core.interrupt import call_interrupted
from tests.core.present import present
from tests.core.test_range_cache import FIRST, LAST, fill, positions

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def cached(cache: RangeCache) -> list[tuple[int, int]]:
    """The cached entries, without an access to them."""
    return [(1, i) for i in range(20) if (1, i) in cache]


# Caches by name ----------------------------------------------------------------------------------


def test_a_name_has_one_open_cache(manager: EntryCacheManager) -> None:
    first = manager.range_cache("a")
    assert manager.range_cache("a") is first
    assert manager.range_cache("b") is not first
    assert (first.name, manager.range_cache("b").name) == ("a", "b")


def test_a_closed_cache_is_replaced_by_a_new_one(manager: EntryCacheManager) -> None:
    old = manager.range_cache("a")
    old.put((1, 1), b"x")
    old.close()
    new = manager.range_cache("a")
    assert new is not old
    assert (new.closed, new.size, (1, 1) in new) == (False, 0, False)


def test_caches_of_one_manager_are_apart(manager: EntryCacheManager) -> None:
    a, b = manager.range_cache("a"), manager.range_cache("b")
    assert a.put((1, 1), b"of a")
    assert b.get((1, 1)) is None
    assert b.put((1, 1), b"of b, longer")
    assert (a.size, b.size, manager.size) == (4, 12, 16)
    assert b.clear() == (1, 12)
    with present(a.get((1, 1))) as entry:
        assert bytes(entry) == b"of a"


def test_remove_range_cache_closes_and_forgets(manager: EntryCacheManager) -> None:
    cache = manager.range_cache("a")
    fill(cache, 3)
    assert manager.remove_range_cache("a") == (3, 3)
    assert cache.closed
    with pytest.raises(KeyError, match=r"no range cache 'a'; open ones: \[\]"):
        manager.remove_range_cache("a")
    assert manager.range_cache("a") is not cache


@pytest.mark.parametrize("name", [None, 5, b"bytes"], ids=repr)
def test_a_name_is_a_string(manager: EntryCacheManager, name: Any) -> None:
    for call in (manager.range_cache, manager.remove_range_cache):
        with pytest.raises(TypeError, match="name"):
            call(name)


def test_any_string_is_a_name(manager: EntryCacheManager) -> None:
    for name in ["", "a\0b", "\N{SNOWMAN}", "x" * 10_000]:
        assert manager.range_cache(name).name == name


# The time pass -----------------------------------------------------------------------------------


def test_a_time_pass_takes_what_is_older_and_nothing_else(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    for i in range(5):
        cache.put((1, i), b"ab", timestamp_ns=10 * i)
    assert manager.evict_entries_before(20, now_ns=100) == Evicted(2, 4, 0, 0)
    assert cached(cache) == [(1, 2), (1, 3), (1, 4)]
    assert manager.evict_entries_before(21, now_ns=100) == Evicted(1, 2, 0, 0)
    assert manager.evict_entries_before(0, now_ns=100) == Evicted(0, 0, 0, 0)


def test_a_time_pass_ends_at_the_first_that_is_not_older(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    for i, timestamp in enumerate([10, 50, 20]):
        cache.put((1, i), b"x", timestamp_ns=timestamp)
    assert manager.evict_entries_before(40, now_ns=100) == Evicted(1, 1, 0, 0)
    assert cached(cache) == [(1, 1), (1, 2)]


def test_the_default_timestamp_is_the_monotonic_clock(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    import time

    before = time.monotonic_ns()
    cache.put((1, 1), b"x")
    after = time.monotonic_ns()
    assert manager.evict_entries_before(before).entries == 0
    assert manager.evict_entries_before(after + 1).entries == 1


def test_what_is_kept_gets_the_clock_by_default(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    import time

    cache.put((1, 1), b"x", timestamp_ns=0, expected_reads=1)
    before = time.monotonic_ns()
    assert manager.evict_entries_before(before).requeued == 1
    assert manager.evict_entries_before(before) == Evicted(0, 0, 0, 0)


def test_times_compare_by_their_difference(manager: EntryCacheManager, cache: RangeCache) -> None:
    cache.put((1, 0), b"x", timestamp_ns=-10)
    assert manager.evict_entries_before(-10, now_ns=0).entries == 0
    assert manager.evict_entries_before(-9, now_ns=0).entries == 1
    cache.put((1, 1), b"x", timestamp_ns=INT64_MAX)
    assert manager.evict_entries_before(INT64_MAX, now_ns=0).entries == 0
    # One step beyond the largest number is the smallest.
    assert manager.evict_entries_before(INT64_MIN, now_ns=0).entries == 1


# The size pass -----------------------------------------------------------------------------------


def test_a_size_pass_stops_as_soon_as_enough_is_free(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    for i in range(5):
        cache.put((1, i), b"abc", timestamp_ns=0)
    assert manager.evict_bytes(4, now_ns=1) == Evicted(2, 6, 0, 0)
    assert manager.evict_bytes(3, now_ns=1) == Evicted(1, 3, 0, 0)
    assert cached(cache) == [(1, 3), (1, 4)]
    assert manager.evict_bytes(INT64_MAX, now_ns=1) == Evicted(2, 6, 0, 0)
    assert manager.evict_bytes(1, now_ns=1) == Evicted(0, 0, 0, 0)


def test_passes_go_over_all_caches_in_the_order_of_insertion(manager: EntryCacheManager) -> None:
    caches = [manager.range_cache(name) for name in "abc"]
    for i in range(9):
        caches[i % 3].put((1, i), b"x")
    for gone in range(1, 10):
        assert manager.evict_bytes(1).entries == 1
        assert sorted(at for cache in caches for at in cached(cache)) == [
            (1, i) for i in range(gone, 9)
        ]


@pytest.mark.parametrize("size", [0, -1, INT64_MAX + 1, INT64_MIN])
def test_a_size_pass_needs_a_positive_size(
    manager: EntryCacheManager, cache: RangeCache, size: int
) -> None:
    fill(cache, 1)
    with pytest.raises(InvalidSizeError, match=f"size_to_free={size} must be above 0"):
        manager.evict_bytes(size)
    assert cache.size == 1


@pytest.mark.parametrize("wrong", [1.5, "1", None], ids=repr)
def test_sizes_and_times_are_integers(
    manager: EntryCacheManager, cache: RangeCache, wrong: Any
) -> None:
    fill(cache, 1)
    with pytest.raises(TypeError, match="integer"):
        manager.evict_bytes(wrong)
    if wrong is not None:  # None is the clock
        with pytest.raises(TypeError, match="integer"):
            manager.evict_entries_before(wrong)
        with pytest.raises(TypeError, match="integer"):
            manager.evict_entries_before(INT64_MAX, now_ns=wrong)
        with pytest.raises(TypeError, match="integer"):
            manager.evict_bytes(1, now_ns=wrong)
    assert cache.size == 1


@pytest.mark.parametrize("time", [2**63, -(2**63) - 1])
def test_times_fit_64_bits(manager: EntryCacheManager, cache: RangeCache, time: int) -> None:
    fill(cache, 1)
    with pytest.raises(InvalidSizeError, match=r"timestamp_ns=.* is outside -\d+\.\.\d+"):
        manager.evict_entries_before(time)
    with pytest.raises(InvalidSizeError, match=r"now_ns=.* is outside -\d+\.\.\d+"):
        manager.evict_entries_before(0, now_ns=time)
    with pytest.raises(InvalidSizeError, match=r"now_ns=.* is outside -\d+\.\.\d+"):
        manager.evict_bytes(1, now_ns=time)
    assert cache.size == 1


# Kept entries ------------------------------------------------------------------------------------


def test_a_read_since_the_last_pass_keeps_an_entry_once(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    for i in range(3):
        cache.put((1, i), b"x", timestamp_ns=0)
    present(cache.get((1, 0))).release()
    assert manager.evict_entries_before(10, now_ns=20) == Evicted(2, 2, 1, 0)
    assert manager.evict_entries_before(20, now_ns=30) == Evicted(0, 0, 0, 0)
    assert manager.evict_entries_before(21, now_ns=30) == Evicted(1, 1, 0, 0)


def test_a_range_read_marks_and_a_look_does_not(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    for i in range(4):
        cache.put((1, i), b"x", timestamp_ns=0)
    assert (1, 0) in cache
    positions(cache.get_range((1, 1), (1, 1)))
    cache.visit_range((1, 2), (1, 2), lambda entry: None)
    cache.put((1, 3), b"duplicate")
    assert manager.evict_entries_before(10, now_ns=20) == Evicted(2, 2, 2, 0)
    assert cached(cache) == [(1, 1), (1, 2)]


def test_expected_reads_keep_an_entry_so_often(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    manager.configure(max_requeue_count=2, extend_ttl_of_recently_accessed=True)
    cache.put((1, 0), b"x", timestamp_ns=0, expected_reads=1)
    assert manager.evict_entries_before(1, now_ns=1) == Evicted(0, 0, 1, 0)
    assert manager.evict_entries_before(2, now_ns=2) == Evicted(0, 0, 1, 0)
    assert manager.evict_entries_before(3, now_ns=3) == Evicted(1, 1, 0, 0)


def test_one_size_pass_extends_an_entry_once(manager: EntryCacheManager, cache: RangeCache) -> None:
    cache.put((1, 0), b"x", expected_reads=1)
    assert manager.evict_bytes(1) == Evicted(1, 1, 1, 0)


def test_an_entry_goes_once_its_reads_happened(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    manager.configure(max_requeue_count=65535, extend_ttl_of_recently_accessed=False)
    cache.put((1, 0), b"x", timestamp_ns=0, expected_reads=2)
    for now in range(1, 4):
        assert manager.evict_entries_before(now, now_ns=now).requeued == 1
    for _ in range(2):
        with present(cache.get((1, 0))) as entry:
            entry.copy().release()
    assert manager.evict_entries_before(4, now_ns=4) == Evicted(1, 1, 0, 0)


def test_a_new_entry_does_not_inherit_the_mark_of_an_old_one(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    for _ in range(3):
        cache.put((1, 0), b"x", timestamp_ns=0)
        present(cache.get((1, 0))).release()
        cache.clear()
        assert manager.evict_entries_before(1, now_ns=1) == Evicted(0, 0, 0, 1)
    # The wrapper is used again.
    cache.put((1, 0), b"x", timestamp_ns=0)
    assert manager.evict_entries_before(1, now_ns=1) == Evicted(1, 1, 0, 0)


def test_both_settings_off_keep_nothing() -> None:
    with EntryCacheManager(max_requeue_count=0, extend_ttl_of_recently_accessed=False) as manager:
        cache = manager.range_cache("a")
        cache.put((1, 0), b"x", expected_reads=9)
        present(cache.get((1, 0))).release()
        assert manager.evict_bytes(1) == Evicted(1, 1, 0, 0)


def test_what_is_kept_goes_to_the_tail(manager: EntryCacheManager, cache: RangeCache) -> None:
    for i in range(3):
        cache.put((1, i), b"x", timestamp_ns=0)
    present(cache.get((1, 0))).release()
    assert manager.evict_bytes(1, now_ns=5) == Evicted(1, 1, 1, 0)
    assert cached(cache) == [(1, 0), (1, 2)]
    assert manager.evict_bytes(1, now_ns=6) == Evicted(1, 1, 0, 0)
    assert cached(cache) == [(1, 0)]


def test_invalidated_entries_are_dropped_and_counted_as_missing(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    for i in range(5):
        cache.put((1, i), b"x", timestamp_ns=0)
    cache.remove_range((1, 0), (1, 2))
    assert manager.objects_in_use()["wrappers"] == 5
    assert manager.evict_entries_before(0, now_ns=1) == Evicted(0, 0, 0, 3)
    assert manager.objects_in_use()["wrappers"] == 2
    assert cached(cache) == [(1, 3), (1, 4)]


def test_a_held_entry_outlives_its_eviction(manager: EntryCacheManager, cache: RangeCache) -> None:
    cache.put((1, 0), b"payload")
    entry = present(cache.get((1, 0)))
    manager.configure(max_requeue_count=0, extend_ttl_of_recently_accessed=False)
    assert manager.evict_bytes(1).entries == 1
    assert (bytes(entry), entry.references) == (b"payload", 1)
    entry.release()


# Interrupts and other threads --------------------------------------------------------------------


def test_an_interrupt_ends_a_pass_that_would_go_on(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    manager.configure(max_requeue_count=65535, extend_ttl_of_recently_accessed=False)
    count = 70_000
    for i in range(count):
        cache.put((1, i), b"x", timestamp_ns=0, expected_reads=1)
    # Either pass looks for signals after 65,536 entries, all of them kept.
    call_interrupted(partial(manager.evict_bytes, 1, now_ns=0))
    call_interrupted(partial(manager.evict_entries_before, 1, now_ns=0))
    assert cache.size == count
    manager.configure(max_requeue_count=0, extend_ttl_of_recently_accessed=False)
    assert manager.evict_bytes(count) == Evicted(count, count, 0, 0)


def test_another_thread_runs_while_a_pass_does(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    """Entries that another thread clears during a pass are gone when the pass comes round again."""
    manager.configure(max_requeue_count=65535, extend_ttl_of_recently_accessed=False)
    count = 100_000

    def attempt() -> tuple[Evicted, int]:
        for i in range(count):
            cache.put((1, i), b"x", timestamp_ns=0, expected_reads=1)
        begin = threading.Event()
        cleared: list[int] = []

        def clear() -> None:
            begin.wait()
            cleared.append(cache.clear().entries)

        other = threading.Thread(target=clear)
        other.start()
        begin.set()
        evicted = manager.evict_bytes(INT64_MAX, now_ns=0)
        other.join()
        assert (evicted.entries + cleared[0], cache.size) == (count, 0)
        return evicted, cleared[0]

    # Where one is done before the other begins, nothing is shown.
    evicted, cleared = attempt()
    while not evicted.requeued or not cleared:
        evicted, cleared = attempt()


# Settings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [-1, 65536, 2**40])
def test_a_requeue_count_outside_its_range_is_an_invalid_size(
    manager: EntryCacheManager, count: int
) -> None:
    with pytest.raises(InvalidSizeError, match=rf"max_requeue_count={count} is outside 0\.\.65535"):
        EntryCacheManager(max_requeue_count=count)
    with pytest.raises(InvalidSizeError, match=rf"max_requeue_count={count} is outside 0\.\.65535"):
        manager.configure(max_requeue_count=count, extend_ttl_of_recently_accessed=True)


def test_settings_are_keywords(manager: EntryCacheManager) -> None:
    with pytest.raises(TypeError):
        EntryCacheManager(*[5])
    with pytest.raises(TypeError):
        manager.configure(*[5, True])


# Closing -----------------------------------------------------------------------------------------


def test_a_cache_is_looked_up_without_being_made(manager: EntryCacheManager) -> None:
    assert manager.get("a") is None
    cache = manager.range_cache("a")
    assert manager.get("a") is cache
    cache.close()
    assert manager.get("a") is None
    assert manager.range_cache("a") is not cache


CLOSED_USES = {
    "range_cache": lambda manager: manager.range_cache("a"),
    "get": lambda manager: manager.get("a"),
    "remove_range_cache": lambda manager: manager.remove_range_cache("a"),
    "receive_buffer": lambda manager: manager.receive_buffer(10),
    "entry": lambda manager: manager.entry((1, 1), b"x"),
    "configure": lambda manager: manager.configure(
        max_requeue_count=1, extend_ttl_of_recently_accessed=True
    ),
    "evict_entries_before": lambda manager: manager.evict_entries_before(0),
    "evict_bytes": lambda manager: manager.evict_bytes(1),
    "start": lambda manager: manager.start(),
    "trigger_eviction": lambda manager: manager.trigger_eviction(),
    "periodic_eviction": lambda manager: manager.periodic_eviction(),
    "evict_to_watermark": lambda manager: manager.evict_to_watermark(),
    "with": lambda manager: manager.__enter__(),
}


def test_the_uses_above_are_all_there_are() -> None:
    members = {name for name in dir(EntryCacheManager) if not name.startswith("_")}
    always = {"closed", "close", "stop", "size", "max_size", "policy", "stats", "objects_in_use"}
    always |= {"pinned_size", "receive_buffer_size", "is_at_eviction_watermark"}
    assert members - always <= set(CLOSED_USES)


@pytest.mark.parametrize("use", CLOSED_USES)
def test_every_use_of_a_closed_manager_is_an_error(manager: EntryCacheManager, use: str) -> None:
    manager.range_cache("a")
    manager.close()
    with pytest.raises(ClosedError, match="the entry cache manager is closed"):
        CLOSED_USES[use](manager)


def test_close_closes_the_caches_and_gives_everything_back(manager: EntryCacheManager) -> None:
    assert not manager.closed
    caches = [manager.range_cache(name) for name in "abc"]
    for cache in caches:
        fill(cache, 100)
    assert repr(manager) == "<EntryCacheManager 3 caches, 570 bytes>"
    manager.close()
    assert manager.closed
    assert all(cache.closed for cache in caches)
    assert manager.size == 0
    assert_nothing_in_use(manager)
    assert repr(manager) == "<EntryCacheManager closed>"
    manager.close()


def test_leaving_with_closes() -> None:
    with EntryCacheManager() as manager:
        fill(manager.range_cache("a"), 3)
    assert manager.closed
    with pytest.raises(ZeroDivisionError), EntryCacheManager() as manager:
        raise ZeroDivisionError
    assert manager.closed


def test_an_interrupted_close_is_finished_by_the_next(manager: EntryCacheManager) -> None:
    a, b = manager.range_cache("a"), manager.range_cache("b")
    for cache in (a, b):
        for i in range(2**16 + 100):
            cache.put((1, i), b"x")
    call_interrupted(manager.close)
    assert manager.closed
    assert (a.size, b.size) == (100, 2**16 + 100)
    manager.close()
    assert manager.size == 0
    assert_nothing_in_use(manager)


def test_a_cache_may_outlive_its_manager() -> None:
    manager = EntryCacheManager()
    cache = manager.range_cache("a")
    del manager
    gc.collect()
    fill(cache, 100)
    entries = cache.get_range(FIRST, LAST)
    del cache
    gc.collect()
    assert b"".join(entries[:3]) == b"012"


# Accounts ----------------------------------------------------------------------------------------


def test_objects_in_use_counts_each_kind(manager: EntryCacheManager, cache: RangeCache) -> None:
    for entry_id in [0, 63, 64, 4096]:
        cache.put((1, entry_id), b"x", expected_reads=1)
    cache.put((2, 0), b"x")
    held = manager.entry((9, 9), b"x")
    assert manager.objects_in_use() == {
        "entries": 6, "read_counts": 4, "wrappers": 5, "pages": 4, "branches": 3, "range_caches": 1,
    }  # fmt: skip
    cache.clear()
    assert manager.objects_in_use() == {
        "entries": 1, "read_counts": 0, "wrappers": 5, "pages": 0, "branches": 0, "range_caches": 1,
    }  # fmt: skip
    manager.evict_bytes(1)
    held.release()
    assert_nothing_in_use(manager)


def test_memory_is_used_again(manager: EntryCacheManager, cache: RangeCache) -> None:
    for _ in range(50):
        fill(cache, 200)
        cache.clear()
        manager.evict_bytes(1)
        assert_nothing_in_use(manager)
