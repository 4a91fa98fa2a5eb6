"""A cursor: where a subscription reads, what it acknowledged, and what is to be read again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from pulsar_ml._core import AckState, Entry
from pulsar_ml.errors import UsageError
from pulsar_ml.managed_ledger.cursor_metadata import LeftOut
from pulsar_ml.managed_ledger.cursor_store import CursorStore
from pulsar_ml.managed_ledger.ledgers import after
from pulsar_ml.managed_ledger.range_read import discard
from pulsar_ml.positions import Position

if TYPE_CHECKING:
    from pulsar_ml.managed_ledger.ledger import ManagedLedger

Entries = Future[list[Entry]]

GONE = 2**62  # an entry id behind every ledger's end


class ManagedCursor:
    """A named cursor of a managed ledger; made by ManagedLedger.open_cursor.

    All methods may be called from any number of threads; one read at a time is under way. Origin:
    ``ManagedCursorImpl`` of Pulsar 4.1.
    """

    def __init__(self, ledger: ManagedLedger, name: str, mark_delete: Position, *, durable: bool) -> None:
        self.ledger = ledger
        self.name = name
        self.durable = durable
        self.store = CursorStore(ledger.storage, ledger.name, name)
        self.keeping = threading.Lock()  # while the storage learns the position: in order
        # With the ledger's lock, all of these.
        self.acks = self.recovered(mark_delete)
        self.mark_delete_position = self.acks.mark_delete_position
        self.read_position = after(self.mark_delete_position)
        self.end_at = self.mark_delete_position  # in the first ledger whose end the acks were not told
        self.resumed = False
        self.on_resume: Callable[[], object] | None = None
        self.to_replay: set[Position] = set()
        self.reading = False
        self.seeks = 0

    # Activity ----------------------------------------------------------------------------------------

    def set_active(self) -> None:
        """Expect this cursor to read what is added."""
        with self.ledger.lock:
            if self.name not in self.ledger.active:
                self.ledger.active.add(self.name, self.read_position, self.mark_delete_position)

    def set_inactive(self) -> None:
        """Expect it no longer; its backlog stays."""
        with self.ledger.lock:
            self.ledger.active.remove(self.name)
        self.ledger.cursor_moved()

    @property
    def is_active(self) -> bool:
        return self.name in self.ledger.active

    def track(self) -> None:
        """Tell the cache's strategy where the cursor is. With the ledger's lock."""
        self.ledger.active.move(self.name, self.read_position, self.mark_delete_position)

    # Reading -----------------------------------------------------------------------------------------

    def read_entries(self, most: int) -> Entries:
        """The next entries, 1 .. ``most`` of them and of one ledger; none at the end of the log.

        Each is a copy that the caller releases; that marks its read. What was acknowledged is left out. After
        a failure the position is unchanged. Raises UsageError for a second read at the same time, and
        ClosedError.
        """
        ledger = self.ledger
        ledger.check_open()
        if most < 1:
            raise UsageError(f"most={most!r} should be at least 1")
        result: Entries = Future()
        result.set_running_or_notify_cancel()
        with ledger.lock:
            if self.reading:
                raise UsageError(f"cursor {self.name!r} has a read under way; wait for it")
            first = ledger.log.first_at_or_after(self.read_position)
            if first is not None:
                self.reading = True
                last = min(first.entry_id + most, ledger.log.entries(first.ledger_id)) - 1
                average = ledger.average_entry_size(first.ledger_id)
            seeks = self.seeks
        if first is None:
            result.set_result([])
            return result
        read = ledger.read(first.ledger_id, first.entry_id, last, average=average, cursor=self.name)
        read.add_done_callback(
            lambda done: self.read_done(done, seeks, Position(first.ledger_id, last), result)
        )
        return result

    def read_done(self, read: Entries, seeks: int, last: Position, result: Entries) -> None:
        error = read.exception()
        with self.ledger.lock:
            self.reading = False
            current = seeks == self.seeks
            if error is None and current:
                self.read_position = max(self.read_position, after(last))
                self.track()
            acknowledged = [] if error else [self.is_deleted(entry.position) for entry in read.result()]
        if error is not None:
            result.set_exception(error)
            return
        entries = read.result()
        if not current:
            # The cursor was moved meanwhile: nobody wants these.
            discard(entries)
            result.set_result([])
            return
        self.ledger.cursor_moved()
        kept = []
        for entry, gone in zip(entries, acknowledged, strict=True):
            if gone:
                entry.release()  # Its expected read will not come: this marks it.
            else:
                kept.append(entry)
        result.set_result(kept)

    def seek(self, at: Position) -> None:
        """Read on from a position; what was acknowledged before stays so."""
        with self.ledger.lock:
            self.seeks += 1
            self.read_position = max(Position(*at), after(self.mark_delete_position))
            self.track()
        self.ledger.cursor_moved()

    # Replay ------------------------------------------------------------------------------------------

    def replay_later(self, entries: Iterable[Entry | Position]) -> None:
        """Keep entries for a later :meth:`replay_entries`; each expects one read more where it is cached.

        Entries stay the caller's, who releases them. What was acknowledged is left out.
        """
        for given in entries:
            at = given.position if isinstance(given, Entry) else Position(*given)
            with self.ledger.lock:
                if at in self.to_replay or self.is_deleted(at):
                    continue
                self.to_replay.add(at)
            if isinstance(given, Entry):
                given.expect_read()
            elif (cached := self.ledger.cache.cached.get(at)) is not None:
                with cached:
                    cached.expect_read()

    def replay_entries(self, most: int) -> Entries:
        """Up to ``most`` entries of the replay queue, the first in the log first, all of them or a failure.

        After a failure they are in the queue again.
        """
        self.ledger.check_open()
        with self.ledger.lock:
            chosen = sorted(at for at in self.to_replay if not self.is_deleted(at))[:most]
            self.to_replay = {at for at in self.to_replay if not self.is_deleted(at)}.difference(chosen)
        result: Entries = Future()
        result.set_running_or_notify_cancel()
        if not chosen:
            result.set_result([])
            return result
        reads = [self.ledger.read_entry(at) for at in chosen]
        left = [len(reads)]
        counting = threading.Lock()

        def done(_: Future[Entry]) -> None:
            with counting:
                left[0] -= 1
                last = left[0] == 0
            if last:
                self.replayed(chosen, reads, result)

        for read in reads:
            read.add_done_callback(done)
        return result

    def replayed(self, chosen: list[Position], reads: list[Future[Entry]], result: Entries) -> None:
        errors = [error for read in reads if (error := read.exception()) is not None]
        if not errors:
            result.set_result([read.result() for read in reads])
            return
        discard(read.result() for read in reads if read.exception() is None)
        with self.ledger.lock:
            self.to_replay.update(at for at in chosen if not self.is_deleted(at))
        result.set_exception(errors[0])

    # Acknowledging -----------------------------------------------------------------------------------

    def is_deleted(self, at: Position) -> bool:
        """Whether an entry was acknowledged. With the ledger's lock."""
        return at in self.acks

    def delete(self, at: Position) -> None:
        """Acknowledge one entry."""
        self.acknowledge({Position(*at)}, None)

    def mark_delete(self, at: Position) -> None:
        """Acknowledge everything up to an entry. UsageError for one that was not added yet."""
        self.acknowledge(set(), Position(*at))

    def acknowledge(self, single: set[Position], up_to: Position | None) -> None:
        ledger = self.ledger
        ledger.check_open()
        with ledger.lock:
            unknown = [at for at in (*single, *([up_to] if up_to else [])) if at > ledger.log.last()]
            if unknown:
                raise UsageError(f"{unknown[0]} was not added yet; the last entry is {ledger.log.last()}")
            self.tell_ends()
            for at in single:
                if ledger.log.contains(at):
                    self.acks.acknowledge(at)
            if up_to is not None:
                if up_to.ledger_id in ledger.log.sizes:
                    last = ledger.log.entries(up_to.ledger_id) - 1
                    up_to = Position(up_to.ledger_id, min(up_to.entry_id, last))
                self.acks.mark_delete(up_to)
            mark = self.acks.mark_delete_position
            if moved := mark > self.mark_delete_position:
                self.move_mark_delete(mark)
            resumed, self.resumed = self.resumed, False
        if moved:
            if self.durable:
                ledger.keep(self)
            ledger.cursor_moved()
            ledger.trim()
        if resumed and self.on_resume is not None:
            self.on_resume()

    def tell_ends(self) -> None:
        """Tell the acknowledgements which ledgers ended. With the ledger's lock."""
        if (
            self.end_at > self.acks.mark_delete_position
            and self.end_at.ledger_id not in self.ledger.log.sizes
        ):
            # Deleted though this cursor did not pass it: a cursor that is not durable holds nothing.
            self.acks.mark_delete(Position(self.end_at.ledger_id, GONE))
        for last, following in self.ledger.log.ends_after(max(self.end_at, self.acks.mark_delete_position)):
            self.acks.end_ledger(*last, following)
            self.end_at = Position(following, -1)

    def move_mark_delete(self, mark: Position) -> None:
        self.mark_delete_position = mark
        self.to_replay = {at for at in self.to_replay if at > mark}
        self.read_position = max(self.read_position, after(mark))
        if self.durable:
            self.ledger.durable.cursor_updated(self.name, mark)
        self.track()

    @property
    def unread(self) -> int:
        """Entries from the read position to the end."""
        with self.ledger.lock:
            at = self.read_position
            return self.ledger.log.count_after(Position(at.ledger_id, at.entry_id - 1))

    @property
    def backlog(self) -> int:
        """Entries that are not acknowledged."""
        with self.ledger.lock:
            count = self.ledger.log.count_after
            done = (
                count(Position(first.ledger_id, first.entry_id - 1)) - count(last)
                for first, last in self.acks.ranges()
            )
            return count(self.mark_delete_position) - sum(done)

    # Storing -----------------------------------------------------------------------------------------

    def recovered(self, mark_delete: Position) -> AckState:
        """What was stored of a durable cursor, at the position that is known to be passed, or a new state."""
        settings = self.ledger.settings

        def resume() -> None:
            self.resumed = True  # Called with the ledger's lock: acknowledge tells afterwards.

        limits: dict[str, Any] = {
            "max_bytes": settings.managed_ledger_max_ack_state_in_bytes_to_persist,
            "max_ranges": settings.managed_ledger_max_unacked_ranges_to_persist,
            "max_batches": settings.managed_ledger_max_batch_deleted_index_to_persist,
            "max_ranges_in_metadata_store": (
                settings.managed_ledger_max_unacked_ranges_to_persist_in_metadata_store
            ),
            "pause_dispatch": settings.dispatcher_pause_on_ack_state_persistent_enabled,
            "resume": resume,
        }
        stored = self.store.load() if self.durable else None
        if stored is None:
            return AckState(mark_delete, **limits)
        acks = AckState.restore(stored.mark_delete, stored.data, stored.ranges, stored.batches, **limits)
        acks.mark_delete(mark_delete)
        return acks

    def flush(self) -> LeftOut:
        """Store what was acknowledged, as much of it as the settings allow, and say what was left out.

        What was left out is delivered again after a restart. StorageError when neither a ledger nor the
        metadata store takes it. A cursor that is not durable stores nothing.
        """
        if not self.durable:
            return LeftOut()
        settings = self.ledger.settings
        return self.store.save(self.acks, max_bytes=settings.managed_ledger_max_ack_state_in_bytes_to_persist)

    def may_dispatch(self, *, replay: bool = False) -> bool:
        """Whether a dispatcher may read on; see AckState.may_dispatch.

        After False, ``on_resume`` is called, outside every lock, when it may.
        """
        return self.acks.may_dispatch(replay=replay)
