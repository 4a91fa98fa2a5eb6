"""The part of a managed ledger that its cursors use."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from pulsar_ml._core import Entry, ManagedCursorContainer
from pulsar_ml.managed_ledger.caching_strategy import CachingStrategy
from pulsar_ml.managed_ledger.entry_cache import EntryCache
from pulsar_ml.managed_ledger.fork_lock import ForkLock
from pulsar_ml.managed_ledger.ledgers import Ledgers
from pulsar_ml.managed_ledger.settings import LedgerSettings
from pulsar_ml.managed_ledger.storage.interface import LedgerStorage
from pulsar_ml.positions import Position


class CursorLedger(Protocol):
    """A managed ledger as its cursors see it.

    Attributes:
        lock: guards the log and the state of all cursors; held for moments only.
        log: the ledgers and their sizes.
        active: the active cursors, for the caching strategy.
        durable: the durable cursors by mark-delete position.
        clock: returns nanoseconds.
    """

    name: str
    storage: LedgerStorage
    settings: LedgerSettings
    cache: EntryCache
    lock: ForkLock
    log: Ledgers
    active: CachingStrategy
    durable: ManagedCursorContainer
    clock: Callable[[], int]

    def check_open(self) -> None:
        """Raises ClosedError after close()."""
        ...

    def average_entry_size(self, ledger_id: int) -> int:
        """Bytes of an average entry, to estimate a read. The caller holds the lock."""
        ...

    def read(
        self, ledger_id: int, first: int, last: int, *, average: int, cursor: str
    ) -> Future[list[Entry]]:
        """Reads a range of one ledger on behalf of a cursor; see EntryCache.read."""
        ...

    def read_entry(self, position: Position) -> Future[Entry]:
        """Reads a single entry, for a replay."""
        ...

    def invalidate_passed_entries(self) -> None:
        """Invalidates cached entries that no active cursor needs any more."""
        ...

    def trim(self) -> list[int]:
        """Deletes the ledgers that every durable cursor has passed; returns their ids."""
        ...
