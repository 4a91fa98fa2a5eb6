"""The counters and the result of a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pulsar_ml.simulate.latency import Durations


class Counters:
    """The counters of a running simulation."""

    __slots__ = (
        "delayed",
        "durations",
        "hits",
        "joined",
        "max_ack_state_bytes",
        "max_delayed_bytes",
        "max_pinned",
        "pinned_time",
        "pinned_total",
        "redelivered",
        "replay_hits",
        "replayed",
        "requested",
        "samples",
        "storage_bytes",
        "storage_entries",
        "storage_reads",
    )  # fmt: skip

    def __init__(self) -> None:
        self.requested = self.hits = self.joined = 0
        self.replayed = self.replay_hits = self.redelivered = 0
        self.delayed = self.max_ack_state_bytes = self.max_delayed_bytes = 0
        self.durations = Durations()
        self.storage_reads = self.storage_entries = self.storage_bytes = 0
        self.max_pinned = self.pinned_total = self.pinned_time = 0
        # The totals of (requested, hits, storage entries, bytes pinned) at every sample.
        self.samples: list[tuple[int, int, int, int]] = []

    def read(self, requested: int, hits: int) -> None:
        self.requested += requested
        self.hits += hits

    def replay(self, hits: int) -> None:
        self.replayed += 1
        self.replay_hits += hits

    def storage(self, entries: int, length: int) -> None:
        self.storage_reads += 1
        self.storage_entries += entries
        self.storage_bytes += length

    def pinned(self, size: int, nanos: int) -> None:
        self.max_pinned = max(self.max_pinned, size)
        self.pinned_total += size * nanos
        self.pinned_time += nanos

    def sample(self, pinned: int) -> None:
        self.samples.append((self.requested, self.hits, self.storage_entries, pinned))


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one workload under one variant.

    Attributes:
        workload, variant, seed: the arguments of the simulation.
        requested: requested entries. ``hits`` came from the cache, ``joined`` from a storage read
            of another reader that was under way, and the rest from a storage read of their own.
        replayed, replay_hits: the requested entries and hits of Key_Shared replays.
        redelivered: entries that were not acknowledged and delivered once more.
        delayed: entries that waited for their time in the index of delayed messages, once for each
            subscription. ``max_delayed_bytes``: the most bytes of the index of a topic.
        max_ack_state_bytes: the most bytes of the acknowledgement state of a cursor.
        read_millis: the mean, p50, p99, p99.9 and max of the durations of consumers' reads.
        storage_reads, storage_entries, storage_bytes: reads of storage, and their entries and
            bytes.
        mean_pinned_bytes, max_pinned_bytes: bytes in the cache, over time.
        inserted, evicted: entries put into the cache and removed from it.
        size_passes: eviction passes by size.
        eviction_steps: entries that eviction removed or requeued, and empty wrappers that it
            dropped.
        audited, out_of_order: entries that left the cache, and how many of these were younger than
            the oldest one that stayed; 0 unless the workload has ``audit_order``.
        timeline: columns over time: ``seconds``, ``hit_rate`` and ``storage_entries`` of each
            interval, and ``pinned_bytes`` at its end.
    """

    workload: str
    variant: str
    seed: int
    requested: int
    hits: int
    joined: int
    replayed: int
    replay_hits: int
    redelivered: int
    delayed: int
    max_ack_state_bytes: int
    max_delayed_bytes: int
    read_millis: Mapping[str, float]
    storage_reads: int
    storage_entries: int
    storage_bytes: int
    mean_pinned_bytes: float
    max_pinned_bytes: int
    inserted: int
    evicted: int
    size_passes: int
    eviction_steps: int
    audited: int
    out_of_order: int
    timeline: Mapping[str, tuple[float, ...]]

    @property
    def hit_rate(self) -> float:
        """The share of requested entries that the cache had; 1 when no entry was requested."""
        return self.hits / self.requested if self.requested else 1.0

    @property
    def joined_rate(self) -> float:
        """The share of requested entries that joined a storage read of another reader."""
        return self.joined / self.requested if self.requested else 0.0

    @property
    def replay_hit_rate(self) -> float:
        return self.replay_hits / self.replayed if self.replayed else 1.0

    def to_json(self) -> dict[str, Any]:
        rates = ("hit_rate", "joined_rate", "replay_hit_rate")
        return asdict(self) | {name: getattr(self, name) for name in rates}


def timeline(counters: Counters, step_seconds: float) -> dict[str, tuple[float, ...]]:
    """The columns of Result.timeline from samples taken every ``step_seconds``."""
    columns: dict[str, list[float]] = {
        "seconds": [], "hit_rate": [], "storage_entries": [], "pinned_bytes": []
    }  # fmt: skip
    before = (0, 0, 0, 0)
    for number, sample in enumerate(counters.samples, 1):
        requested = sample[0] - before[0]
        columns["seconds"].append(number * step_seconds)
        columns["hit_rate"].append((sample[1] - before[1]) / requested if requested else 1.0)
        columns["storage_entries"].append(sample[2] - before[2])
        columns["pinned_bytes"].append(sample[3])
        before = sample
    return {name: tuple(values) for name, values in columns.items()}
