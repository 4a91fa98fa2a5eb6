"""Entries: the reference they stand for, the bytes they show, the reads they expect."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from pulsar_ml import (
    Entry,
    EntryCacheManager,
    InvalidPositionError,
    InvalidSizeError,
    Position,
    RangeCache,
    ReleasedError,
    UsageError,
)
from pulsar_ml._core import EVICTION_POLICIES
from tests.core.present import present

INT32_MAX = 2**31 - 1


def address_of(view: memoryview) -> int:
    import numpy

    return int(numpy.frombuffer(view, dtype=numpy.uint8).__array_interface__["data"][0])


def test_an_entry_knows_its_position_and_shows_its_bytes(manager: EntryCacheManager) -> None:
    with manager.entry((7, 3), b"payload") as entry:
        assert entry.position == Position(7, 3)
        assert isinstance(entry.position, Position)
        assert (entry.ledger_id, entry.entry_id) == (7, 3)
        assert bytes(entry) == b"payload"
        assert bytes(entry.data) == b"payload"
        assert len(entry) == 7
        assert entry.references == 1
        assert not entry.released
        assert repr(entry) == "<Entry 7:3 7 bytes>"


@pytest.mark.parametrize(
    "data",
    [b"abcd", bytearray(b"abcd"), memoryview(b"abcd"), memoryview(bytearray(b"xabcdx"))[1:5]],
    ids=["bytes", "bytearray", "memoryview", "slice"],
)
def test_any_contiguous_bytes_like_object_is_copied(manager: EntryCacheManager, data: Any) -> None:
    with manager.entry((1, 1), data) as entry:
        assert bytes(entry) == b"abcd"


def test_the_bytes_are_a_copy_of_the_source(manager: EntryCacheManager) -> None:
    source = bytearray(b"abcd")
    with manager.entry((1, 1), source) as entry:
        source[:] = b"WXYZ"
        source.extend(b"more")  # the source is not locked either
        assert bytes(entry) == b"abcd"


def test_an_array_of_several_dimensions_gives_its_bytes(manager: EntryCacheManager) -> None:
    import numpy

    array: Any = numpy.arange(6, dtype="<i2").reshape(2, 3)
    with manager.entry((1, 1), array) as entry:
        assert bytes(entry) == array.tobytes()


@pytest.mark.parametrize("data", ["text", 5, None, [1, 2]], ids=repr)
def test_what_is_not_bytes_like_is_a_type_error(manager: EntryCacheManager, data: Any) -> None:
    with pytest.raises(TypeError, match="bytes-like"):
        manager.entry((1, 1), data)
    assert manager.objects_in_use()["entries"] == 0


def test_bytes_that_are_not_contiguous_are_a_buffer_error(manager: EntryCacheManager) -> None:
    with pytest.raises(BufferError):
        manager.entry((1, 1), memoryview(b"abcdef")[::2])
    assert manager.objects_in_use()["entries"] == 0


def test_an_empty_payload_is_an_entry_too(manager: EntryCacheManager) -> None:
    with manager.entry((1, 1), b"") as entry:
        assert len(entry) == 0
        assert bytes(entry) == b""


# Views -------------------------------------------------------------------------------------------


def test_views_share_one_read_only_memory(manager: EntryCacheManager) -> None:
    with manager.entry((1, 1), b"payload") as entry:
        first, second = memoryview(entry), entry.data
        assert first.readonly
        assert first.format == "B"
        assert first.nbytes == 7
        assert address_of(first) == address_of(second)
        with pytest.raises(TypeError, match="read-only"):
            first[0] = 1
        first.release()
        second.release()


def test_cache_entry_and_copy_show_the_same_memory(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    entry = manager.entry((1, 1), b"payload")
    address = address_of(entry.data)
    assert cache.put((1, 1), entry)
    with present(cache.get((1, 1))) as cached, entry.copy() as copied:
        assert address_of(cached.data) == address
        assert address_of(copied.data) == address
    entry.release()
    with present(cache.get((1, 1))) as cached:
        assert address_of(cached.data) == address


def test_a_view_outlives_release_eviction_and_every_other_reference(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    cache.put((1, 1), b"payload" * 100)
    entry = present(cache.get((1, 1)))
    view = memoryview(entry)
    address = address_of(view)
    entry.release()
    cache.clear()
    manager.evict_bytes(1)
    # Memory that was given back would be taken by these.
    others = [manager.entry((2, i), b"another" * 100) for i in range(100)]
    assert bytes(view) == b"payload" * 100
    assert address_of(view) == address
    assert manager.objects_in_use()["entries"] == 101
    view.release()
    assert manager.objects_in_use()["entries"] == 100
    for other in others:
        other.release()


def test_the_reference_goes_back_with_the_last_of_several_views(manager: EntryCacheManager) -> None:
    entry = manager.entry((1, 1), b"payload")
    views = [memoryview(entry) for _ in range(3)]
    entry.release()
    for view in views:
        assert manager.objects_in_use()["entries"] == 1
        assert bytes(view) == b"payload"
        view.release()
    assert manager.objects_in_use()["entries"] == 0


def test_a_view_keeps_an_entry_that_nobody_else_holds(manager: EntryCacheManager) -> None:
    view = memoryview(manager.entry((1, 1), b"payload"))
    gc.collect()
    assert bytes(view) == b"payload"
    part = view[3:]
    del view
    assert bytes(part) == b"load"
    assert manager.objects_in_use()["entries"] == 1
    del part
    assert manager.objects_in_use()["entries"] == 0


def test_leaving_with_while_a_view_is_open_is_no_error(manager: EntryCacheManager) -> None:
    with manager.entry((1, 1), b"payload") as entry:
        view = entry.data
    assert entry.released
    assert bytes(view) == b"payload"
    with pytest.raises(ReleasedError):
        memoryview(entry)
    view.release()
    assert manager.objects_in_use()["entries"] == 0


# Release -----------------------------------------------------------------------------------------

USES: dict[str, Callable[[Any], object]] = {
    "len": len,
    "bytes": bytes,
    "memoryview": memoryview,
    "data": lambda entry: entry.data,
    "ledger_id": lambda entry: entry.ledger_id,
    "entry_id": lambda entry: entry.entry_id,
    "position": lambda entry: entry.position,
    "references": lambda entry: entry.references,
    "expected_reads": lambda entry: entry.expected_reads,
    "expect_read": lambda entry: entry.expect_read(),
    "copy": lambda entry: entry.copy(),
    "message_metadata": lambda entry: entry.message_metadata,
    "initialize_message_metadata": lambda entry: entry.initialize_message_metadata(bytes),
    "release": lambda entry: entry.release(),
    "with": lambda entry: entry.__enter__(),
}


def test_the_uses_below_are_all_there_are() -> None:
    members = {name for name in dir(Entry) if not name.startswith("_")}
    assert members - {"released"} <= set(USES)


@pytest.mark.parametrize("use", USES)
def test_every_use_of_a_released_entry_is_an_error(manager: EntryCacheManager, use: str) -> None:
    entry = manager.entry((1, 1), b"payload", expected_reads=1)
    entry.release()
    with pytest.raises(ReleasedError, match="released") as raised:
        USES[use](entry)
    assert isinstance(raised.value, ValueError)
    assert entry.released
    assert repr(entry) == "<Entry released>"


def test_a_released_entry_cannot_be_put(manager: EntryCacheManager, cache: RangeCache) -> None:
    entry = manager.entry((1, 1), b"payload")
    entry.release()
    with pytest.raises(ReleasedError):
        cache.put((1, 1), entry)
    assert (1, 1) not in cache
    assert cache.size == 0


def test_release_inside_with_is_not_repeated(manager: EntryCacheManager) -> None:
    with manager.entry((1, 1), b"payload") as entry:
        entry.release()
    assert manager.objects_in_use()["entries"] == 0


def test_with_releases_when_the_block_raises(manager: EntryCacheManager) -> None:
    with pytest.raises(ZeroDivisionError), manager.entry((1, 1), b"payload"):
        raise ZeroDivisionError
    assert manager.objects_in_use()["entries"] == 0


def test_a_collected_entry_gives_its_reference_back(manager: EntryCacheManager) -> None:
    manager.entry((1, 1), b"payload")
    cycle: list[object] = [manager.entry((1, 2), b"payload")]
    cycle.append(cycle)
    assert manager.objects_in_use()["entries"] == 1
    del cycle
    gc.collect()
    assert manager.objects_in_use()["entries"] == 0


def test_entries_cannot_be_made_by_hand_pickled_or_subclassed(manager: EntryCacheManager) -> None:
    import copy
    import pickle

    with pytest.raises(TypeError, match=r"EntryCacheManager\.entry"):
        Entry()
    with manager.entry((1, 1), b"payload") as entry:
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(entry)
        with pytest.raises(TypeError, match="pickle"):
            copy.copy(entry)
    with pytest.raises(TypeError):
        type("Mine", (Entry,), {})


def test_an_entry_stays_valid_when_manager_and_cache_are_gone() -> None:
    manager = EntryCacheManager()
    cache = manager.range_cache("ledger")
    cache.put((1, 1), b"payload")
    entry = present(cache.get((1, 1)))
    manager.close()
    del manager, cache
    gc.collect()
    assert bytes(entry) == b"payload"
    entry.release()


# Expected reads ----------------------------------------------------------------------------------


def test_an_entry_without_expected_reads_has_no_count_until_somebody_expects_one(
    manager: EntryCacheManager,
) -> None:
    with manager.entry((1, 1), b"payload") as entry:
        assert entry.expected_reads == 0
        assert manager.objects_in_use()["read_counts"] == 0
        entry.expect_read()
        assert entry.expected_reads == 1
        assert manager.objects_in_use()["read_counts"] == 1
    assert manager.objects_in_use()["read_counts"] == 0


def test_what_a_copy_expects_is_expected_of_the_cached_entry(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    cache.put((1, 1), b"payload")
    with present(cache.get((1, 1))) as cached:
        copied = cached.copy()
        copied.expect_read()
        assert cached.expected_reads == copied.expected_reads == 1
        copied.expect_read()
        copied.release()
        assert cached.expected_reads == 1
    assert manager.evict_entries_before(2**62, now_ns=0).requeued == 1


def test_a_copy_that_was_not_delivered_takes_nothing_off(manager: EntryCacheManager) -> None:
    with manager.entry((1, 1), b"payload", expected_reads=2) as entry:
        entry.copy().release(delivered=False)
        assert entry.expected_reads == 2
        entry.copy().release()
        assert entry.expected_reads == 1


def test_a_cached_entry_shares_the_expected_reads_of_its_newest_addition(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    cache.put((1, 1), b"payload", expected_reads=1)
    with (
        present(cache.get((1, 1))) as cached,
        manager.entry((1, 1), b"payload", expected_reads=5) as newest,
    ):
        older = cached.copy()
        assert cache.put((1, 1), newest) is False
        assert cached.expected_reads == 5
        newest.expect_read()
        assert cached.expected_reads == 6
        older.release()
        assert cached.expected_reads == 6
        assert cache.put((1, 1), b"payload") is False
        assert cached.expected_reads == 0
    assert manager.objects_in_use()["read_counts"] == 0


def test_copies_share_the_count_and_a_counting_release_takes_one_off(
    manager: EntryCacheManager,
) -> None:
    with manager.entry((1, 1), b"payload", expected_reads=3) as entry:
        copied = entry.copy()
        silent = entry.copy(counts_read=False)
        entry.expect_read()
        assert entry.expected_reads == copied.expected_reads == silent.expected_reads == 4
        silent.release()
        assert entry.expected_reads == 4
        copied.release()
        assert entry.expected_reads == 3
        assert manager.objects_in_use()["read_counts"] == 1
    assert manager.objects_in_use()["read_counts"] == 0


def test_the_read_is_marked_when_the_last_view_of_a_copy_goes(manager: EntryCacheManager) -> None:
    with manager.entry((1, 1), b"payload", expected_reads=1) as entry:
        copied = entry.copy()
        view = copied.data
        copied.release()
        assert entry.expected_reads == 1
        view.release()
        assert entry.expected_reads == 0


@pytest.mark.parametrize("policy", sorted(set(EVICTION_POLICIES) - {"released_queue"}))
def test_an_unforeseen_read_swallows_no_later_replay(policy: str) -> None:
    with EntryCacheManager(policy=policy) as manager:
        for expected_reads in (0, 1):
            with manager.entry((1, 1), b"payload", expected_reads=expected_reads) as entry:
                for _ in range(3):
                    entry.copy().release()
                assert entry.expected_reads == 0
                entry.expect_read()
                assert entry.expected_reads == 1


def test_the_read_counts_of_4_2_4_go_below_zero_and_are_not_made_later() -> None:
    with EntryCacheManager(policy="released_queue") as manager:
        with manager.entry((1, 1), b"payload", expected_reads=1) as entry:
            for _ in range(3):
                entry.copy().release()
            assert entry.expected_reads == -2
            entry.expect_read()
            assert entry.expected_reads == -1
        with manager.entry((1, 1), b"payload") as entry:
            entry.copy().release()
            entry.expect_read()
            assert entry.expected_reads == 0
        cache = manager.range_cache("topic")
        cache.put((1, 2), b"payload", expected_reads=1)
        assert not cache.put((1, 2), b"payload", expected_reads=5)
        with present(cache.get((1, 2))) as entry:
            assert entry.expected_reads == 1


def test_a_cached_entry_counts_no_read_of_its_own(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    with manager.entry((1, 1), b"payload", expected_reads=2) as entry:
        cache.put((1, 1), entry)
        cache.clear()
        assert entry.expected_reads == 2
    cache.put((1, 2), b"payload", expected_reads=2)
    with present(cache.get((1, 2))) as cached:
        cache.clear()
        assert cached.expected_reads == 2


def test_a_get_is_a_reference_and_no_copy(cache: RangeCache) -> None:
    cache.put((1, 1), b"payload", expected_reads=2)
    with present(cache.get((1, 1))) as first:
        assert first.references == 2
        with present(cache.get((1, 1))) as second:
            assert first.references == second.references == 3
        assert first.references == 2
        cache.clear()
        assert first.references == 1
        assert first.expected_reads == 2


@pytest.mark.parametrize("count", [-1, INT32_MAX + 1, 2**70, -(2**70)])
def test_a_count_outside_its_range_is_an_invalid_size(
    manager: EntryCacheManager, cache: RangeCache, count: int
) -> None:
    with pytest.raises(InvalidSizeError, match=f"expected_reads={count} is outside 0..{INT32_MAX}"):
        manager.entry((1, 1), b"payload", expected_reads=count)
    with pytest.raises(InvalidSizeError, match="expected_reads"):
        cache.put((1, 1), b"payload", expected_reads=count)
    assert manager.objects_in_use() == {
        "entries": 0, "read_counts": 0, "wrappers": 0, "pages": 0, "branches": 0, "range_caches": 1,
    }  # fmt: skip


@pytest.mark.parametrize("count", [1.0, "1", None], ids=repr)
def test_a_count_that_is_no_integer_is_a_type_error(manager: EntryCacheManager, count: Any) -> None:
    with pytest.raises(TypeError, match="integer"):
        manager.entry((1, 1), b"payload", expected_reads=count)
    assert manager.objects_in_use()["entries"] == 0


def test_the_largest_count_is_taken(manager: EntryCacheManager) -> None:
    with manager.entry((1, 1), b"payload", expected_reads=INT32_MAX) as entry:
        assert entry.expected_reads == INT32_MAX


@pytest.mark.parametrize("at", [(-1, 0), (0, -1), (-(2**63), 0)])
def test_an_entry_needs_a_stored_position(manager: EntryCacheManager, at: tuple[int, int]) -> None:
    with pytest.raises(InvalidPositionError, match="both ids must be >= 0"):
        manager.entry(at, b"payload")
    assert manager.objects_in_use()["entries"] == 0


def test_an_entry_of_another_manager_cannot_be_put(cache: RangeCache) -> None:
    with EntryCacheManager() as other:
        with other.entry((1, 1), b"payload") as foreign:
            with pytest.raises(UsageError, match="another manager"):
                cache.put((1, 1), foreign)
            assert foreign.references == 1
            # Its bytes are welcome.
            assert cache.put((1, 1), foreign.data)
        with present(cache.get((1, 1))) as entry:
            assert bytes(entry) == b"payload"
    assert cache.clear() == (1, 7)


def test_expected_reads_cannot_be_given_with_an_entry(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    with manager.entry((1, 1), b"payload", expected_reads=1) as entry:
        with pytest.raises(UsageError, match="expected_reads goes with bytes"):
            cache.put((1, 1), entry, expected_reads=1)
        assert entry.expected_reads == 1
    assert (1, 1) not in cache
