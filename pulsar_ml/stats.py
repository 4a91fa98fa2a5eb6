"""The counters of a cache manager."""

from __future__ import annotations

from typing import NamedTuple


class CacheStats(NamedTuple):
    """The counters of an EntryCacheManager since its creation; exact while no thread is inside.

    ``size`` and the attributes with ``bytes`` are in bytes; the others count entries or events.
    Evicted entries include invalidated ones: ``inserted_entries - evicted_entries`` are cached.

    Attributes:
        size: cached bytes. While threads are inside, it may be too high, too low, or negative.
        max_size: the setting; None: no limit, 0: the cache is disabled.
        inserted_entries: inserted entries.
        inserted_bytes: the bytes of the inserted entries.
        evicted_entries: entries removed by eviction passes and invalidations.
        evicted_bytes: the bytes of the evicted entries.
        evictions: size passes; time passes do not count.
        requeued: how often a pass requeued an entry.
        dropped: empty wrappers, of invalidated entries, that passes dropped.
        hits: entries that reads found in the cache.
        hit_bytes: the bytes of the hits.
        misses: entries that readers reported as read from storage.
        miss_bytes: the bytes of the misses.
        tasks: eviction tasks queued or running, 0 or 1.
        serving: true while the manager's thread runs.
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
