"""Effects of the settings of the cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pulsar_ml import EntryCacheManager
from pulsar_ml.config import CacheConfig
from tests.config.effects import effect

MB = 2**20


@contextmanager
def cache_of(config: CacheConfig) -> Iterator[EntryCacheManager]:
    manager = EntryCacheManager(**config.manager_keywords(), clock=lambda: 0)
    yield manager
    manager.close()


def cached_megabytes(config: CacheConfig, megabytes: int = 4) -> int:
    """The number of entries of 1 MB that stay of so many."""
    with cache_of(config) as manager:
        cache = manager.range_cache("a")
        for number in range(megabytes):
            cache.put((1, number), bytes(MB), timestamp_ns=number)
        return sum((1, number) in cache for number in range(megabytes))


def passes_until_evicted(
    config: CacheConfig, *, expected_reads: int = 0, read: bool = False
) -> int:
    """The number of time passes, one after each time to live, until an entry is gone."""
    with cache_of(config) as manager:
        cache = manager.range_cache("a")
        cache.put((1, 1), b"x", expected_reads=expected_reads, timestamp_ns=0)
        if read:
            for entry in cache.get_range((1, 1), (1, 1)):
                entry.release()
        step = config.cache_eviction_time_threshold_millis * 1_000_000 + 1
        for number in range(1, 30):
            manager.periodic_eviction(now_ns=number * step)
            if (1, 1) not in cache:
                return number
        return 30


effect("managedLedgerCacheSizeMB", "entries of 1 MB that stay in the cache", (2, 64), (1, 4))(
    cached_megabytes
)
effect(
    "managedLedgerCacheEvictionWatermark",
    "entries that stay after a size pass",
    (0.3, 0.9),
    (1, 3),
    managedLedgerCacheSizeMB=4,
)(cached_megabytes)


@effect("managedLedgerCacheCopyEntries", "memory that a cached slice keeps", (True, False), (1, 64))
def pinned_by_a_slice(config: CacheConfig) -> int:
    with cache_of(config) as manager:
        buffer = manager.receive_buffer(64)
        buffer.write(b"x" * 64)
        manager.range_cache("a").put((1, 1), buffer.slice(0, 1))
        buffer.release()
        return manager.pinned_size


@effect(
    "managedLedgerCacheEvictionIntervalMs", "time between two eviction passes", (7, 30), (7, 30)
)
def interval(config: CacheConfig) -> object:
    return config.manager_keywords()["eviction_interval_ms"]


effect(
    "managedLedgerCacheEvictionFrequency",
    "time between two eviction passes",
    (0.0, 50.0),
    (10, 20),
)(interval)


@effect(
    "managedLedgerCacheEvictionTimeThresholdMillis",
    "age at which a pass evicts an entry",
    (3, 8),
    (3, 8),
)
def age_of_eviction(config: CacheConfig) -> int:
    with cache_of(config) as manager:
        cache = manager.range_cache("a")
        cache.put((1, 1), b"x", timestamp_ns=0)
        age = 0
        while (1, 1) in cache:
            age += 1
            manager.periodic_eviction(now_ns=age * 1_000_000 + 1)
        return age


@effect(
    "managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes",
    "passes that keep an entry with expected reads",
    (0, 3),
    (1, 4),
)
def passes_with_expected_reads(config: CacheConfig) -> int:
    return passes_until_evicted(config, expected_reads=1)


effect(
    "cacheEvictionByExpectedReadCount",
    "passes that keep an entry with expected reads",
    (True, False),
    (6, 1),
)(passes_with_expected_reads)
effect(
    "managedLedgerCacheEvictionTimeThresholdMillisMax",
    "passes that the stash keeps an entry with expected reads",
    (1000, 3000),
    (1, 3),
    managedLedgerCacheEvictionPolicyName="stash_queue",
)(passes_with_expected_reads)


@effect(
    "managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed",
    "passes that keep an entry that was read",
    (True, False),
    (2, 1),
)
def passes_after_a_read(config: CacheConfig) -> int:
    return passes_until_evicted(config, read=True)


@effect(
    "managedLedgerCacheEvictionPolicyName",
    "the entry that a size pass evicts: the oldest, or the one that was not read",
    ("central_queue", "lru"),
    ([2, 3], [0, 3]),
    managedLedgerCacheSizeMB=4,
    managedLedgerCacheEvictionWatermark=0.5,
    managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed=False,
)
def left_by_the_policy(config: CacheConfig) -> list[int]:
    with cache_of(config) as manager:
        cache = manager.range_cache("a")
        for number in range(3):
            cache.put((1, number), bytes(MB), timestamp_ns=number)
        for entry in cache.get_range((1, 0), (1, 0)):
            entry.release()
        cache.put((1, 3), bytes(MB), timestamp_ns=3)
        return [number for number in range(4) if (1, number) in cache]
