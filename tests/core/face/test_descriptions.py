"""Descriptions of cached entries: what eviction knows of them, without a reference or an access."""

from __future__ import annotations

import pytest

from pulsar_ml import CachedEntry, EntryCacheManager, InvalidPositionError, Position, RangeCache
from tests.core.present import present
from tests.core.test_range_cache import fill


def test_cached_entries_are_described_without_an_access(cache: RangeCache) -> None:
    for number in range(600):  # more than the iterator fetches at a time
        cache.put((7, number), b"x" * number, timestamp_ns=number, expected_reads=number % 3)
    present(cache.get((7, 2))).release()
    found = list(cache.iterate_cached((7, 1), (7, 598)))
    assert [each.position for each in found] == [Position(7, number) for number in range(1, 599)]
    assert found[0] == CachedEntry(Position(7, 1), 1, 1, 0, False, 1)
    assert found[1] == CachedEntry(Position(7, 2), 2, 2, 0, True, 2)
    assert [each.position for each in cache.iterate_cached((7, 0), (9, 9)) if each.accessed] == [
        (7, 2)
    ]
    assert list(cache.iterate_cached((8, 0), (9, 9))) == []
    with pytest.raises(InvalidPositionError, match="ends before it begins"):
        cache.iterate_cached((8, 0), (7, 0))


def test_a_description_counts_the_passes_that_kept_an_entry() -> None:
    with EntryCacheManager(max_size=None, clock=lambda: 9) as manager:
        cache = manager.range_cache("a")
        cache.put((7, 1), b"x", timestamp_ns=1, expected_reads=1)
        for passes in (1, 2):
            manager.evict_entries_before(50 * passes, now_ns=50 * passes)
            (kept,) = cache.iterate_cached((7, 0), (7, 9))
            assert (kept.requeue_count, kept.timestamp_ns) == (passes, 50 * passes)
            assert not kept.accessed


def test_a_description_iterator_goes_on_beside_removals(cache: RangeCache) -> None:
    fill(cache, 300)
    walk = cache.iterate_cached((0, 0), (99, 0))
    first = next(walk)
    cache.clear()
    assert len(list(walk)) == 255, "the rest of the first group, which was fetched before"
    assert first.position == min(first.position, (1, 0))
    assert next(walk, None) is None
