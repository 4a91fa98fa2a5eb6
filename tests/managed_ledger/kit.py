"""A broker's parts for one test, which must be balanced when it is over."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pulsar_ml import Entry, EntryCacheManager
from pulsar_ml.managed_ledger import (
    DiskStorage,
    FaultyStorage,
    LedgerSettings,
    LedgerStorage,
    ManagedCursor,
    ManagedLedger,
    ManagedLedgerFactory,
    MemoryStorage,
)

MILLISECOND = 1_000_000
SECONDS = 10  # that a test waits for what must come


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def pass_millis(self, millis: int) -> None:
        self.now += millis * MILLISECOND


class Here(Executor):
    """Runs what it is given at once; refuses while ``open`` is off."""

    def __init__(self) -> None:
        self.open = True

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        if not self.open:
            raise RuntimeError("this executor takes nothing")
        done: Future[Any] = Future()
        done.set_result(work(*arguments, **named))
        return done


class World:
    """A storage, a manager, a factory and one managed ledger."""

    def __init__(
        self,
        storage: LedgerStorage,
        *,
        settings: LedgerSettings | None = None,
        limit: int = 0,
        **options: Any,
    ) -> None:
        self.clock = Clock()
        self.executor = Here()
        self.storage = FaultyStorage(storage)
        self.manager = EntryCacheManager()
        self.factory = ManagedLedgerFactory(
            self.storage,
            self.manager,
            settings=settings,
            max_reads_in_flight_bytes=limit,
            executor=self.executor,
            clock=self.clock,
            **options,
        )
        self.limit = limit
        self.ledger: ManagedLedger = self.factory.open("orders")

    def add(self, count: int, *, size: int = 0) -> list[Any]:
        """Entries of "0", "1", ..., or of so many bytes."""
        start = self.ledger.last_confirmed.entry_id + 1
        return [self.ledger.add_entry(b"x" * size or str(start + i).encode()) for i in range(count)]

    def evict(self) -> None:
        self.ledger.cache.clear()

    def close(self) -> None:
        """Everything is given back: permits, entries, counts, pages."""
        self.factory.close()
        self.storage.close()
        self.manager.close()
        assert self.factory.limiter.remaining == (self.limit or -1)
        in_use = self.manager.objects_in_use()
        del in_use["range_caches"]
        assert set(in_use.values()) == {0}, in_use


@contextmanager
def world(storage: LedgerStorage | None = None, **options: Any) -> Iterator[World]:
    made = World(storage or MemoryStorage(), **options)
    yield made
    made.close()


def stored(kind: str, folder: Path) -> LedgerStorage:
    """A storage of either kind."""
    return (
        MemoryStorage() if kind == "memory" else DiskStorage(folder / "ledgers.db", durable=False)
    )


def texts(entries: Iterable[Entry]) -> list[str]:
    """What the entries say; they are released."""
    said = []
    for entry in entries:
        with entry:
            said.append(bytes(entry).decode())
    return said


def read(cursor: ManagedCursor, most: int = 100) -> list[str]:
    return texts(cursor.read_entries(most).result(SECONDS))


@contextmanager
def noticed() -> Iterator[list[BaseException | None]]:
    """Exceptions that had nowhere to go."""
    reported: list[BaseException | None] = []
    before = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: reported.append(unraisable.exc_value)
    try:
        yield reported
    finally:
        sys.unraisablehook = before
