"""Measured quantities and their sources, independent of any metrics library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pulsar_ml.stats import CacheStats

# The numbers of quantities by name, without quantities that are not measured.
Quantities: TypeAlias = Mapping[str, int]
Source: TypeAlias = Callable[[], Quantities]

# The counters of pending reads, in entries.
PENDING_READS = (
    "entries_read",
    "entries_notread",
    "matched",
    "matched_included",
    "missed",
    "matched_overlapping_miss_left",
    "matched_overlapping_miss_right",
    "matched_overlapping_miss_both",
)


class CountingManager(Protocol):
    """The part of an EntryCacheManager that metrics use."""

    @property
    def pinned_size(self) -> int: ...
    def stats(self) -> CacheStats: ...


@dataclass(frozen=True, slots=True)
class Labelled:
    """A gauge with labels of its own, for example with one value for each cursor.

    ``read`` returns pairs of (label values in the order of ``labels``, number).
    """

    name: str
    unit: str
    description: str
    labels: tuple[str, ...]
    read: Callable[[], Iterable[tuple[Sequence[str], float]]]


class Registry:
    """The sources of measured quantities; equal quantities of several sources are added up.

    A collection calls each source once, in the exporter's thread. Add all sources before exporting.
    """

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self.labelled: list[Labelled] = []

    def add(self, source: Source) -> None:
        """Adds a function that returns quantities by name."""
        self.sources.append(source)

    def add_manager(self, manager: CountingManager) -> None:
        """Adds the counters of a cache manager."""
        self.add(lambda: manager_quantities(manager))

    def add_ledgers(self, count: Callable[[], int]) -> None:
        """Adds a function that returns the number of open managed ledgers."""
        self.add(lambda: {"ledgers": count()})

    def add_inflight_reads(self, read: Callable[[], tuple[int, int]]) -> None:
        """Adds an in-flight read limiter: its limit in bytes (0: no limit) and its free bytes."""
        self.add(lambda: inflight_quantities(*read()))

    def add_pending_reads(self, read: Callable[[], Mapping[str, int]]) -> None:
        """Adds counters of pending reads by the names in PENDING_READS."""
        self.add(lambda: {f"pending_{name}": number for name, number in read().items()})

    def add_labelled(self, gauge: Labelled) -> None:
        """Adds a gauge with labels of its own."""
        self.labelled.append(gauge)

    def add_cursor_metadata(
        self, read: Callable[[], Iterable[tuple[Sequence[str], float]]]
    ) -> None:
        """Adds metadata bytes of each cursor by (namespace, topic, subscription); PIP-299."""
        self.add_labelled(
            Labelled(
                "pulsar_cursor_metadata_size_in_memory_bytes",
                "By",
                "The size of the cursor metadata of the subscription.",
                ("namespace", "topic", "subscription"),
                read,
            )
        )

    def read(self) -> Quantities:
        """The present quantities of all sources."""
        total: dict[str, int] = {}
        for source in self.sources:
            for name, number in source().items():
                total[name] = total.get(name, 0) + number
        return total


def manager_quantities(manager: CountingManager) -> Quantities:
    stats = manager.stats()
    return {
        "size": stats.size,
        "pinned_size": manager.pinned_size,
        "inserted_entries": stats.inserted_entries,
        "evicted_entries": stats.evicted_entries,
        "evictions": stats.evictions,
        "hits": stats.hits,
        "hit_bytes": stats.hit_bytes,
        "misses": stats.misses,
        "miss_bytes": stats.miss_bytes,
    }


def inflight_quantities(limit: int, free: int) -> Quantities:
    """The quantities of a limiter; without a limit, only the two older gauges, with -1."""
    if limit <= 0:
        return {"inflight_used_gauge": -1, "inflight_free_gauge": -1}
    return {
        "inflight_limit": limit,
        "inflight_used": limit - free,
        "inflight_free": free,
        "inflight_used_gauge": limit - free,
        "inflight_free_gauge": free,
    }
