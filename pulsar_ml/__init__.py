"""Apache Pulsar's broker cache in nogil Cython, and a harness that finds its races."""

from __future__ import annotations

from pulsar_ml.terminal import starting as _starting  # noqa: F401 - the first import of all

# isort: split
from pulsar_ml._core import (
    AckState,
    ActiveManagedCursorContainer,
    BufferSlice,
    CachedEntry,
    CursorInfo,
    Entry,
    EntryCacheManager,
    InflightReadsLimiter,
    InMemoryDelayedDeliveryTrackerFactory,
    InMemoryTopicDelayedDeliveryTrackerView,
    ManagedCursorContainer,
    PendingReadsManager,
    Permits,
    RangeCache,
    ReceiveBuffer,
    ReceiveBufferSize,
)
from pulsar_ml.errors import (
    AllocationError,
    BadRecordError,
    ClosedError,
    ConfigError,
    InvalidPositionError,
    InvalidSizeError,
    LedgerHandleClosedError,
    PositionMismatchError,
    PulsarMlError,
    ReadLimitError,
    ReadTimeoutError,
    ReleasedError,
    StorageError,
    UsageError,
)
from pulsar_ml.positions import Evicted, Position, Removed
from pulsar_ml.stats import CacheStats

__all__ = [
    "AckState",
    "ActiveManagedCursorContainer",
    "AllocationError",
    "BadRecordError",
    "BufferSlice",
    "CacheStats",
    "CachedEntry",
    "ClosedError",
    "ConfigError",
    "CursorInfo",
    "Entry",
    "EntryCacheManager",
    "Evicted",
    "InMemoryDelayedDeliveryTrackerFactory",
    "InMemoryTopicDelayedDeliveryTrackerView",
    "InflightReadsLimiter",
    "InvalidPositionError",
    "InvalidSizeError",
    "LedgerHandleClosedError",
    "ManagedCursorContainer",
    "PendingReadsManager",
    "Permits",
    "Position",
    "PositionMismatchError",
    "PulsarMlError",
    "RangeCache",
    "ReadLimitError",
    "ReadTimeoutError",
    "ReceiveBuffer",
    "ReceiveBufferSize",
    "ReleasedError",
    "Removed",
    "StorageError",
    "UsageError",
]

__version__ = "0.1.0"
