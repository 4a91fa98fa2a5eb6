"""What is measured, and where it comes from, apart from any metrics library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pulsar_ml.stats import CacheStats

# A number of each quantity by name; those that nobody measures are left out.
Quantities: TypeAlias = Mapping[str, int]
Source: TypeAlias = Callable[[], Quantities]

# Of the pending-reads managers, in entries.
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
    """What metrics need of an EntryCacheManager."""

    @property
    def pinned_size(self) -> int: ...
    def stats(self) -> CacheStats: ...


@dataclass(frozen=True, slots=True)
class Labelled:
    """A gauge with labels of its own, for example one value for each cursor.

    ``read`` answers pairs of label values, in the order of ``labels``, and a number.
    """

    name: str
    unit: str
    description: str
    labels: tuple[str, ...]
    read: Callable[[], Iterable[tuple[Sequence[str], float]]]


class Registry:
    """Sources of measured quantities. Numbers of the same quantity are added up.

    Each read of an export asks every source once. Sources are added before the registry is exported; they are
    then called by the exports' threads.
    """

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self.labelled: list[Labelled] = []

    def add(self, source: Source) -> None:
        """A function that answers quantities by name."""
        self.sources.append(source)

    def add_manager(self, manager: CountingManager) -> None:
        """The counters of a cache manager."""
        self.add(lambda: manager_quantities(manager))

    def add_ledgers(self, count: Callable[[], int]) -> None:
        """The number of open managed ledgers."""
        self.add(lambda: {"ledgers": count()})

    def add_inflight_reads(self, read: Callable[[], tuple[int, int]]) -> None:
        """A limiter of reads in flight: its limit in bytes, 0 when it is off, and the bytes that are free."""
        self.add(lambda: inflight_quantities(*read()))

    def add_pending_reads(self, read: Callable[[], Mapping[str, int]]) -> None:
        """Counters of pending reads by the names in PENDING_READS."""
        self.add(lambda: {f"pending_{name}": number for name, number in read().items()})

    def add_labelled(self, gauge: Labelled) -> None:
        """A gauge with labels of its own."""
        self.labelled.append(gauge)

    def add_cursor_metadata(
        self, read: Callable[[], Iterable[tuple[Sequence[str], float]]]
    ) -> None:
        """Bytes of metadata of each cursor, by (namespace, topic, subscription); PIP-299."""
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
        """All quantities now."""
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
    """The two old gauges say -1 when the limiter is off; the newer instruments say nothing."""
    if limit <= 0:
        return {"inflight_used_gauge": -1, "inflight_free_gauge": -1}
    return {
        "inflight_limit": limit,
        "inflight_used": limit - free,
        "inflight_free": free,
        "inflight_used_gauge": limit - free,
        "inflight_free_gauge": free,
    }
