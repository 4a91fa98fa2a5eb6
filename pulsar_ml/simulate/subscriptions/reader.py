"""A simulated reader of a topic, the common part of the kinds of subscription."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from random import Random

from pulsar_ml import Entry
from pulsar_ml.simulate.cache import seconds
from pulsar_ml.simulate.clock import VirtualClock
from pulsar_ml.simulate.topic import Topic
from pulsar_ml.simulate.workload import SubscriptionGroup


class TopicReader(ABC):
    """Reads a topic in batches, one batch at a time.

    Entries below ``position`` were read, and entries below ``marked`` acknowledged.
    """

    __slots__ = ("_busy", "_clock", "_random", "_settings", "_topic", "marked", "name", "position")

    def __init__(
        self,
        name: str,
        topic: Topic,
        settings: SubscriptionGroup,
        clock: VirtualClock,
        random: Random,
    ) -> None:
        self.name = name
        self._topic = topic
        self._settings = settings
        self._clock = clock
        self._random = random
        self._busy = False
        self.position = 0 if settings.start == "earliest" else len(topic.lengths)
        self.marked = self.position

    @abstractmethod
    def _may_read(self) -> bool:
        """True when the subscription has room for another batch."""

    @abstractmethod
    def _deliver(self, copies: Sequence[Entry]) -> None:
        """Takes the entries of a batch; sets ``_busy`` to false when the next one may begin."""

    def _after_ack_time(self, acknowledge: Callable[[], None]) -> None:
        """Calls ``acknowledge`` now, or when the consumer's time for it is over."""
        if self._settings.ack_seconds[1]:
            pause = seconds(self._random.uniform(*self._settings.ack_seconds))
            self._clock.after(pause, acknowledge)
        else:
            acknowledge()

    def _read(self) -> None:
        """Reads the next batch, now or after the next write; no effect while one is under way."""
        if self._busy or not self._may_read():
            return
        self._busy = True
        end = len(self._topic.lengths)
        if self.position == end:
            self._topic.when_written(self._wake)
            return
        if self._settings.lag_seconds:
            lag = seconds(self._settings.lag_seconds)
            end = bisect_right(self._topic.written_at, self._clock.now - lag)
            if self.position >= end:
                due = self._topic.written_at[self.position] + lag
                self._clock.after(due - self._clock.now, self._wake)
                return
        last = min(self.position + self._settings.read_batch, end) - 1
        self._topic.cached.read(self, self.position, last, self._deliver)

    def _wake(self) -> None:
        self._busy = False
        self._read()
