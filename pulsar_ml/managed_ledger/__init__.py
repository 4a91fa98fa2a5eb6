"""A managed ledger over the broker cache: add, read, replay, acknowledge and trim entries."""

from __future__ import annotations

from pulsar_ml.managed_ledger.cursors.cursor import ManagedCursor
from pulsar_ml.managed_ledger.delayed import DelayedDelivery
from pulsar_ml.managed_ledger.factory import ManagedLedgerFactory
from pulsar_ml.managed_ledger.ledger import ManagedLedger
from pulsar_ml.managed_ledger.settings import LedgerSettings
from pulsar_ml.managed_ledger.storage.disk import DiskStorage
from pulsar_ml.managed_ledger.storage.faulty import Fault, FaultyStorage
from pulsar_ml.managed_ledger.storage.interface import (
    LedgerProperties,
    LedgerStorage,
    StoredEntry,
)
from pulsar_ml.managed_ledger.storage.memory import MemoryStorage

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
