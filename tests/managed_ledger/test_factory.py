"""The factory's own threads: its executor and its checker."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from pulsar_ml import ClosedError, Entry, EntryCacheManager, Position, ReadTimeoutError
from pulsar_ml.managed_ledger import (
    Fault,
    FaultyStorage,
    LedgerSettings,
    ManagedLedgerFactory,
    MemoryStorage,
)
from tests.managed_ledger.kit import SECONDS, texts


def test_a_long_queue_of_reads_drains_on_the_executor() -> None:
    """Each callback releases its read, which admits the next one; the calls must not nest."""
    count, permits = 3000, 64 + 1
    with EntryCacheManager() as manager:
        with ManagedLedgerFactory(
            MemoryStorage(), manager, max_reads_in_flight_bytes=permits
        ) as factory:
            ledger = factory.open("a")
            ledger.open_cursor("a")
            at = ledger.add_entry(b"x")
            first = ledger.read_entry(at).result(SECONDS)
            delivered: list[str] = []

            def release(read: Future[Entry]) -> None:
                delivered.extend(texts([read.result()]))

            waiting = [ledger.read_entry(at) for _ in range(count)]
            for read in waiting:
                read.add_done_callback(release)
            assert not any(read.done() for read in waiting)
            first.release()
            for read in waiting:
                read.result(SECONDS)
        assert delivered == ["x"] * count
        assert factory.limiter.remaining == permits


def test_ledgers_and_cursors_are_looked_up_by_name_without_being_made() -> None:
    with EntryCacheManager() as manager, ManagedLedgerFactory(MemoryStorage(), manager) as factory:
        assert factory.get("a") is None
        ledger = factory.open("a")
        assert factory.get("a") is ledger
        assert ledger.get("c") is None
        cursor = ledger.open_cursor("c")
        assert ledger.get("c") is cursor
        ledger.close()
        assert factory.get("a") is None


def test_a_thread_of_the_factory_fails_what_takes_too_long() -> None:
    storage = FaultyStorage(MemoryStorage())
    settings = LedgerSettings(managed_ledger_read_entry_timeout_millis=1)
    with EntryCacheManager() as manager:
        with ManagedLedgerFactory(
            storage, manager, settings=settings, check_interval_ms=1
        ) as factory:
            ledger = factory.open("a")
            at = ledger.add_entry(b"x")
            ledger.cache.clear()
            storage.plan(Fault.STALL)
            assert isinstance(ledger.read_entry(at).exception(SECONDS), ReadTimeoutError)
        assert factory.checker is not None
        assert not factory.checker.is_alive()


def test_a_name_has_one_open_ledger() -> None:
    with EntryCacheManager() as manager:
        with ManagedLedgerFactory(MemoryStorage(), manager) as factory:
            ledger = factory.open("a")
            assert factory.open("a") is ledger
            other = factory.open("b")
            ledger.add_entry(b"x")
            assert other.last_confirmed == Position(-1, -1)
        with pytest.raises(ClosedError):
            factory.open("a")
