"""All managed ledgers of a broker, with one cache manager, read limiter, executor and clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any, Self

from pulsar_ml._core import EntryCacheManager, InflightReadsLimiter
from pulsar_ml.errors import ClosedError
from pulsar_ml.managed_ledger.checks import check_name
from pulsar_ml.managed_ledger.cursors.cursor import call_all
from pulsar_ml.managed_ledger.fork_lock import AfterFork, ForkLock
from pulsar_ml.managed_ledger.ledger import ManagedLedger
from pulsar_ml.managed_ledger.settings import LedgerSettings
from pulsar_ml.managed_ledger.storage.interface import LedgerStorage
from pulsar_ml.managed_ledger.topic_names import topic_name


def expire_reads(ledger: ManagedLedger, now_ns: int) -> None:
    ledger.expire(now_ns=now_ns)


def check_backlog(ledger: ManagedLedger, now_ns: int) -> None:
    ledger.check_backlogged_cursors()


def select_backlogged(ledger: ManagedLedger, now_ns: int) -> None:
    ledger.check_cursors_to_cache_entries()


def flush_if_due(ledger: ManagedLedger, now_ns: int) -> None:
    ledger.flush_cursors_if_due(now_ns=now_ns)


class PrivateExecutor(Executor, AfterFork):
    """A thread that continues reads; a forked child starts one of its own."""

    def __init__(self) -> None:
        self.closed = False
        self.after_fork()
        self.watch_forks()

    def after_fork(self) -> None:
        if not self.closed:
            self.executor = ThreadPoolExecutor(1, "managed-ledger")

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return self.executor.submit(work, *arguments, **named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.closed = True
        self.executor.shutdown(wait, cancel_futures=cancel_futures)


class ManagedLedgerFactory(AfterFork):
    """Opens managed ledgers over a storage and a cache manager, which the caller closes.

    Args:
        max_reads_in_flight_bytes: managedLedgerMaxReadsInFlightSizeInMB in bytes; 0 or less:
            no limit.
        acquire_timeout_ms: managedLedgerMaxReadsInFlightPermitsAcquireTimeoutMillis; 0 or
            less: none.
        acquire_queue_size: managedLedgerMaxReadsInFlightPermitsAcquireQueueSize.
        settings: the settings of ledgers opened without their own.
        executor: continues reads that waited for permits; default: a private thread.
        clock: returns nanoseconds; everything that depends on time uses it.
        check_interval_ms: a thread calls :meth:`expire` at this interval; None: the caller
            does.

    All methods may be called from any number of threads. The end of a ``with`` block closes the
    factory. Origin: ``ManagedLedgerFactoryImpl`` of Pulsar 4.1.
    """

    def __init__(
        self,
        storage: LedgerStorage,
        manager: EntryCacheManager,
        *,
        max_reads_in_flight_bytes: int = 0,
        acquire_timeout_ms: int = 60_000,
        acquire_queue_size: int = 10_000,
        settings: LedgerSettings | None = None,
        executor: Executor | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
        check_interval_ms: int | None = None,
    ) -> None:
        self.storage = storage
        self.manager = manager
        self.settings = settings or LedgerSettings()
        self.clock = clock
        self.limiter = InflightReadsLimiter(
            max_bytes=max_reads_in_flight_bytes,
            acquire_timeout_ms=acquire_timeout_ms,
            acquire_queue_size=acquire_queue_size,
        )
        self.private_executor = PrivateExecutor() if executor is None else None
        self.executor: Executor = executor or self.private_executor  # type: ignore[assignment]
        self.lock = ForkLock(waits=True)
        self.ledgers: dict[str, ManagedLedger] = {}
        self.closed = threading.Event()
        self.checker: threading.Thread | None = None
        if check_interval_ms is not None:
            seconds = check_interval_ms / 1000
            self.checker = threading.Thread(target=self.check, args=(seconds,), daemon=True)
            self.checker.start()
        self.watch_forks()

    def after_fork(self) -> None:
        closed, self.closed = self.closed.is_set(), threading.Event()
        if closed:
            self.closed.set()

    def open(self, name: str, *, settings: LedgerSettings | None = None) -> ManagedLedger:
        """Returns the managed ledger of that name; opens it with ``settings`` when it is closed.

        Raises ClosedError, and UsageError for a name that cannot be stored.
        """
        check_name(name, "managed ledger")
        with self.lock:
            if self.closed.is_set():
                raise ClosedError("the managed ledger factory is closed")
            ledger = self.ledgers.get(name)
            if ledger is None or ledger.closed:
                ledger = self.ledgers[name] = ManagedLedger(
                    name,
                    storage=self.storage,
                    manager=self.manager,
                    limiter=self.limiter,
                    executor=self.executor,
                    settings=settings or self.settings,
                    clock=self.clock,
                )
            return ledger

    def get(self, name: str) -> ManagedLedger | None:
        """The open managed ledger of that name, or None."""
        ledger = self.ledgers.get(name)
        return None if ledger is None or ledger.closed else ledger

    def expire(self) -> None:
        """Runs the periodic tasks.

        Fails reads and permit requests that timed out, deactivates cursors that are far behind,
        selects backlogged cursors whose reads are cached, and flushes the cursors of ledgers whose
        flush interval is over. An exception of one ledger is
        raised after the other ledgers had their turn.
        """
        now = self.clock()
        self.limiter.expire(now_ns=now)
        with self.lock:
            ledgers = list(self.ledgers.values())
        call_all(
            [
                partial(task, ledger, now)
                for ledger in ledgers
                for task in (expire_reads, check_backlog, select_backlogged, flush_if_due)
            ]
        )

    def check(self, seconds: float) -> None:
        while not self.closed.wait(seconds):
            try:
                self.expire()
            except Exception as error:
                # Reported like the exception of a thread; the next turn comes all the same.
                threading.excepthook(
                    threading.ExceptHookArgs(
                        (type(error), error, error.__traceback__, threading.current_thread())
                    )
                )

    def cursor_metadata_sizes(self) -> list[tuple[tuple[str, str, str], int]]:
        """Metadata bytes of each cursor by (namespace, topic, subscription).

        Registry.add_cursor_metadata takes this method. Namespace and topic are those of the managed
        ledger's name, in either form: ``persistent://tenant/namespace/topic`` or
        ``tenant/namespace/persistent/topic``. Closed ledgers are left out.
        """
        with self.lock:
            ledgers = list(self.ledgers.values())
        sizes = []
        for ledger in ledgers:
            if ledger.closed:
                continue
            name = topic_name(ledger.name)
            with ledger.lock:
                cursors = list(ledger.cursors.values())
            sizes += [
                ((name.namespace, name.topic, cursor.name), cursor.acks.size) for cursor in cursors
            ]
        return sizes

    def close(self) -> None:
        """Closes every ledger; entries read before stay valid.

        A StorageError of ManagedLedger.close is raised after all ledgers were closed.
        """
        with self.lock:
            self.closed.set()
            ledgers = list(self.ledgers.values())
        if self.checker is not None:
            self.checker.join()
        with ExitStack() as stack:
            if self.private_executor is not None:
                stack.callback(self.private_executor.shutdown)
            stack.callback(self.limiter.close)
            for ledger in reversed(ledgers):
                stack.callback(ledger.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
