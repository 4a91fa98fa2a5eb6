"""Forks beside threads that use managed ledgers: the child works, and no lock is lost in it."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import pytest

from pulsar_ml import EntryCacheManager
from pulsar_ml.managed_ledger import (
    DiskStorage,
    LedgerStorage,
    ManagedLedgerFactory,
    MemoryStorage,
)
from pulsar_ml.managed_ledger.fork_lock import ForkLock
from tests.core.face.test_forks import PATIENCE, ends, in_child

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
CHILDREN = 8
_begun: list[threading.Event] = []  # set when a fork begins, before it waits for any lock


def begin() -> None:
    for event in _begun:
        event.set()


os.register_at_fork(before=begin)


def use(factory: ManagedLedgerFactory, name: str, text: str) -> None:
    """Adds an entry, reads it with a cursor of its own, and acknowledges it."""
    ledger = factory.open(name)
    cursor = ledger.open_cursor(text)
    at = ledger.add_entry(text.encode())
    cursor.seek(at)
    for entry in cursor.read_entries(1).result(PATIENCE):
        entry.release()
    cursor.mark_delete(at)
    cursor.flush()
    ledger.delete_cursor(text)


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_a_child_forked_beside_ledgers_works(kind: str, tmp_path: Path) -> None:
    storage: LedgerStorage = MemoryStorage() if kind == "memory" else DiskStorage(tmp_path / "file")
    manager = EntryCacheManager()
    factory = ManagedLedgerFactory(storage, manager)

    def repeat(number: int, busy: threading.Event, stop: threading.Event) -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            use(factory, f"{turn % 2}", f"{number}-{turn}")
            busy.set()

    def child() -> None:
        # Names of its own on disk: parent and child are two writers of one file there.
        use(factory, "0" if kind == "memory" else "child", "child")
        factory.close()
        storage.close()

    for turn in range(CHILDREN):
        busy, stop = threading.Event(), threading.Event()
        threads = [
            threading.Thread(target=repeat, args=(number, busy, stop)) for number in range(2)
        ]
        for thread in threads:
            thread.start()
        assert busy.wait(PATIENCE)
        forked = in_child(child)
        stop.set()
        for thread in threads:
            thread.join()
        assert ends(forked), f"child {turn} did not end well"
    factory.close()
    storage.close()
    manager.close()


class Stalling(MemoryStorage):
    """A storage whose appends of b"stall" are answered when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived, self.go_on = threading.Event(), threading.Event()

    def append(self, ledger_id: int, entry_id: int, data: bytes) -> Future[None]:
        if data == b"stall":
            self.arrived.set()
            assert self.go_on.wait(PATIENCE)
        return super().append(ledger_id, entry_id, data)


def test_a_child_adds_beside_an_add_that_waits_for_the_storage() -> None:
    storage, manager = Stalling(), EntryCacheManager()
    factory = ManagedLedgerFactory(storage, manager)
    ledger = factory.open("a")
    before = ledger.add_entry(b"before")
    thread = threading.Thread(target=ledger.add_entry, args=(b"stall",))
    thread.start()
    assert storage.arrived.wait(PATIENCE)

    def child() -> None:
        assert not ledger.adding.locked()
        at = ledger.add_entry(b"child")
        assert at.ledger_id > before.ledger_id, "the torn add may be in the old ledger"
        assert bytes(ledger.read_entry(at).result(PATIENCE)) == b"child"
        factory.close()

    assert ends(in_child(child))
    assert ledger.adding.locked(), "and the parent's add waits on"
    storage.go_on.set()
    thread.join()
    assert ledger.last_confirmed == (before.ledger_id, 1)
    factory.close()
    manager.close()


def test_a_listener_under_the_lock_of_its_ledger_may_fork() -> None:
    manager = EntryCacheManager()
    factory = ManagedLedgerFactory(MemoryStorage(), manager)
    ledger = factory.open("a")
    cursor = ledger.open_cursor("c", earliest=True)
    at = ledger.add_entry(b"x")
    children: list[int] = []
    cursor.on_mark_delete(lambda mark: children.append(in_child(lambda: None)))
    cursor.mark_delete(at)
    assert [ends(child) for child in children] == [True]
    factory.close()
    manager.close()


def test_a_fork_waits_for_the_end_of_a_short_section() -> None:
    lock, inside, begun = ForkLock(), threading.Event(), threading.Event()
    pair = [0, 0]

    def section() -> None:
        with lock:
            pair[0] = 1
            inside.set()
            assert begun.wait(PATIENCE)  # the fork is under way
            for _ in range(10_000):  # a fork that does not wait would have happened
                os.sched_yield()
            pair[1] = 1

    def child() -> None:
        assert pair == [1, 1] and not lock.locked()
        with lock:
            pass

    thread = threading.Thread(target=section)
    thread.start()
    assert inside.wait(PATIENCE)
    _begun.append(begun)
    try:
        assert ends(in_child(child))
    finally:
        _begun.clear()
        thread.join()


def take(first: ForkLock, second: ForkLock) -> None:
    with first, second:
        pass


def test_sections_inside_sections_do_not_stop_a_fork() -> None:
    """Threads take two locks in either order, as listeners may; a fork holds both or neither."""
    locks, stop = (ForkLock(), ForkLock()), threading.Event()

    def repeat() -> None:
        while not stop.is_set():
            take(*locks)
            take(*reversed(locks))

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        children = [in_child(partial(take, *locks)) for _ in range(CHILDREN)]
        assert all(ends(child) for child in children)
    finally:
        stop.set()
        thread.join()


class Owner:
    """The object whose method a torn lock calls."""

    def __init__(self, torn: list[str]) -> None:
        self.torn = torn

    def on_torn(self) -> None:
        self.torn.append("torn")


class TakenUnnoticed:
    """A lock that another thread has just got, and that does not say so yet."""

    def locked(self) -> bool:
        return False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        raise AssertionError("the child waits for a thread that it does not have")


def test_a_lock_that_looks_free_is_new_in_a_child() -> None:
    torn: list[str] = []
    owner = Owner(torn)
    lock = ForkLock(waits=True, on_torn=owner.on_torn)
    lock._lock = TakenUnnoticed()  # type: ignore[assignment]

    def child() -> None:
        with lock:
            assert torn == []

    assert ends(in_child(child))
