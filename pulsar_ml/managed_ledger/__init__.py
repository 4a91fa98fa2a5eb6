"""A managed ledger over the broker cache: add, read, replay, acknowledge and trim entries."""

from __future__ import annotations

from pulsar_ml.managed_ledger.cursor import ManagedCursor
from pulsar_ml.managed_ledger.delayed import DelayedDelivery
from pulsar_ml.managed_ledger.disk_storage import DiskStorage
from pulsar_ml.managed_ledger.factory import ManagedLedgerFactory
from pulsar_ml.managed_ledger.faulty_storage import Fault, FaultyStorage
from pulsar_ml.managed_ledger.ledger import ManagedLedger
from pulsar_ml.managed_ledger.memory_storage import MemoryStorage
from pulsar_ml.managed_ledger.settings import LedgerSettings
from pulsar_ml.managed_ledger.storage import (
    LedgerProperties,
    LedgerStorage,
    StoredEntry,
)

__all__ = [
    "DelayedDelivery",
    "DiskStorage",
    "Fault",
    "FaultyStorage",
    "LedgerProperties",
    "LedgerSettings",
    "LedgerStorage",
    "ManagedCursor",
    "ManagedLedger",
    "ManagedLedgerFactory",
    "MemoryStorage",
    "StoredEntry",
]
