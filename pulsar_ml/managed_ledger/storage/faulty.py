"""A storage that fails, stalls and returns wrong entries on command."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from enum import Enum

from pulsar_ml.errors import LedgerHandleClosedError, StorageError
from pulsar_ml.managed_ledger.fork_lock import ForkLock
from pulsar_ml.managed_ledger.storage.interface import (
    LedgerProperties,
    LedgerStorage,
    StoredEntry,
)
from pulsar_ml.managed_ledger.storage.memory import failed

StoredEntries = Future[list[StoredEntry]]


class Fault(Enum):
    """A fault of a single read."""

    NONE = "the right answer"
    FAIL = "an error"
    CLOSED = "an error, also of later reads of the ledger, until it is opened again"
    STALL = "no answer before resume()"
    SHORT = "the last entry is missing"
    FOREIGN = "additional entries that were not requested, and one entry twice"
    FOREIGN_INSTEAD = "entries that were not requested in the place of the first entry"


class FaultyStorage:
    """A LedgerStorage that passes on to another one, with faults.

    :meth:`plan` sets the faults of the next reads. The next ``fail_appends`` appends and the next
    ``fail_properties`` writes of properties fail. ``reads`` records (ledger, first, last) of each
    read, ``reopened`` the ledgers that were opened again. Thread-safe.
    """

    def __init__(self, inner: LedgerStorage) -> None:
        self.inner = inner
        self.lock = ForkLock()
        self.planned: deque[Fault] = deque()
        self.stalled: list[tuple[StoredEntries, StoredEntries]] = []
        self.fail_appends = 0
        self.fail_properties = 0
        self.reads: list[tuple[int, int, int]] = []
        self.closed_handles: set[int] = set()
        self.reopened: list[int] = []

    def plan(self, *faults: Fault) -> None:
        """Sets the faults of the next reads, one each."""
        with self.lock:
            self.planned.extend(faults)

    def resume(self, which: int = 0, *, error: BaseException | None = None) -> None:
        """Completes the stalled read number ``which``, counted from the oldest, or fails it.

        Raises IndexError when there is no such read.
        """
        with self.lock:
            answer, real = self.stalled.pop(which)
        if error is not None:
            answer.set_exception(error)
        else:
            real.add_done_callback(lambda future: pass_on(future, answer, Fault.NONE))

    def read(self, ledger_id: int, first: int, last: int) -> StoredEntries:
        with self.lock:
            self.reads.append((ledger_id, first, last))
            fault = self.planned.popleft() if self.planned else Fault.NONE
            if fault is Fault.CLOSED:
                self.closed_handles.add(ledger_id)
            closed = ledger_id in self.closed_handles
        if closed:
            return failed(LedgerHandleClosedError(f"the handle of ledger {ledger_id} is closed"))
        if fault is Fault.FAIL:
            return failed(StorageError(f"injected fault: read of {ledger_id}:{first}..{last}"))
        real = self.inner.read(ledger_id, first, last)
        answer: StoredEntries = Future()
        if fault is Fault.STALL:
            with self.lock:
                self.stalled.append((answer, real))
        else:
            real.add_done_callback(lambda future: pass_on(future, answer, fault))
        return answer

    def reopen_ledger(self, ledger_id: int) -> None:
        with self.lock:
            self.closed_handles.discard(ledger_id)
            self.reopened.append(ledger_id)
        self.inner.reopen_ledger(ledger_id)

    def append(self, ledger_id: int, entry_id: int, data: bytes) -> Future[None]:
        with self.lock:
            failing = self.fail_appends > 0
            self.fail_appends -= failing
        if failing:
            return failed(StorageError(f"injected fault: append of {ledger_id}:{entry_id}"))
        return self.inner.append(ledger_id, entry_id, data)

    def create_ledger(self, name: str) -> int:
        return self.inner.create_ledger(name)

    def ledgers(self, name: str) -> list[LedgerProperties]:
        return self.inner.ledgers(name)

    def delete_ledger(self, ledger_id: int) -> Future[None]:
        return self.inner.delete_ledger(ledger_id)

    def properties(self, name: str) -> dict[str, str]:
        return self.inner.properties(name)

    def set_property(self, name: str, key: str, value: str | None) -> None:
        with self.lock:
            failing = self.fail_properties > 0
            self.fail_properties -= failing
        if failing:
            raise StorageError(f"injected fault: property {key!r} of {name!r}")
        self.inner.set_property(name, key, value)

    def close(self) -> None:
        self.inner.close()


def pass_on(real: StoredEntries, answer: StoredEntries, fault: Fault) -> None:
    """Completes ``answer`` with the real one, changed by the fault."""
    error = real.exception()
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(with_fault(real.result(), fault))


def with_fault(entries: list[StoredEntry], fault: Fault) -> list[StoredEntry]:
    """Foreign entries: of another ledger, 2**32 ids further, behind the range, without an id."""
    first, last = entries[0], entries[-1]
    foreign = [
        first._replace(ledger_id=first.ledger_id + 1, data=b"another ledger"),
        first._replace(entry_id=first.entry_id + 2**32, data=b"2**32 further"),
        last._replace(entry_id=last.entry_id + 1, data=b"behind"),
        first._replace(entry_id=-1, data=b"without an id"),
        first._replace(ledger_id=-1, data=b"without a ledger"),
    ]
    if fault is Fault.SHORT:
        return entries[:-1]
    if fault is Fault.FOREIGN:
        return [*reversed(entries), *foreign, first]
    if fault is Fault.FOREIGN_INSTEAD:
        return [*foreign, *entries[1:]]
    return entries
