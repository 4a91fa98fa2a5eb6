"""A simulated topic: its stored entries, its producer, and the readers that wait for an entry."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from pulsar_ml.simulate.cache import CachedLedger
from pulsar_ml.simulate.clock import NANOS, VirtualClock
from pulsar_ml.simulate.workload import TopicGroup


class Topic:
    """One ledger, to which a producer appends entries at random times."""

    __slots__ = ("_clock", "_random", "_settings", "_waiting", "cached", "lengths")

    def __init__(
        self, cached: CachedLedger, settings: TopicGroup, clock: VirtualClock, random: Random
    ) -> None:
        self.cached = cached
        self.lengths = cached.lengths
        self._settings = settings
        self._clock = clock
        self._random = random
        self._waiting: list[Callable[[], None]] = []
        for _ in range(settings.backlog):
            self.lengths.append(self._length())

    def start(self) -> None:
        if self._settings.entries_per_second:
            self._clock.after(self._pause(), self._publish)

    def when_written(self, call: Callable[[], None]) -> None:
        """Calls ``call`` once, soon after the next entry is written."""
        self._waiting.append(call)

    def _length(self) -> int:
        low, high = self._settings.entry_bytes
        return self._random.randint(int(low), int(high))

    def _pause(self) -> int:
        return int(self._random.expovariate(self._settings.entries_per_second) * NANOS)

    def _publish(self) -> None:
        self.lengths.append(self._length())
        self.cached.on_written(len(self.lengths) - 1)
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            self._clock.after(self.cached.broker.dispatch_nanos, call)
        self._clock.after(self._pause(), self._publish)
