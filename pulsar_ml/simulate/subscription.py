"""A subscription with one consumer, which reads in order and may come and go."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pulsar_ml import Entry
from pulsar_ml.simulate.cache import seconds
from pulsar_ml.simulate.clock import NANOS, VirtualClock
from pulsar_ml.simulate.topic import Topic
from pulsar_ml.simulate.workload import Range, Subscriptions


class Subscription:
    """Reads batches from its position on, as fast as its consumer takes them."""

    __slots__ = (
        "_busy",
        "_clock",
        "_random",
        "_settings",
        "_topic",
        "connected",
        "name",
        "position",
    )

    def __init__(
        self, name: str, topic: Topic, settings: Subscriptions, clock: VirtualClock, random: Random
    ) -> None:
        self.name = name
        self._topic = topic
        self._settings = settings
        self._clock = clock
        self._random = random
        self._busy = False
        self.connected = False
        self.position = 0 if settings.start == "earliest" else len(topic.lengths)

    def start(self) -> None:
        self.connected = True
        self._topic.cached.activate(self)
        if self._settings.connected_seconds[1]:
            self._clock.after(self._drawn(self._settings.connected_seconds), self._disconnect)
        self._read()

    def _drawn(self, between: Range) -> int:
        return seconds(self._random.uniform(*between))

    def _disconnect(self) -> None:
        self.connected = False
        self._topic.cached.deactivate(self)
        self._clock.after(self._drawn(self._settings.disconnected_seconds), self.start)

    def _read(self) -> None:
        if self._busy or not self.connected:
            return
        end = len(self._topic.lengths)
        if self.position == end:
            self._busy = True
            self._topic.when_written(self._wake)
            return
        self._busy = True
        last = min(self.position + self._settings.read_batch, end) - 1
        self._topic.cached.read(self, self.position, last, self._deliver)

    def _wake(self) -> None:
        self._busy = False
        self._read()

    def _deliver(self, copies: Sequence[Entry]) -> None:
        self.position += len(copies)
        self._topic.cached.moved(self)
        rate = self._settings.entries_per_second
        if not rate:
            self._sent(copies)
        else:
            self._clock.after(int(len(copies) / rate * NANOS), lambda: self._sent(copies))

    def _sent(self, copies: Sequence[Entry]) -> None:
        for copy in copies:
            copy.release()
        self._busy = False
        # Never from within: a reader that is behind would recurse.
        self._clock.after(0, self._read)
