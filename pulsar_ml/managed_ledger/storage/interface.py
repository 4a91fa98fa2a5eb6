"""The storage interface of a managed ledger: append-only ledgers of entries, and properties."""

from __future__ import annotations

from concurrent.futures import Future
from typing import NamedTuple, Protocol


class StoredEntry(NamedTuple):
    """An entry with its position, both as the storage returned them."""

    ledger_id: int
    entry_id: int
    data: bytes


class LedgerProperties(NamedTuple):
    """A ledger with the entries 0 .. ``entries`` - 1, which have ``length`` bytes in total."""

    ledger_id: int
    entries: int
    length: int


class LedgerStorage(Protocol):
    """A store of ledgers with ascending ids, unique over all managed ledgers.

    All methods may be called from any number of threads. A future may be completed in any thread,
    even before the method returns; a failure is its exception. Methods without a future are quick.
    """

    def create_ledger(self, name: str) -> int:
        """Creates an empty ledger of the managed ledger ``name`` and returns its id."""
        ...

    def ledgers(self, name: str) -> list[LedgerProperties]:
        """The ledgers of a managed ledger, ascending."""
        ...

    def append(self, ledger_id: int, entry_id: int, data: bytes) -> Future[None]:
        """Stores an entry under the next id of the ledger; durable when the future completes."""
        ...

    def read(self, ledger_id: int, first: int, last: int) -> Future[list[StoredEntry]]:
        """Reads the entries ``first`` .. ``last`` of a ledger.

        A failure with LedgerHandleClosedError is repaired by :meth:`reopen_ledger`.
        """
        ...

    def reopen_ledger(self, ledger_id: int) -> None:
        """Replaces a handle of a ledger that was closed; no effect in a storage without handles."""
        ...

    def delete_ledger(self, ledger_id: int) -> Future[None]:
        """Deletes a ledger; no effect when it does not exist."""
        ...

    def properties(self, name: str) -> dict[str, str]:
        """The properties of a managed ledger."""
        ...

    def set_property(self, name: str, key: str, value: str | None) -> None:
        """Sets a property of a managed ledger; None removes it."""
        ...

    def close(self) -> None:
        """Finishes the work under way; the storage cannot be used afterwards."""
        ...
