"""A simulated topic: its stored entries, its producer, and the readers that wait for an entry."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from pulsar_ml.simulate.cache import CachedLedger, seconds
from pulsar_ml.simulate.clock import MILLI, NANOS, VirtualClock
from pulsar_ml.simulate.workload import TopicGroup


class Topic:
    """One ledger, to which a producer appends entries at random times."""

    __slots__ = (
        "_clock",
        "_delays",
        "_longest",
        "_random",
        "_settings",
        "_waiting",
        "cached",
        "deliver_at",
        "lengths",
        "written_at",
    )

    def __init__(
        self,
        cached: CachedLedger,
        settings: TopicGroup,
        clock: VirtualClock,
        random: Random,
        delays: Random,
    ) -> None:
        self.cached = cached
        # Nanoseconds of delivery of the delayed entries.
        self.deliver_at: dict[int, int] = {}
        self._delays = delays
        self.written_at: list[int] = [0] * settings.backlog
        self._longest = cached.broker.settings.config.delayed_delivery_max_delay_in_millis * MILLI
        self.lengths = cached.lengths
        self._settings = settings
        self._clock = clock
        self._random = random
        self._waiting: list[Callable[[], None]] = []
        for _ in range(settings.backlog):
            self.lengths.append(self._length())

    @property
    def has_delays(self) -> bool:
        return self._settings.delayed_share > 0

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

    def _delay(self, entry: int) -> None:
        """Decides whether an entry is for a later delivery."""
        share = self._settings.delayed_share
        if share and self._delays.random() < share:
            delay = seconds(self._delays.uniform(*self._settings.delay_seconds))
            if self._longest:
                delay = min(delay, self._longest)
            self.deliver_at[entry] = self._clock.now + delay

    def _publish(self) -> None:
        self.lengths.append(self._length())
        self.written_at.append(self._clock.now)
        self._delay(len(self.lengths) - 1)
        self.cached.on_written(len(self.lengths) - 1)
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            self._clock.after(self.cached.broker.dispatch_nanos, call)
        self._clock.after(self._pause(), self._publish)
