"""A simulated Key_Shared subscription.

Each key has one consumer. Entries that a slow consumer cannot take yet wait and are replayed later.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Sequence

from pulsar_ml import Entry
from pulsar_ml.simulate.clock import NANOS, VirtualClock
from pulsar_ml.simulate.reader import TopicReader
from pulsar_ml.simulate.topic import Topic
from pulsar_ml.simulate.workload import SubscriptionGroup


class Consumer:
    """Processes entries at a rate, and returns permits when half of its queue is processed."""

    __slots__ = ("done", "free_at", "nanos", "permits", "waiting")

    def __init__(self, rate: float, permits: int) -> None:
        self.nanos = int(NANOS / rate) if rate else 0
        self.permits = permits
        self.free_at = 0
        self.done = 0
        self.waiting: deque[int] = deque()


class KeySharedSubscription(TopicReader):
    """The dispatcher: reads ahead for all consumers, and replays entries once permits return."""

    __slots__ = ("_replaying", "_waiting", "consumers")

    def __init__(
        self, name: str, topic: Topic, settings: SubscriptionGroup, clock: VirtualClock
    ) -> None:
        super().__init__(name, topic, settings, clock)
        self._waiting = 0
        self._replaying: set[int] = set()
        fast = settings.consumers - settings.slow_consumers
        rates = [settings.entries_per_second] * fast
        rates += [settings.slow_entries_per_second] * settings.slow_consumers
        self.consumers = [Consumer(rate, settings.receiver_queue) for rate in rates]

    def start(self) -> None:
        self._topic.cached.activate(self)
        self._read()

    def _may_read(self) -> bool:
        has_permits = any(consumer.permits for consumer in self.consumers)
        return has_permits and self._waiting < self._settings.most_waiting

    def _deliver(self, copies: Sequence[Entry]) -> None:
        self.position += len(copies)
        self._topic.cached.on_cursor_moved(self)
        for copy in copies:
            entry = copy.entry_id
            consumer = self._owner(entry)
            if consumer.permits and not consumer.waiting:
                self._send(consumer, copy)
            else:
                # A replay will read the entry once more.
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
        """Reads the entries that wait for a consumer again, one by one while it has permits."""
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
