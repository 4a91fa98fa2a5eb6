"""A cursor: where a subscription reads, what it acknowledged, and what is to be read again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from pulsar_ml._core import Entry
from pulsar_ml.errors import UsageError
from pulsar_ml.managed_ledger.cursor_metadata import LeftOut
from pulsar_ml.managed_ledger.cursor_state import CursorState, check_sequence_ids
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

    def __init__(
        self, ledger: ManagedLedger, name: str, mark_delete: Position, *, durable: bool
    ) -> None:
        self.ledger = ledger
        self.name = name
        self.durable = durable
        self.store = CursorStore(ledger.storage, ledger.name, name)
        self.keeping = threading.Lock()  # while the storage learns the position: in order
        # With the ledger's lock, all of these.
        self.keep_from_ns = 0  # of the ledger's clock: not to be kept earlier
        self.state = CursorState(
            self.store if durable else None,
            ledger.settings,
            mark_delete,
            lock=ledger.lock,
            resume=self.note_resumed,
        )
        self.acks = self.state.acks
        self.mark_delete_position = self.acks.mark_delete_position
        self.kept = self.mark_delete_position  # that the storage knows; with ``keeping``
        self.read_position = after(self.mark_delete_position)
        self.end_at = (
            self.mark_delete_position
        )  # in the first ledger whose end the acks were not told
        self.resumed = False
        self.resume_listeners: list[Callable[[], object]] = []
        self.mark_listeners: list[Callable[[Position], object]] = []
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
        a failure the position is behind what was left out before. Raises UsageError for a second read at the
        same time, and ClosedError.
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
            self.reading = True
        self.read_on(most, result)
        return result

    def read_on(self, most: int, result: Entries) -> None:
        """Read ranges until one of them has an entry that was not acknowledged, or the log ends."""
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
        """Answer with what was read; False when all of it was acknowledged and the read goes on."""
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
            # The cursor was moved meanwhile: nobody wants these.
            discard(entries)
            result.set_result([])
            return True
        self.ledger.cursor_moved()
        kept = []
        for entry, gone in zip(entries, acknowledged, strict=True):
            if gone:
                entry.release()  # Its expected read will not come: this marks it.
            else:
                kept.append(entry)
        if not goes_on:
            result.set_result(kept)
        return not goes_on

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
            self.to_replay = {at for at in self.to_replay if not self.is_deleted(at)}.difference(
                chosen
            )
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
        self.acknowledge(at, lambda: self.acks.acknowledge(at))

    def delete_index(self, at: Position, index: int, *, batch_size: int) -> None:
        """Acknowledge one message of an entry that is a batch; the last one acknowledges the entry.

        InvalidPositionError for an index outside the batch, or another size than before.
        """
        self.acknowledge(at, lambda: self.acks.acknowledge_index(at, index, batch_size=batch_size))

    def deleted_indexes(self, at: Position, *, batch_size: int) -> list[int]:
        """The messages of a batch that were acknowledged, which whoever delivers the entry leaves out."""
        with self.ledger.lock:
            return [index for index in range(batch_size) if self.acks.contains_index(at, index)]

    def mark_delete(self, at: Position, *, sequence_ids: Mapping[str, int] | None = None) -> None:
        """Acknowledge everything up to an entry. UsageError for one that was not added yet.

        ``sequence_ids``: the last one of each producer up to there, in the place of those before; they are
        stored at once, together with the position. Without, those before stay.
        """

        if sequence_ids is not None:
            check_sequence_ids(sequence_ids)

        def up_to() -> None:
            if sequence_ids is not None:
                self.state.describe(sequence_ids=sequence_ids)
            self.acks.mark_delete(self.ledger.log.last_up_to(Position(*at)))

        self.acknowledge(at, up_to, cumulative=True, whole=sequence_ids is not None)

    def acknowledge(
        self,
        at: Position,
        change: Callable[[], object],
        *,
        cumulative: bool = False,
        whole: bool = False,
    ) -> None:
        """Make a change of acknowledgements at an entry; ``whole``: and store all there is of them.

        Without ``cumulative`` nothing happens when the entry is not there any more.
        """
        ledger = self.ledger
        ledger.check_open()
        resumed: list[Callable[[], object]] = []
        try:
            with ledger.lock:
                last = max(ledger.log.last(), self.mark_delete_position)
                if Position(*at) > last:
                    raise UsageError(f"{Position(*at)} was not added yet; the last entry is {last}")
                self.tell_ends()
                try:
                    if cumulative or ledger.log.contains(Position(*at)):
                        self.state.dirty = True
                        change()
                finally:
                    resumed = self.take_resumed()
                mark = self.acks.mark_delete_position
                if moved := mark > self.mark_delete_position:
                    self.move_mark_delete(mark)
            if whole:
                self.flush()
            elif moved and self.may_keep():
                ledger.keep(self)
            if moved:
                ledger.cursor_moved()
                ledger.trim()
        finally:
            # Also when the storage failed: whoever waits is told by nobody else.
            tell(resumed)

    def tell_ends(self) -> None:
        """Tell the acknowledgements which ledgers ended. With the ledger's lock."""
        if (
            self.end_at > self.acks.mark_delete_position
            and self.end_at.ledger_id not in self.ledger.log.sizes
        ):
            # Deleted though this cursor did not pass it: a cursor that is not durable holds nothing.
            self.acks.mark_delete(Position(self.end_at.ledger_id, GONE))
        for last, following in self.ledger.log.ends_after(
            max(self.end_at, self.acks.mark_delete_position)
        ):
            self.acks.end_ledger(*last, following)
            self.end_at = Position(following, -1)

    def move_mark_delete(self, mark: Position) -> None:
        self.mark_delete_position = mark
        self.to_replay = {at for at in self.to_replay if at > mark}
        self.read_position = max(self.read_position, after(mark))
        if self.durable:
            self.ledger.durable.cursor_updated(self.name, mark)
        self.track()
        for listener in self.mark_listeners:
            listener(mark)

    def on_mark_delete(self, listener: Callable[[Position], object]) -> None:
        """Call this with each new mark-delete position, in their order and with the ledger's lock: it has to
        be short and must not wait.
        """
        with self.ledger.lock:
            self.mark_listeners.append(listener)

    def forget(self, *listeners: Callable[..., object]) -> None:
        """Call these no more, whatever they were called for."""
        with self.ledger.lock:
            self.mark_listeners = [one for one in self.mark_listeners if one not in listeners]
            self.resume_listeners = [one for one in self.resume_listeners if one not in listeners]

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

    @property
    def properties(self) -> dict[str, str]:
        """Subscription properties, stored before everything else."""
        with self.ledger.lock:
            return dict(self.state.properties)

    @property
    def sequence_ids(self) -> dict[str, int]:
        """The last sequence id of each producer, as mark_delete was given them."""
        with self.ledger.lock:
            return dict(self.state.sequence_ids)

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Other subscription properties from now on; the next flush stores them. UsageError for no texts."""
        self.change_properties(lambda _: dict(properties))

    def put_property(self, key: str, value: str) -> None:
        """One subscription property from now on."""
        self.change_properties(lambda before: {**before, key: value})

    def remove_property(self, key: str) -> None:
        """One of them no longer; no effect when there is none."""
        self.change_properties(
            lambda before: {name: text for name, text in before.items() if name != key}
        )

    def change_properties(self, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        self.ledger.check_open()
        with self.ledger.lock:
            self.state.describe(properties=change(self.state.properties))
            resumed = self.take_resumed()
        tell(resumed)

    def may_keep(self) -> bool:
        """Whether the mark-delete position may be stored now, by the rate of the settings."""
        ledger = self.ledger
        rate = ledger.settings.managed_ledger_default_mark_delete_rate_limit
        with ledger.lock:
            now = ledger.clock()
            if not self.durable or now < self.keep_from_ns:
                return False
            self.keep_from_ns = now + int(1e9 / rate) if rate else now
        return True

    @property
    def is_kept(self) -> bool:
        """Whether the storage knows the mark-delete position."""
        return self.kept >= self.mark_delete_position

    @property
    def is_dirty(self) -> bool:
        """Whether something of a durable cursor is not stored yet."""
        with self.ledger.lock:
            dirty = self.state.dirty and not self.state.mark_says_it_all
            return self.durable and (dirty or not self.is_kept)

    def flush(self) -> LeftOut:
        """Store what is known of this cursor, as much of it as the settings allow, and say what was left out.

        What was left out is delivered again after a restart. StorageError when neither a ledger nor the
        metadata store takes it; what was stored before stays. A cursor that is not durable stores nothing.
        """
        mark = self.mark_delete_position
        left = self.state.flush()
        with self.keeping:
            self.kept = max(self.kept, mark)
        return left

    def flush_if_dirty(self) -> bool:
        """Store what is not stored yet; False when there is nothing. StorageError as :meth:`flush`."""
        if not self.is_dirty:
            return False
        if self.state.mark_says_it_all:
            self.ledger.keep(self)
        else:
            self.flush()
        return True

    # Dispatch ----------------------------------------------------------------------------------------

    def may_dispatch(self, *, replay: bool = False, delayed: bool = False) -> bool:
        """Whether a dispatcher may read on; see AckState.may_dispatch. ``delayed``: messages that are due.

        After False, what on_dispatch_resumed was given is called when it may, and has to ask again.
        """
        return self.acks.may_dispatch(replay=replay, delayed=delayed)

    def on_dispatch_resumed(self, listener: Callable[[], object]) -> None:
        """Call this whenever a dispatcher that was told to wait may go on: outside every lock, in the thread
        of whoever made the state fit.
        """
        with self.ledger.lock:
            self.resume_listeners.append(listener)

    def note_resumed(self) -> None:
        self.resumed = (
            True  # by a change, with the ledger's lock; the listeners are told afterwards
        )

    def take_resumed(self) -> list[Callable[[], object]]:
        """Whom to tell. With the ledger's lock."""
        resumed, self.resumed = self.resumed, False
        return list(self.resume_listeners) if resumed else []


def tell(listeners: list[Callable[[], object]]) -> None:
    """Call all of them in their order, also when one raises."""
    with ExitStack() as stack:
        for listener in reversed(listeners):
            stack.callback(listener)
