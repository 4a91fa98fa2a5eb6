"""What a simulation measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


class Measures:
    """Counters that a running simulation writes."""

    __slots__ = (
        "hits", "joined", "max_pinned", "pinned_time", "pinned_total", "replay_hits", "replayed", "requested",
        "samples", "storage_bytes", "storage_entries", "storage_reads",
    )  # fmt: skip

    def __init__(self) -> None:
        self.requested = self.hits = self.joined = 0
        self.replayed = self.replay_hits = 0
        self.storage_reads = self.storage_entries = self.storage_bytes = 0
        self.max_pinned = self.pinned_total = self.pinned_time = 0
        # (requested, hits, storage entries, bytes pinned) so far, at every sample.
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
    """One workload under one variant.

    Attributes:
        workload, variant, seed: what was played.
        requested: entries that readers asked for; ``hits`` of them came from the cache, ``joined`` from a
        read
            of somebody else that was under way.
        replayed, replay_hits: those among them that were read again for a Key_Shared consumer.
        storage_reads, storage_entries, storage_bytes: what was asked of storage.
        mean_pinned_bytes, max_pinned_bytes: counted by the cache, over time.
        inserted, evicted: entries.
        size_passes: size passes that were run.
        eviction_steps: entries that eviction removed or kept, and empty wrappers that it dropped.
        audited, out_of_order: entries that left the cache, and those of them that were younger than the
        oldest
            one that stayed; 0 unless the workload asks for it.
        timeline: columns over time: ``seconds``, ``hit_rate`` and ``storage_entries`` of the interval,
        ``pinned_bytes``
            at its end.
    """

    workload: str
    variant: str
    seed: int
    requested: int
    hits: int
    joined: int
    replayed: int
    replay_hits: int
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
        """Share of the requested entries that the cache had; 1 when none was asked for."""
        return self.hits / self.requested if self.requested else 1.0

    @property
    def replay_hit_rate(self) -> float:
        return self.replay_hits / self.replayed if self.replayed else 1.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"hit_rate": self.hit_rate, "replay_hit_rate": self.replay_hit_rate}


def timeline(measures: Measures, step_seconds: float) -> dict[str, tuple[float, ...]]:
    """Differences of the samples, which were taken every ``step_seconds``."""
    columns: dict[str, list[float]] = {
        "seconds": [], "hit_rate": [], "storage_entries": [], "pinned_bytes": []
    }  # fmt: skip
    before = (0, 0, 0, 0)
    for number, sample in enumerate(measures.samples, 1):
        requested = sample[0] - before[0]
        columns["seconds"].append(number * step_seconds)
        columns["hit_rate"].append((sample[1] - before[1]) / requested if requested else 1.0)
        columns["storage_entries"].append(sample[2] - before[2])
        columns["pinned_bytes"].append(sample[3])
        before = sample
    return {name: tuple(values) for name, values in columns.items()}
