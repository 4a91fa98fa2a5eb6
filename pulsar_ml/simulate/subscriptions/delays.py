"""The delayed entries of a simulated subscription, in the product's index of the topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pulsar_ml.simulate.clock import MILLI, VirtualClock
from pulsar_ml.simulate.topic import Topic

MOST = 1000  # entries of one call


class DelayedEntries:
    """A view of the topic's delayed entries, with a timer on the virtual clock."""

    __slots__ = ("_clock", "_counters", "_deliver", "_fire_at", "_topic", "_view")

    def __init__(
        self,
        topic: Topic,
        name: str,
        clock: VirtualClock,
        deliver: Callable[[Sequence[int]], None],
    ) -> None:
        broker = topic.cached.broker
        self._topic = topic
        self._clock = clock
        self._counters = broker.counters
        self._deliver = deliver
        self._fire_at: int | None = None
        self._view = (
            broker.delayed.new_tracker(str(topic.cached.number), self._on_due, subscription=name)
            if topic.has_delays
            else None
        )

    @property
    def _millis(self) -> int:
        return self._clock.now // MILLI

    @property
    def should_pause(self) -> bool:
        """True when so many entries of one delay wait that reading ahead is of no use."""
        return self._view is not None and self._view.should_pause_all_deliveries(
            now_ms=self._millis
        )

    def add(self, entry: int) -> bool:
        """Keeps an entry until its time; False for one that is due."""
        deliver_at = self._topic.deliver_at.get(entry)
        if self._view is None or deliver_at is None:
            return False
        at = (self._topic.cached.number, entry)
        kept = self._view.add_message(at, deliver_at // MILLI, now_ms=self._millis)
        if kept:
            self._counters.delayed += 1
            size = self._view.topic_buffer_memory_bytes
            self._counters.max_delayed_bytes = max(self._counters.max_delayed_bytes, size)
            self._arm()
        return kept

    def mark(self, position: int) -> None:
        """Takes over the mark-delete position: entries below it are acknowledged."""
        if self._view is not None and position:
            at = (self._topic.cached.number, position - 1)
            self._view.update_mark_delete_position(at, now_ms=self._millis)

    def _arm(self) -> None:
        """Schedules the timer for the time that the view names, unless it is scheduled already."""
        assert self._view is not None
        at = self._view.next_fire_ms()
        if at is not None and (self._fire_at is None or at < self._fire_at):
            self._fire_at = at
            self._clock.after(max(0, at * MILLI - self._clock.now), self._fire)

    def _fire(self) -> None:
        assert self._view is not None
        self._fire_at = None
        self._view.fire(now_ms=self._millis)
        self._arm()

    def _on_due(self) -> None:
        assert self._view is not None
        due = self._view.get_scheduled_messages(MOST, now_ms=self._millis)
        while due:
            self._deliver([at.entry_id for at in due])
            due = self._view.get_scheduled_messages(MOST, now_ms=self._millis)
