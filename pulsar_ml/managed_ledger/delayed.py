"""Delayed messages of a cursor: kept once for the topic, held back while its acknowledgements do not fit."""

from __future__ import annotations

from collections.abc import Callable

from pulsar_ml._core import InMemoryDelayedDeliveryTrackerFactory
from pulsar_ml.errors import ClosedError
from pulsar_ml.managed_ledger.cursor import ManagedCursor
from pulsar_ml.positions import Position


class DelayedDelivery:
    """Joins a cursor with a view of its topic's delayed messages (PIP-448 with PIP-299).

    The view follows the cursor's mark-delete position. While ``dispatcherPauseOnAckPersistentStateEnabled``
    pauses the cursor no message is taken, whether it is due or not; when dispatch goes on, ``trigger`` is
    called if one is due. Methods may be called from any number of threads.

    Args:
        factory: one for all topics of a broker; subscriptions of a topic share its index.
        clock: milliseconds of the clock that delivery times are of.
        trigger: called without arguments when a message is due, by :meth:`fire` or by the thread that made
            the state fit. It then takes messages with :meth:`replay_scheduled`.
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
        self.view = factory.new_tracker(cursor.ledger.name, trigger, may_dispatch=self.may_dispatch)
        self.view.update_mark_delete_position(cursor.mark_delete_position, now=clock())
        cursor.on_mark_delete(self.follow)
        cursor.on_dispatch_resumed(self.go_on)

    def may_dispatch(self) -> bool:
        return self.cursor.may_dispatch(delayed=True)

    def add(self, at: Position, deliver_at: int) -> bool:
        """Keep a message until its time; False when that has come, and then it is dispatched like any other.

        Raises InvalidPositionError, AllocationError, ClosedError.
        """
        return self.view.add_message(at, deliver_at, now=self.clock())

    def replay_scheduled(self, most: int) -> list[Position]:
        """Up to ``most`` messages that are due go to the cursor's replay queue; which, in the order of times.

        None while dispatch is paused. Raises InvalidSizeError, AllocationError, ClosedError.
        """
        due = self.view.get_scheduled_messages(most, now=self.clock())
        self.cursor.replay_later(due)
        return due

    def fire(self) -> int:
        """The topic's timer: calls the triggers of all its views that have a message. How many have one."""
        return self.view.fire(now=self.clock())

    def close(self) -> None:
        """No message comes any more. The cursor goes on."""
        self.cursor.forget(self.follow, self.go_on)
        self.view.close()

    def follow(self, mark: Position) -> None:
        if not self.view.closed:
            self.view.update_mark_delete_position(mark, now=self.clock())

    def go_on(self) -> None:
        try:
            self.view.resume(now=self.clock())
        except ClosedError:
            return  # closed by another thread, after this one was told to call
