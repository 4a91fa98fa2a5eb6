"""A broker for one test, with checks that everything was returned at its end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

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
SECONDS = 300  # the longest wait for a result that must come

Value = TypeVar("Value")


class Clock:
    """A clock that stands still until the test moves it."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def pass_millis(self, millis: int) -> None:
        self.now += millis * MILLISECOND


class ImmediateExecutor(Executor):
    """Runs work in the calling thread at once; refuses work while ``open`` is false."""

    def __init__(self) -> None:
        self.open = True

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        if not self.open:
            raise RuntimeError("the executor is closed")
        future: Future[Any] = Future()
        future.set_result(work(*arguments, **named))
        return future


class Broker:
    """A storage, a cache manager, a factory and one managed ledger."""

    def __init__(
        self,
        storage: LedgerStorage,
        *,
        settings: LedgerSettings | None = None,
        limit: int = 0,
        **options: Any,
    ) -> None:
        self.clock = Clock()
        self.executor = ImmediateExecutor()
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
        """Adds entries "0", "1", ..., or entries of ``size`` bytes; returns their positions."""
        start = self.ledger.last_confirmed.entry_id + 1
        return [self.ledger.add_entry(b"x" * size or str(start + i).encode()) for i in range(count)]

    def evict(self) -> None:
        self.ledger.cache.clear()

    def close(self) -> None:
        """Closes all and checks that permits, entries, counts and pages were returned."""
        self.factory.close()
        self.storage.close()
        self.manager.close()
        assert self.factory.limiter.remaining == (self.limit or -1)
        in_use = self.manager.objects_in_use()
        del in_use["range_caches"]
        assert set(in_use.values()) == {0}, in_use


@contextmanager
def open_broker(storage: LedgerStorage | None = None, **options: Any) -> Iterator[Broker]:
    broker = Broker(storage or MemoryStorage(), **options)
    yield broker
    broker.close()


def stored(kind: str, folder: Path) -> LedgerStorage:
    """Creates a storage of a kind, "memory" or "disk"."""
    return (
        MemoryStorage() if kind == "memory" else DiskStorage(folder / "ledgers.db", durable=False)
    )


def texts(entries: Iterable[Entry]) -> list[str]:
    """Releases the entries and returns their payloads."""
    payloads = []
    for entry in entries:
        with entry:
            payloads.append(bytes(entry).decode())
    return payloads


def read(cursor: ManagedCursor, most: int = 100) -> list[str]:
    return texts(cursor.read_entries(most).result(SECONDS))


def require(value: Value | None) -> Value:
    """Returns the value; fails the test when it is None."""
    assert value is not None
    return value


@contextmanager
def noticed() -> Iterator[list[BaseException | None]]:
    """Collects exceptions that no caller can receive."""
    reported: list[BaseException | None] = []
    before = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: reported.append(unraisable.exc_value)
    try:
        yield reported
    finally:
        sys.unraisablehook = before
