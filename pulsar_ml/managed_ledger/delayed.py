"""Delayed messages of a cursor: one index for the topic, held back while dispatch is paused."""

from __future__ import annotations

from collections.abc import Callable

from pulsar_ml._core import InMemoryDelayedDeliveryTrackerFactory
from pulsar_ml.errors import ClosedError
from pulsar_ml.managed_ledger.cursors.cursor import ManagedCursor
from pulsar_ml.positions import Position


class DelayedDelivery:
    """Connects a cursor to a view of its topic's delayed messages (PIP-448 with PIP-299).

    The view follows the cursor's mark-delete position. While
    ``dispatcherPauseOnAckPersistentStateEnabled`` pauses the cursor, no message is taken, due or
    not; when dispatch resumes, ``trigger`` is called if a message is due. All methods may be called
    from any number of threads. A cursor has one view: a second connection of the same cursor takes
    over the view of the first one.

    Args:
        factory: one for all topics of a broker; the subscriptions of a topic share its index.
        clock: returns milliseconds on the time line of the delivery times.
        trigger: called without arguments when a message is due, by :meth:`fire` or by the thread
            that resumed dispatch. It takes messages with :meth:`replay_scheduled`.
    """

    def __init__(
        self,
        cursor: ManagedCursor,
        factory: InMemoryDelayedDeliveryTrackerFactory,
        *,
        clock: Callable[[], int],
        trigger: Callable[[], object] | None = None,
    ) -> None:
        self.cursor = cursor
        self.clock = clock
        self.view = factory.new_tracker(
            cursor.ledger.name, trigger, subscription=cursor.name, may_dispatch=self.may_dispatch
        )
        self.view.update_mark_delete_position(cursor.mark_delete_position, now_ms=clock())
        cursor.on_mark_delete(self.follow)
        cursor.on_dispatch_resumed(self.resume)

    def may_dispatch(self) -> bool:
        return self.cursor.may_dispatch(delayed=True)

    def add(self, position: Position, deliver_at_ms: int) -> bool:
        """Holds a message back until its delivery time; False for one that is due: dispatch it now.

        Raises InvalidPositionError, AllocationError, ClosedError.
        """
        return self.view.add_message(position, deliver_at_ms, now_ms=self.clock())

    def replay_scheduled(self, most: int) -> list[Position]:
        """Moves up to ``most`` due messages to the cursor's replay queue; returns them by time.

        The list is empty while dispatch is paused. Raises InvalidSizeError, AllocationError,
        ClosedError.
        """
        due = self.view.get_scheduled_messages(most, now_ms=self.clock())
        self.cursor.replay_later(due)
        return due

    def fire(self) -> int:
        """Runs the topic's timer: triggers each view with a due message; returns their number."""
        return self.view.fire(now_ms=self.clock())

    def close(self) -> None:
        """Closes the view; the cursor stays open."""
        self.cursor.remove_listeners(self.follow, self.resume)
        self.view.close(now_ms=self.clock())

    def follow(self, mark: Position) -> None:
        try:
            self.view.update_mark_delete_position(mark, now_ms=self.clock())
        except ClosedError:
            return  # Another thread closed the view after this call had been scheduled.

    def resume(self) -> None:
        try:
            self.view.resume(now_ms=self.clock())
        except ClosedError:
            return  # Another thread closed the view after this call had been scheduled.
