"""All managed ledgers of a broker: one cache manager, one limiter, one executor, one look at the clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Self

from pulsar_ml._core import EntryCacheManager, InflightReadsLimiter
from pulsar_ml.errors import ClosedError
from pulsar_ml.managed_ledger.ledger import ManagedLedger
from pulsar_ml.managed_ledger.settings import LedgerSettings
from pulsar_ml.managed_ledger.storage import LedgerStorage


class ManagedLedgerFactory:
    """Opens managed ledgers over a storage and a cache manager; both stay the caller's.

    Args:
        max_reads_in_flight_bytes: managedLedgerMaxReadsInFlightSizeInMB in bytes; 0 is no limit.
        acquire_timeout_millis, acquire_queue_size: managedLedgerMaxReadsInFlightPermitsAcquire...
        settings: of ledgers that are opened without their own.
        executor: continues reads that waited for permits; by default a thread of the factory's own.
        clock: nanoseconds; everything that depends on time follows it.
        check_interval_millis: a thread calls :meth:`expire` at this interval; None: the caller does.

    All methods may be called from any number of threads. ``with`` closes it. Origin:
    ``ManagedLedgerFactoryImpl`` of Pulsar 4.1.
    """

    def __init__(
        self,
        storage: LedgerStorage,
        manager: EntryCacheManager,
        *,
        max_reads_in_flight_bytes: int = 0,
        acquire_timeout_millis: int = 60_000,
        acquire_queue_size: int = 10_000,
        settings: LedgerSettings | None = None,
        executor: Executor | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
        check_interval_millis: int | None = None,
    ) -> None:
        self.storage = storage
        self.manager = manager
        self.settings = settings or LedgerSettings()
        self.clock = clock
        self.limiter = InflightReadsLimiter(
            max_bytes=max_reads_in_flight_bytes,
            acquire_timeout_millis=acquire_timeout_millis,
            acquire_queue_size=acquire_queue_size,
        )
        self.own_executor = ThreadPoolExecutor(1, "managed-ledger") if executor is None else None
        self.executor: Executor = executor or self.own_executor  # type: ignore[assignment]
        self.lock = threading.Lock()
        self.ledgers: dict[str, ManagedLedger] = {}
        self.closed = threading.Event()
        self.checker: threading.Thread | None = None
        if check_interval_millis is not None:
            seconds = check_interval_millis / 1000
            self.checker = threading.Thread(target=self.check, args=(seconds,), daemon=True)
            self.checker.start()

    def open(self, name: str, *, settings: LedgerSettings | None = None) -> ManagedLedger:
        """The open managed ledger of that name; ``settings`` are for a new one. Raises ClosedError."""
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

    def expire(self) -> None:
        """Do what time brings: fail the reads and the requests for permits that took too long, look for
        cursors far behind, flush cursors when their ledger's interval is over.
        """
        now = self.clock()
        self.limiter.expire(now_ns=now)
        with self.lock:
            ledgers = list(self.ledgers.values())
        for ledger in ledgers:
            ledger.expire(now_ns=now)
            ledger.check_backlogged_cursors()
            ledger.flush_cursors_if_due(now_ns=now)

    def check(self, seconds: float) -> None:
        while not self.closed.wait(seconds):
            self.expire()

    def cursor_metadata_sizes(self) -> list[tuple[tuple[str, str, str], int]]:
        """Bytes of metadata of each cursor by (namespace, topic, subscription), for
        Registry.add_cursor_metadata. The topic is the managed ledger's name, the namespace its tenant and
        namespace; ledgers that are closed have none.
        """
        with self.lock:
            ledgers = list(self.ledgers.values())
        sizes = []
        for ledger in ledgers:
            if ledger.closed:
                continue
            namespace = ledger.name.partition("://")[2].rpartition("/")[0]
            with ledger.lock:
                cursors = list(ledger.cursors.values())
            sizes += [
                ((namespace, ledger.name, cursor.name), cursor.acks.size) for cursor in cursors
            ]
        return sizes

    def close(self) -> None:
        """Close every ledger. What was read stays valid. StorageError as ManagedLedger.close, after all."""
        with self.lock:
            self.closed.set()
            ledgers = list(self.ledgers.values())
        if self.checker is not None:
            self.checker.join()
        with ExitStack() as stack:
            if self.own_executor is not None:
                stack.callback(self.own_executor.shutdown)
            stack.callback(self.limiter.close)
            for ledger in reversed(ledgers):
                stack.callback(ledger.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
