"""References of entries: who changes them and who does not."""

from __future__ import annotations

from pulsar_ml import EntryCacheManager
from tests.core.present import present


def test_a_miss_leaves_every_reference_as_it_was() -> None:
    with EntryCacheManager() as manager:
        cache, other = manager.range_cache("a"), manager.range_cache("b")
        held = []
        for number in range(3):
            cache.put((1, number), b"payload", expected_reads=2)
            held.append(present(cache.get((1, number))))
        # The cache's reference and ours.
        assert [entry.references for entry in held] == [2, 2, 2]
        before = manager.objects_in_use()
        for at in [(1, 3), (2, 0), (0, 0), (1, 64), (1, 4096)]:
            assert cache.get(at) is None
            assert at not in cache
        assert other.get((1, 0)) is None
        assert cache.get_range((1, 3), (7, 0)) == []
        assert [entry.references for entry in held] == [2, 2, 2]
        assert [entry.expected_reads for entry in held] == [2, 2, 2]
        assert manager.objects_in_use() == before
