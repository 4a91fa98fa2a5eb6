"""The replay queue of a cursor: positions of entries that a dispatcher will read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future

from pulsar_ml._core import Entry
from pulsar_ml.managed_ledger.checks import check_position
from pulsar_ml.managed_ledger.cursors.cursor_ledger import CursorLedger
from pulsar_ml.managed_ledger.fork_lock import ForkLock
from pulsar_ml.managed_ledger.range_read import discard
from pulsar_ml.positions import Position

_counting = ForkLock()  # of all reads: its sections are a few statements


class ReplayQueue:
    """Positions to read again. All methods but ``drop_up_to`` take the ledger's lock themselves.

    ``is_deleted`` tells whether an entry is acknowledged; it is called under the ledger's lock.
    """

    def __init__(self, ledger: CursorLedger, is_deleted: Callable[[Position], bool]) -> None:
        self.ledger = ledger
        self.is_deleted = is_deleted
        self.positions: set[Position] = set()

    def add(self, entries: Iterable[Entry | Position]) -> None:
        """Queues entries; cached ones expect one more read.

        Entries that are acknowledged or do not exist are skipped.
        """
        for item in entries:
            at = item.position if isinstance(item, Entry) else check_position(item)
            with self.ledger.lock:
                if at in self.positions or not self.is_wanted(at):
                    continue
                self.positions.add(at)
            if isinstance(item, Entry):
                item.expect_read()
            elif (cached := self.ledger.cache.cached.get(at)) is not None:
                with cached:
                    cached.expect_read()

    def is_wanted(self, position: Position) -> bool:
        """False for an entry that is acknowledged, or whose ledger was deleted.

        The caller holds the ledger's lock.
        """
        return self.ledger.log.contains(position) and not self.is_deleted(position)

    def drop_up_to(self, mark: Position) -> None:
        """Removes positions up to a mark-delete position. The caller holds the ledger's lock."""
        self.positions = {at for at in self.positions if at > mark}

    def read(self, most: int) -> Future[list[Entry]]:
        """Takes up to ``most`` positions in log order and reads them, all or none.

        After a failure the positions are in the queue again. Entries that were acknowledged or
        deleted meanwhile leave the queue.
        """
        with self.ledger.lock:
            waiting = sorted(at for at in self.positions if self.is_wanted(at))
            chosen = waiting[:most]
            self.positions = set(waiting[most:])
        result: Future[list[Entry]] = Future()
        result.set_running_or_notify_cancel()
        if not chosen:
            result.set_result([])
            return result
        reads = [self.ledger.read_entry(at) for at in chosen]
        unfinished = len(reads)

        def on_read(_: Future[Entry]) -> None:
            nonlocal unfinished
            with _counting:
                unfinished -= 1
                is_last = unfinished == 0
            if is_last:
                self.finish(chosen, reads, result)

        for read in reads:
            read.add_done_callback(on_read)
        return result

    def finish(
        self, chosen: list[Position], reads: list[Future[Entry]], result: Future[list[Entry]]
    ) -> None:
        errors = [error for read in reads if (error := read.exception()) is not None]
        if not errors:
            result.set_result([read.result() for read in reads])
            return
        discard(read.result() for read in reads if read.exception() is None)
        with self.ledger.lock:
            self.positions.update(at for at in chosen if self.is_wanted(at))
        result.set_exception(errors[0])
