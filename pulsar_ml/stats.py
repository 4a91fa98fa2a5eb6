"""The counters of a cache manager."""

from __future__ import annotations

from typing import NamedTuple


class CacheStats(NamedTuple):
    """What an EntryCacheManager has counted since it was made; exact when nobody is inside.

    ``size`` and all ``bytes`` are bytes, everything else counts entries or events. What invalidation
    removes is among the evicted: ``inserted_entries - evicted_entries`` entries are cached.

    Attributes:
        size: bytes cached now. While others are inside it may be off in either direction, and negative.
        max_size: the setting; None without a bound, 0 when the cache is disabled.
        inserted_entries: entries that were put.
        inserted_bytes: their bytes.
        evicted_entries: entries that passes and invalidation removed.
        evicted_bytes: their bytes.
        evictions: size passes; time passes are not counted.
        requeued: times that a pass kept an entry.
        dropped: empty wrappers that passes found, of entries that were invalidated before.
        hits: entries that reads found.
        hit_bytes: their bytes.
        misses: entries that readers reported as taken from storage.
        miss_bytes: their bytes.
        tasks: eviction tasks queued or running, 0 or 1.
        serving: whether the manager's thread runs.
    """

    size: int
    max_size: int | None
    inserted_entries: int
    inserted_bytes: int
    evicted_entries: int
    evicted_bytes: int
    evictions: int
    requeued: int
    dropped: int
    hits: int
    hit_bytes: int
    misses: int
    miss_bytes: int
    tasks: int
    serving: bool
