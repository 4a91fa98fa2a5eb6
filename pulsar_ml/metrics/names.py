"""The cache's metrics: Pulsar's names in OpenTelemetry and Prometheus, and their quantities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pulsar_ml.metrics.quantities import PENDING_READS, Quantities


@dataclass(frozen=True, slots=True)
class Term:
    """A quantity, or the difference of two quantities."""

    plus: str
    minus: str = ""

    def of(self, quantities: Quantities) -> int | None:
        """The value of the term, or None when the quantity is not measured."""
        if self.plus not in quantities:
            return None
        return quantities[self.plus] - (quantities[self.minus] if self.minus else 0)


@dataclass(frozen=True, slots=True)
class Instrument:
    """An OpenTelemetry instrument.

    ``terms`` maps the values of ``attribute`` to terms; without an attribute, "" to one term.
    """

    name: str
    kind: Literal["counter", "up-down counter"]
    unit: str
    description: str
    terms: Mapping[str, Term]
    attribute: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """A Prometheus family.

    A *rate* is a gauge with the growth of its term per second over the last whole period; a
    *period* gauge has the growth itself.
    """

    name: str
    kind: Literal["counter", "gauge", "rate", "period"]
    description: str
    term: Term


CACHE = "pulsar.broker.managed_ledger.cache"
ENTRY_STATUS = "pulsar.managed_ledger.cache.entry.status"
OPERATION_STATUS = "pulsar.managed_ledger.cache.operation.status"
READ_STATE = "pulsar.managed_ledger.inflight.read.usage.state"

INSTRUMENTS = (
    Instrument(
        "pulsar.broker.managed_ledger.count",
        "up-down counter",
        "{managed_ledger}",
        "The total number of managed ledgers.",
        {"": Term("ledgers")},
    ),
    Instrument(
        f"{CACHE}.eviction.count",
        "counter",
        "{eviction}",
        "The total number of cache eviction operations.",
        {"": Term("evictions")},
    ),
    Instrument(
        f"{CACHE}.entry.count",
        "up-down counter",
        "{entry}",
        "The number of entries in the entry cache.",
        {
            "active": Term("inserted_entries", "evicted_entries"),
            "inserted": Term("inserted_entries"),
            "evicted": Term("evicted_entries"),
        },
        ENTRY_STATUS,
    ),
    Instrument(
        f"{CACHE}.entry.size",
        "up-down counter",
        "{By}",
        "The byte amount of entries stored in the entry cache.",
        {"": Term("size")},
    ),
    Instrument(
        f"{CACHE}.operation.count",
        "counter",
        "{entry}",
        "The number of cache operations.",
        {"hit": Term("hits"), "miss": Term("misses")},
        OPERATION_STATUS,
    ),
    Instrument(
        f"{CACHE}.operation.size",
        "counter",
        "{By}",
        "The byte amount of data retrieved from cache operations.",
        {"hit": Term("hit_bytes"), "miss": Term("miss_bytes")},
        OPERATION_STATUS,
    ),
    # An addition of this project: the memory that cached entries keep.
    Instrument(
        f"{CACHE}.pinned.size",
        "up-down counter",
        "{By}",
        "The memory that entries in the entry cache keep, shared receive buffers included.",
        {"": Term("pinned_size")},
    ),
    # Pulsar documents these as counters, but free and used bytes go up and down.
    Instrument(
        "pulsar.broker.managed_ledger.inflight.read.limit",
        "up-down counter",
        "By",
        "Maximum number of bytes that can be retained by managed ledger data read from storage "
        "or cache.",
        {"": Term("inflight_limit")},
    ),
    Instrument(
        "pulsar.broker.managed_ledger.inflight.read.usage",
        "up-down counter",
        "By",
        "Estimated number of bytes retained by managed ledger data read from storage or cache.",
        {"used": Term("inflight_used"), "free": Term("inflight_free")},
        READ_STATE,
    ),
)

FAMILIES = (
    Family("pulsar_ml_count", "gauge", "The number of managed ledgers.", Term("ledgers")),
    Family("pulsar_ml_cache_used_size", "gauge", "Bytes of entries in the cache.", Term("size")),
    Family(
        "pulsar_ml_cache_pinned_size",
        "gauge",
        "Bytes of memory that entries in the cache keep, shared receive buffers included.",
        Term("pinned_size"),
    ),
    Family(
        "pulsar_ml_cache_entries",
        "gauge",
        "The number of entries in the cache.",
        Term("inserted_entries", "evicted_entries"),
    ),
    Family(
        "pulsar_ml_cache_inserted_entries_total",
        "counter",
        "The number of entries inserted into the cache.",
        Term("inserted_entries"),
    ),
    Family(
        "pulsar_ml_cache_evicted_entries_total",
        "counter",
        "The number of entries evicted from the cache.",
        Term("evicted_entries"),
    ),
    Family(
        "pulsar_ml_cache_evictions", "period", "Size passes in the last period.", Term("evictions")
    ),
    Family("pulsar_ml_cache_hits_rate", "rate", "Cache hits per second.", Term("hits")),
    Family("pulsar_ml_cache_misses_rate", "rate", "Cache misses per second.", Term("misses")),
    Family(
        "pulsar_ml_cache_hits_throughput",
        "rate",
        "Bytes per second found in the cache.",
        Term("hit_bytes"),
    ),
    Family(
        "pulsar_ml_cache_misses_throughput",
        "rate",
        "Bytes per second not found in the cache.",
        Term("miss_bytes"),
    ),
    Family(
        "pulsar_ml_reads_inflight_bytes",
        "gauge",
        "Estimated bytes retained by data read from storage or cache; -1 without a limit.",
        Term("inflight_used_gauge"),
    ),
    Family(
        "pulsar_ml_reads_available_inflight_bytes",
        "gauge",
        "Bytes available for data read from storage or cache; -1 without a limit.",
        Term("inflight_free_gauge"),
    ),
    *(
        Family(
            f"pulsar_ml_cache_pendingreads_{name}",
            "counter",
            f"Entries of pending reads: {name.replace('_', ' ')}.",
            Term(f"pending_{name}"),
        )
        for name in PENDING_READS
    ),
)

# Pulsar's documented names that are not exported, with the reasons.
LEFT_OUT = {
    f"{CACHE}.pool.allocation.active.count": (
        "there are no arenas: entries are in pools of equal objects, "
        "and their bytes come from malloc"
    ),
    f"{CACHE}.pool.allocation.size": (
        "there are no arenas; pinned.size is the memory that cached entries keep"
    ),
    "pulsar_ml_cache_pool_*": "there are no arenas",
}
