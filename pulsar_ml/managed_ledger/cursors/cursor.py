"""A cursor: the read position, acknowledgements and replay queue of a subscription."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial

from pulsar_ml._core import Entry
from pulsar_ml.errors import UsageError
from pulsar_ml.managed_ledger.checks import check_count, check_position
from pulsar_ml.managed_ledger.cursors.cursor_ledger import CursorLedger
from pulsar_ml.managed_ledger.cursors.cursor_metadata import Omitted
from pulsar_ml.managed_ledger.cursors.cursor_state import CursorState, check_sequence_ids
from pulsar_ml.managed_ledger.cursors.cursor_store import CursorStore
from pulsar_ml.managed_ledger.cursors.replay_queue import ReplayQueue
from pulsar_ml.managed_ledger.fork_lock import ForkLock
from pulsar_ml.managed_ledger.ledgers import after
from pulsar_ml.managed_ledger.range_read import discard
from pulsar_ml.positions import Position

Entries = Future[list[Entry]]

CURSOR_PREFIX = "cursor/"  # of the storage properties that hold mark-delete positions
PAST_ANY_ENTRY = 2**62  # an entry id behind every ledger's end


class ManagedCursor:
    """A named cursor of a managed ledger, created by ManagedLedger.open_cursor.

    All methods may be called from any number of threads. A cursor runs one read at a time. Origin:
    ``ManagedCursorImpl`` of Pulsar 4.1.
    """

    def __init__(
        self, ledger: CursorLedger, name: str, mark_delete: Position, *, durable: bool
    ) -> None:
        self.ledger = ledger
        self.name = name
        self.durable = durable
        self.store = CursorStore(ledger.storage, ledger.name, name)
        # Serializes writes of the position, so that an older one never overwrites a newer one.
        self.position_lock = ForkLock(waits=True)
        # The ledger's lock guards all attributes below, except ``stored_position``.
        self.next_store_ns = 0  # by the ledger's clock; the rate limit forbids an earlier write
        self.state = CursorState(
            self.store if durable else None,
            ledger.settings,
            mark_delete,
            lock=ledger.lock,
            resume=self.mark_resumed,
        )
        self.acks = self.state.acks
        self.mark_delete_position = self.acks.mark_delete_position
        # The mark-delete position in the storage; ``position_lock`` guards it.
        self.stored_position = self.mark_delete_position
        self.read_position = after(self.mark_delete_position)
        # A position in the first ledger whose end is not registered in ``acks``.
        self.first_unended = self.mark_delete_position
        self.resumed = False
        self.resume_listeners: list[Callable[[], object]] = []
        self.mark_listeners: list[Callable[[Position], object]] = []
        self.replays = ReplayQueue(ledger, self.is_deleted)
        self.reading = False
        self.seeks = 0

    # Activity -------------------------------------------------------------------------------------

    def set_active(self) -> None:
        """Marks the cursor active: new entries are cached for it."""
        with self.ledger.lock:
            if self.name not in self.ledger.active:
                self.ledger.active.add(self.name, self.read_position, self.mark_delete_position)

    def set_inactive(self) -> None:
        """Marks the cursor inactive; its backlog stays."""
        with self.ledger.lock:
            self.ledger.active.remove(self.name)
        self.ledger.invalidate_passed_entries()

    @property
    def is_active(self) -> bool:
        return self.name in self.ledger.active

    def track(self) -> None:
        """Passes the cursor's position to the caching strategy.

        The caller holds the ledger's lock.
        """
        self.ledger.active.move(self.name, self.read_position, self.mark_delete_position)

    # Reading --------------------------------------------------------------------------------------

    def read_entries(self, most: int) -> Entries:
        """Reads the next 1 .. ``most`` entries of one ledger; an empty list at the end of the log.

        Each entry is a copy; the caller releases it, which marks its read. Acknowledged entries are
        skipped. After a failure the read position is behind the skipped entries. Raises UsageError
        when another read of this cursor is under way, and ClosedError.
        """
        ledger = self.ledger
        ledger.check_open()
        most = check_count(most, "most", least=1)
        result: Entries = Future()
        result.set_running_or_notify_cancel()
        with ledger.lock:
            if self.reading:
                raise UsageError(f"cursor {self.name!r} has a read under way; wait for it")
            self.reading = True
        self.read_on(most, result)
        return result

    def read_on(self, most: int, result: Entries) -> None:
        """Reads ranges until one contains an entry that is not acknowledged, or the log ends."""
        ledger = self.ledger
        while True:
            with ledger.lock:
                seeks = self.seeks
                first = ledger.log.first_at_or_after(self.read_position)
                if first is None:
                    self.reading = False
                    break
                last = min(first.entry_id + most, ledger.log.entries(first.ledger_id)) - 1
                average = ledger.average_entry_size(first.ledger_id)
            read = ledger.read(
                first.ledger_id, first.entry_id, last, average=average, cursor=self.name
            )
            up_to = Position(first.ledger_id, last)
            if not read.done():
                read.add_done_callback(partial(self.read_later, seeks, up_to, most, result))
                return
            if self.read_done(read, seeks, up_to, result):
                return
        result.set_result([])

    def read_later(
        self, seeks: int, last: Position, most: int, result: Entries, read: Entries
    ) -> None:
        if not self.read_done(read, seeks, last, result):
            self.read_on(most, result)

    def read_done(self, read: Entries, seeks: int, last: Position, result: Entries) -> bool:
        """Completes ``result``; False when every entry was acknowledged and the read must go on."""
        error = read.exception()
        with self.ledger.lock:
            current = seeks == self.seeks
            if error is None and current:
                self.read_position = max(self.read_position, after(last))
                self.track()
            acknowledged = (
                [] if error else [self.is_deleted(entry.position) for entry in read.result()]
            )
            goes_on = error is None and current and all(acknowledged)
            self.reading = goes_on
        if error is not None:
            result.set_exception(error)
            return True
        entries = read.result()
        if not current:
            # A seek moved the cursor meanwhile, so these entries are not the next ones any more.
            discard(entries)
            result.set_result([])
            return True
        self.ledger.invalidate_passed_entries()
        kept = []
        for entry, gone in zip(entries, acknowledged, strict=True):
            if gone:
                entry.release()  # The cursor will not read it again: count its expected read now.
            else:
                kept.append(entry)
        if not goes_on:
            result.set_result(kept)
        return not goes_on

    def seek(self, position: Position) -> None:
        """Moves the read position; acknowledgements stay."""
        position = check_position(position)
        with self.ledger.lock:
            self.seeks += 1
            self.read_position = max(position, after(self.mark_delete_position))
            self.track()
        self.ledger.invalidate_passed_entries()

    # Replay ---------------------------------------------------------------------------------------

    def replay_later(self, entries: Iterable[Entry | Position]) -> None:
        """Queues entries for :meth:`replay_entries`; cached ones expect one more read.

        The caller still releases its entries. Acknowledged entries are skipped.
        """
        self.replays.add(entries)

    def replay_entries(self, most: int) -> Entries:
        """Reads up to ``most`` entries of the replay queue in log order, all of them or none.

        After a failure the entries are in the queue again.
        """
        self.ledger.check_open()
        return self.replays.read(check_count(most, "most"))

    # Acknowledging --------------------------------------------------------------------------------

    def is_deleted(self, position: Position) -> bool:
        """True for an acknowledged entry. The caller holds the ledger's lock."""
        return position in self.acks

    def delete(self, position: Position) -> None:
        """Acknowledges one entry."""
        self.acknowledge(position, lambda: self.acks.acknowledge(position))

    def delete_index(self, position: Position, index: int, *, batch_size: int) -> None:
        """Acknowledges one message of a batch entry; the last message acknowledges the entry.

        Raises InvalidPositionError for an index outside the batch, or for a batch size that differs
        from an earlier call.
        """
        self.acknowledge(
            position, lambda: self.acks.acknowledge_index(position, index, batch_size=batch_size)
        )

    def deleted_indexes(self, position: Position, *, batch_size: int) -> list[int]:
        """The acknowledged messages of a batch; a dispatcher must not deliver these."""
        with self.ledger.lock:
            return [
                index for index in range(batch_size) if self.acks.contains_index(position, index)
            ]

    def mark_delete(
        self, position: Position, *, sequence_ids: Mapping[str, int] | None = None
    ) -> None:
        """Acknowledges everything up to an entry. UsageError for an entry that was not added yet.

        ``sequence_ids`` replaces the last sequence id of each producer and is stored at once,
        together with the position. None keeps the present ones.
        """
        position = check_position(position)
        if sequence_ids is not None:
            check_sequence_ids(sequence_ids)

        def up_to() -> None:
            if sequence_ids is not None:
                self.state.set_metadata(sequence_ids=sequence_ids)
            self.acks.mark_delete(self.ledger.log.last_up_to(position))

        self.acknowledge(position, up_to, cumulative=True, store_all=sequence_ids is not None)

    def acknowledge(
        self,
        position: Position,
        change: Callable[[], object],
        *,
        cumulative: bool = False,
        store_all: bool = False,
    ) -> None:
        """Applies a change of the acknowledgements; with ``store_all`` also stores the whole state.

        Without ``cumulative`` there is no effect when the entry no longer exists.
        """
        ledger = self.ledger
        ledger.check_open()
        position = check_position(position)
        resumed: list[Callable[[], object]] = []
        failed: list[Callable[[], object]] = []
        try:
            with ledger.lock:
                last = max(ledger.log.last(), self.mark_delete_position)
                if position > last:
                    raise UsageError(
                        f"entry {position} does not exist yet; the last entry is {last}"
                    )
                self.register_ended_ledgers()
                try:
                    if cumulative or ledger.log.contains(position):
                        self.state.dirty = True
                        change()
                finally:
                    resumed = self.take_resumed()
                mark = self.acks.mark_delete_position
                if moved := mark > self.mark_delete_position:
                    failed = self.move_mark_delete(mark)
            if store_all:
                self.flush()
            elif moved and self.may_store_position():
                self.store_position()
            if moved:
                ledger.invalidate_passed_entries()
                ledger.trim()
        finally:
            # Also after a storage failure: nothing else would call the waiting dispatchers.
            call_all(resumed + failed)

    def register_ended_ledgers(self) -> None:
        """Registers in ``acks`` which ledgers have ended. The caller holds the ledger's lock."""
        if (
            self.first_unended > self.acks.mark_delete_position
            and self.first_unended.ledger_id not in self.ledger.log.sizes
        ):
            # The ledger was deleted before this cursor passed it: only durable cursors prevent
            # that.
            self.acks.mark_delete(Position(self.first_unended.ledger_id, PAST_ANY_ENTRY))
        for last, following in self.ledger.log.ends_after(
            max(self.first_unended, self.acks.mark_delete_position)
        ):
            self.acks.end_ledger(*last, following)
            self.first_unended = Position(following, -1)

    def move_mark_delete(self, mark: Position) -> list[Callable[[], object]]:
        """Moves the position, calls the listeners, and returns functions that raise their errors.

        The caller holds the ledger's lock.
        """
        self.mark_delete_position = mark
        self.replays.drop_up_to(mark)
        self.read_position = max(self.read_position, after(mark))
        if self.durable:
            self.ledger.durable.update_cursor(self.name, mark)
        self.track()
        failed: list[Callable[[], object]] = []
        for listener in self.mark_listeners:
            try:
                listener(mark)
            except BaseException as error:  # Raised when the acknowledgement is complete.
                failed.append(partial(throw, error))
        return failed

    def on_mark_delete(self, listener: Callable[[Position], object]) -> None:
        """Registers a listener that gets each new mark-delete position, in order.

        The listener runs under the ledger's lock, so it must be short and must not wait. What it
        raises is raised by the acknowledgement when everything else was done.
        """
        with self.ledger.lock:
            self.mark_listeners.append(listener)

    def remove_listeners(self, *listeners: Callable[..., object]) -> None:
        """Removes listeners of either kind."""
        with self.ledger.lock:
            self.mark_listeners = [one for one in self.mark_listeners if one not in listeners]
            self.resume_listeners = [one for one in self.resume_listeners if one not in listeners]

    @property
    def unread(self) -> int:
        """The number of entries from the read position to the end."""
        with self.ledger.lock:
            at = self.read_position
            return self.ledger.log.count_after(Position(at.ledger_id, at.entry_id - 1))

    @property
    def backlog(self) -> int:
        """The number of entries that are not acknowledged."""
        with self.ledger.lock:
            count = self.ledger.log.count_after
            done = (
                count(Position(first.ledger_id, first.entry_id - 1)) - count(last)
                for first, last in self.acks.ranges()
            )
            return count(self.mark_delete_position) - sum(done)

    # Storing --------------------------------------------------------------------------------------

    @property
    def properties(self) -> dict[str, str]:
        """Subscription properties; they have the first claim on stored bytes."""
        with self.ledger.lock:
            return dict(self.state.properties)

    @property
    def sequence_ids(self) -> dict[str, int]:
        """The last sequence id of each producer, as passed to mark_delete."""
        with self.ledger.lock:
            return dict(self.state.sequence_ids)

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Replaces the subscription properties; the next flush stores them.

        Raises UsageError when a key or value is not a string.
        """
        self.change_properties(lambda _: dict(properties))

    def put_property(self, key: str, value: str) -> None:
        """Sets one subscription property."""
        self.change_properties(lambda before: {**before, key: value})

    def remove_property(self, key: str) -> None:
        """Removes one subscription property; no effect when there is no such key."""
        self.change_properties(
            lambda before: {name: text for name, text in before.items() if name != key}
        )

    def change_properties(self, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        self.ledger.check_open()
        with self.ledger.lock:
            self.state.set_metadata(properties=change(self.state.properties))
            resumed = self.take_resumed()
        call_all(resumed)

    def may_store_position(self) -> bool:
        """True when the rate limit allows a write of the mark-delete position now."""
        ledger = self.ledger
        rate = ledger.settings.managed_ledger_default_mark_delete_rate_limit
        with ledger.lock:
            now = ledger.clock()
            if not self.durable or now < self.next_store_ns:
                return False
            self.next_store_ns = now + int(1e9 / rate) if rate else now
        return True

    def store_position(self) -> None:
        """Writes the mark-delete position of a durable cursor to the storage."""
        with self.position_lock:
            at = self.mark_delete_position
            self.ledger.storage.set_property(self.ledger.name, CURSOR_PREFIX + self.name, str(at))
            self.stored_position = max(self.stored_position, at)

    @property
    def is_position_stored(self) -> bool:
        """True when the storage has the present mark-delete position."""
        return self.stored_position >= self.mark_delete_position

    @property
    def is_dirty(self) -> bool:
        """True when the storage lacks a part of a durable cursor's state."""
        with self.ledger.lock:
            dirty = self.state.dirty and not self.state.is_mark_delete_only
            return self.durable and (dirty or not self.is_position_stored)

    def flush(self) -> Omitted:
        """Stores as much of the state as the settings allow; returns the counts of omitted items.

        Omitted acknowledgements are delivered again after a restart. Raises StorageError when
        neither a ledger nor the metadata store accepts the state; the state stored before stays.
        No effect for a cursor that is not durable.
        """
        mark = self.mark_delete_position
        omitted = self.state.flush()
        with self.position_lock:
            self.stored_position = max(self.stored_position, mark)
        return omitted

    def flush_if_dirty(self) -> bool:
        """Stores unsaved state; False when there is none.

        Raises StorageError like :meth:`flush`.
        """
        if not self.is_dirty:
            return False
        if self.state.is_mark_delete_only:
            self.store_position()
        else:
            self.flush()
        return True

    # Dispatch -------------------------------------------------------------------------------------

    def may_dispatch(self, *, replay: bool = False, delayed: bool = False) -> bool:
        """True when a dispatcher may read on; see AckState.may_dispatch. ``delayed``: due messages.

        After False, the listeners of on_dispatch_resumed are called once dispatch may go on. They
        must call may_dispatch again.
        """
        return self.acks.may_dispatch(replay=replay, delayed=delayed)

    def on_dispatch_resumed(self, listener: Callable[[], object]) -> None:
        """Registers a listener that is called when a paused dispatcher may go on.

        It runs outside every lock, in the thread whose change made the state fit.
        """
        with self.ledger.lock:
            self.resume_listeners.append(listener)

    def mark_resumed(self) -> None:
        self.resumed = True  # under the ledger's lock; the listeners are called after its release

    def take_resumed(self) -> list[Callable[[], object]]:
        """The listeners to call now. The caller holds the ledger's lock."""
        resumed, self.resumed = self.resumed, False
        return list(self.resume_listeners) if resumed else []


def throw(error: BaseException) -> None:
    raise error


def call_all(listeners: list[Callable[[], object]]) -> None:
    """Calls all listeners in order, even when one raises."""
    with ExitStack() as stack:
        for listener in reversed(listeners):
            stack.callback(listener)
