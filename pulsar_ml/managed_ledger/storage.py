"""What a managed ledger asks of its storage: append-only ledgers of entries, and a few named texts."""

from __future__ import annotations

from concurrent.futures import Future
from typing import NamedTuple, Protocol


class StoredEntry(NamedTuple):
    """An entry as the storage has it; which one it is, the storage says."""

    ledger_id: int
    entry_id: int
    data: bytes


class LedgerProperties(NamedTuple):
    """A ledger of a managed ledger: its entries have the ids 0 .. entries - 1, ``length`` bytes in all."""

    ledger_id: int
    entries: int
    length: int


class LedgerStorage(Protocol):
    """Ledgers, numbered upwards for all managed ledgers together.

    All methods may be called from any number of threads. A future is completed in any thread, perhaps
    before the method returns; a failure is its exception. Methods without a future are quick.
    """

    def create_ledger(self, name: str) -> int:
        """A new, empty ledger of the managed ledger ``name``."""
        ...

    def ledgers(self, name: str) -> list[LedgerProperties]:
        """The ledgers of a managed ledger, ascending."""
        ...

    def append(self, ledger_id: int, entry_id: int, data: bytes) -> Future[None]:
        """Store an entry; it is durable when the future says so. The id is the next one of the ledger."""
        ...

    def read(self, ledger_id: int, first: int, last: int) -> Future[list[StoredEntry]]:
        """The entries ``first`` .. ``last`` of a ledger."""
        ...

    def delete_ledger(self, ledger_id: int) -> Future[None]:
        """Forget a ledger; no effect when it is gone."""
        ...

    def properties(self, name: str) -> dict[str, str]:
        """The texts kept for a managed ledger."""
        ...

    def set_property(self, name: str, key: str, value: str | None) -> None:
        """Keep a text, or with None no longer."""
        ...

    def close(self) -> None:
        """Finish what was asked for. Further use is an error."""
        ...
