"""A simulated subscription with one consumer, which reads in order and may disconnect."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pulsar_ml import Entry
from pulsar_ml.simulate.cache import seconds
from pulsar_ml.simulate.clock import NANOS, VirtualClock
from pulsar_ml.simulate.subscriptions.reader import TopicReader
from pulsar_ml.simulate.topic import Topic
from pulsar_ml.simulate.workload import Range, SubscriptionGroup


class OrderedSubscription(TopicReader):
    """Reads batches in order, as fast as its consumer processes them, while it is connected."""

    __slots__ = ("connected",)

    def __init__(
        self,
        name: str,
        topic: Topic,
        settings: SubscriptionGroup,
        clock: VirtualClock,
        random: Random,
    ) -> None:
        super().__init__(name, topic, settings, clock, random)
        self.connected = False

    def start(self) -> None:
        self.connected = True
        self._topic.cached.activate(self)
        if self._settings.connected_seconds[1]:
            self._clock.after(
                self._random_duration(self._settings.connected_seconds), self._disconnect
            )
        self._read()

    def _random_duration(self, between: Range) -> int:
        return seconds(self._random.uniform(*between))

    def _disconnect(self) -> None:
        self.connected = False
        self._topic.cached.deactivate(self)
        self._clock.after(self._random_duration(self._settings.disconnected_seconds), self.start)

    def _may_read(self) -> bool:
        return self.connected

    def _deliver(self, copies: Sequence[Entry]) -> None:
        self.position += len(copies)
        self._topic.cached.on_cursor_moved(self)
        rate = self._settings.entries_per_second
        if not rate:
            self._on_processed(copies)
        else:
            self._clock.after(int(len(copies) / rate * NANOS), lambda: self._on_processed(copies))

    def _on_processed(self, copies: Sequence[Entry]) -> None:
        for copy in copies:
            copy.release()
        position = self.position
        self._after_ack_time(lambda: self._acknowledge(position))
        self._busy = False
        # A separate call: a reader that is far behind would recurse too deeply.
        self._clock.after(0, self._read)

    def _acknowledge(self, position: int) -> None:
        """Acknowledges the entries below a position, all of them at once."""
        if position > self.marked:
            self.marked = position
            if self._topic.cached.broker.by_mark_delete:
                self._topic.cached.on_cursor_moved(self)
