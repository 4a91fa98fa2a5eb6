"""A Key_Shared subscription: each key has one consumer, and what a slow one cannot take waits for replay."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Sequence

from pulsar_ml import Entry
from pulsar_ml.simulate.clock import NANOS, VirtualClock
from pulsar_ml.simulate.topic import Topic
from pulsar_ml.simulate.workload import Subscriptions


class Consumer:
    """Takes entries at its rate and gives permits back when half of its queue is done."""

    __slots__ = ("done", "free_at", "nanos", "permits", "waiting")

    def __init__(self, rate: float, permits: int) -> None:
        self.nanos = int(NANOS / rate) if rate else 0
        self.permits = permits
        self.free_at = 0
        self.done = 0
        self.waiting: deque[int] = deque()


class KeySharedSubscription:
    """The dispatcher: reads ahead for everybody, replays to those that have permits again."""

    __slots__ = (
        "_busy", "_clock", "_replaying", "_settings", "_topic", "_waiting", "consumers", "name", "position",
    )  # fmt: skip

    def __init__(
        self, name: str, topic: Topic, settings: Subscriptions, clock: VirtualClock
    ) -> None:
        self.name = name
        self._topic = topic
        self._settings = settings
        self._clock = clock
        self._busy = False
        self._waiting = 0
        self._replaying: set[int] = set()
        self.position = 0 if settings.start == "earliest" else len(topic.lengths)
        fast = settings.consumers - settings.slow_consumers
        rates = [settings.entries_per_second] * fast
        rates += [settings.slow_entries_per_second] * settings.slow_consumers
        self.consumers = [Consumer(rate, settings.receiver_queue) for rate in rates]

    def start(self) -> None:
        self._topic.cached.activate(self)
        self._read()

    def _read(self) -> None:
        if self._busy or self._waiting >= self._settings.most_waiting:
            return
        if not any(consumer.permits for consumer in self.consumers):
            return
        end = len(self._topic.lengths)
        self._busy = True
        if self.position == end:
            self._topic.when_written(self._wake)
            return
        last = min(self.position + self._settings.read_batch, end) - 1
        self._topic.cached.read(self, self.position, last, self._deliver)

    def _wake(self) -> None:
        self._busy = False
        self._read()

    def _deliver(self, copies: Sequence[Entry]) -> None:
        self.position += len(copies)
        self._topic.cached.moved(self)
        for copy in copies:
            entry = copy.entry_id
            consumer = self._owner(entry)
            if consumer.permits and not consumer.waiting:
                self._send(consumer, copy)
            else:
                # It will be read once more.
                copy.expect_read()
                copy.release()
                consumer.waiting.append(entry)
                self._waiting += 1
        self._busy = False
        self._clock.after(0, self._read)

    def _owner(self, entry: int) -> Consumer:
        key = zlib.crc32(b"%d/%d" % (self._topic.cached.number, entry)) % self._settings.keys
        return self.consumers[key % len(self.consumers)]

    def _send(self, consumer: Consumer, copy: Entry) -> None:
        consumer.permits -= 1
        copy.release()
        consumer.free_at = max(consumer.free_at, self._clock.now) + consumer.nanos
        self._clock.after(consumer.free_at - self._clock.now, lambda: self._processed(consumer))

    def _processed(self, consumer: Consumer) -> None:
        consumer.done += 1
        if consumer.done * 2 >= self._settings.receiver_queue:
            consumer.permits += consumer.done
            consumer.done = 0
            self._replay(consumer)
            self._read()

    def _replay(self, consumer: Consumer) -> None:
        """Read what waits for this consumer again, one by one, as far as its permits go."""
        index = self.consumers.index(consumer)
        if index in self._replaying or not consumer.waiting or not consumer.permits:
            return
        self._replaying.add(index)
        self._topic.cached.read_one(
            consumer.waiting[0], lambda copies: self._replayed(index, consumer, copies)
        )

    def _replayed(self, index: int, consumer: Consumer, copies: Sequence[Entry]) -> None:
        consumer.waiting.popleft()
        self._waiting -= 1
        self._send(consumer, copies[0])
        self._replaying.discard(index)
        self._clock.after(0, lambda: self._replay(consumer))
        self._clock.after(0, self._read)
