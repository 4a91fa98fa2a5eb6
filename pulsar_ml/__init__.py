"""Apache Pulsar's broker cache as nogil Cython, and a harness that finds its races first."""

from __future__ import annotations

from pulsar_ml._core import Entry, EntryCacheManager, RangeCache
from pulsar_ml.errors import (
    AllocationError,
    BadRecordError,
    ClosedError,
    InvalidPositionError,
    InvalidSizeError,
    PositionMismatchError,
    PulsarMlError,
    ReleasedError,
    UsageError,
)
from pulsar_ml.positions import Evicted, Position, Removed

__all__ = [
    "AllocationError",
    "BadRecordError",
    "ClosedError",
    "Entry",
    "EntryCacheManager",
    "Evicted",
    "InvalidPositionError",
    "InvalidSizeError",
    "Position",
    "PositionMismatchError",
    "PulsarMlError",
    "RangeCache",
    "ReleasedError",
    "Removed",
    "UsageError",
]

__version__ = "0.1.0"
