"""A storage in memory, which answers every call at once."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from pulsar_ml.errors import StorageError
from pulsar_ml.managed_ledger.checks import check_bytes
from pulsar_ml.managed_ledger.fork_lock import ForkLock
from pulsar_ml.managed_ledger.storage.interface import LedgerProperties, StoredEntry

Result = TypeVar("Result")


@dataclass(slots=True)
class StoredLedger:
    name: str
    entries: list[bytes] = field(default_factory=list)


def done(result: Result) -> Future[Result]:
    """A completed future."""
    future: Future[Result] = Future()
    future.set_result(result)
    return future


def failed(error: BaseException) -> Future[Result]:
    """A failed future."""
    future: Future[Result] = Future()
    future.set_exception(error)
    return future


class MemoryStorage:
    """A LedgerStorage in dictionaries; ``reads`` and ``entries_read`` count its reads."""

    def __init__(self) -> None:
        self.lock = ForkLock()
        self.by_id: dict[int, StoredLedger] = {}
        self.texts: dict[str, dict[str, str]] = {}
        self.last_id = 0
        self.reads = self.entries_read = 0

    def create_ledger(self, name: str) -> int:
        with self.lock:
            self.last_id += 1
            self.by_id[self.last_id] = StoredLedger(name)
            return self.last_id

    def ledgers(self, name: str) -> list[LedgerProperties]:
        with self.lock:
            return [
                LedgerProperties(ledger_id, len(ledger.entries), sum(map(len, ledger.entries)))
                for ledger_id, ledger in self.by_id.items()
                if ledger.name == name
            ]

    def append(self, ledger_id: int, entry_id: int, data: bytes) -> Future[None]:
        stored = check_bytes(data)
        with self.lock:
            ledger = self.by_id.get(ledger_id)
            if ledger is None or len(ledger.entries) != entry_id:
                return failed(
                    StorageError(f"entry {ledger_id}:{entry_id} is not the next one of its ledger")
                )
            ledger.entries.append(stored)
        return done(None)

    def read(self, ledger_id: int, first: int, last: int) -> Future[list[StoredEntry]]:
        with self.lock:
            ledger = self.by_id.get(ledger_id)
            if ledger is None or not 0 <= first <= last < len(ledger.entries):
                return failed(StorageError(f"ledger {ledger_id} has no entries {first}..{last}"))
            found = [StoredEntry(ledger_id, i, ledger.entries[i]) for i in range(first, last + 1)]
            self.reads += 1
            self.entries_read += len(found)
        return done(found)

    def reopen_ledger(self, ledger_id: int) -> None:
        """No effect: there are no handles."""

    def delete_ledger(self, ledger_id: int) -> Future[None]:
        with self.lock:
            self.by_id.pop(ledger_id, None)
        return done(None)

    def properties(self, name: str) -> dict[str, str]:
        with self.lock:
            return dict(self.texts.get(name, {}))

    def set_property(self, name: str, key: str, value: str | None) -> None:
        with self.lock:
            texts = self.texts.setdefault(name, {})
            if value is None:
                texts.pop(key, None)
            else:
                texts[key] = value

    def close(self) -> None:
        """No effect: nothing is under way."""
