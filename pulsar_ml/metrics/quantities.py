"""Measured quantities and their sources, independent of any metrics library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from pulsar_ml.managed_ledger.topic_names import topic_name
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

    ``read`` returns pairs of (label values in the order of ``labels``, number). A value "" is left
    out of an OpenTelemetry observation. ``exporter`` is "prometheus" or "opentelemetry" for a gauge
    that only one of them has; ``kind`` is that of the OpenTelemetry instrument.
    """

    name: str
    unit: str
    description: str
    labels: tuple[str, ...]
    read: Callable[[], Iterable[tuple[Sequence[str], float]]]
    exporter: Literal["both", "prometheus", "opentelemetry"] = "both"
    kind: Literal["gauge", "up-down counter"] = "gauge"


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

    def add_delayed(self, trackers: DelayedTrackers) -> None:
        """Adds the delayed messages of a tracker factory, by topic and subscription.

        Namespace and topic are those of the names that the trackers were made for, in either form.
        """
        for gauge in delayed_gauges(trackers):
            self.add_labelled(gauge)

    def read(self) -> Quantities:
        """The present quantities of all sources."""
        total: dict[str, int] = {}
        for source in self.sources:
            for name, number in source().items():
                total[name] = total.get(name, 0) + number
        return total


class DelayedTrackers(Protocol):
    """The part of an InMemoryDelayedDeliveryTrackerFactory that metrics use."""

    def delayed_messages(self) -> list[tuple[str, str, int]]: ...
    def index_sizes(self) -> list[tuple[str, int]]: ...


def delayed_gauges(trackers: DelayedTrackers) -> tuple[Labelled, ...]:
    """Pulsar's gauges of delayed messages: two for Prometheus and one for OpenTelemetry."""

    def by_subscription() -> Iterable[tuple[Sequence[str], float]]:
        for topic, subscription, messages in trackers.delayed_messages():
            name = topic_name(topic)
            yield (name.namespace, name.topic, subscription), messages

    def by_topic() -> Iterable[tuple[Sequence[str], float]]:
        totals: dict[tuple[str, ...], int] = {}
        for topic, _, messages in trackers.delayed_messages():
            name = topic_name(topic)
            partition = "" if name.partition is None else str(name.partition)
            labels = (name.domain, name.tenant, name.namespace, name.base, partition)
            totals[labels] = totals.get(labels, 0) + messages
        yield from totals.items()

    def sizes() -> Iterable[tuple[Sequence[str], float]]:
        for topic, size in trackers.index_sizes():
            name = topic_name(topic)
            yield (name.namespace, name.topic), size

    return (
        Labelled(
            "pulsar_subscription_delayed",
            "{entry}",
            "The number of entries that wait for their time of delivery.",
            ("namespace", "topic", "subscription"),
            by_subscription,
            "prometheus",
        ),
        Labelled(
            "pulsar_delayed_message_index_size_bytes",
            "By",
            "The memory of the topic's index of delayed messages.",
            ("namespace", "topic"),
            sizes,
            "prometheus",
        ),
        Labelled(
            "pulsar.broker.topic.subscription.delayed.entry.count",
            "{entry}",
            "The total number of message batches (entries) delayed for dispatching.",
            (
                "pulsar.domain",
                "pulsar.tenant",
                "pulsar.namespace",
                "pulsar.topic",
                "pulsar.partition.index",
            ),
            by_topic,
            "opentelemetry",
            "up-down counter",
        ),
    )


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
