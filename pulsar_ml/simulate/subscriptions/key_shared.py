"""A simulated Key_Shared subscription.

Each key has one consumer. Entries that a slow consumer cannot take yet wait and are replayed later;
so are delayed entries when their time has come, and entries that were not acknowledged.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Sequence
from random import Random

from pulsar_ml import Entry
from pulsar_ml.simulate.cache import seconds
from pulsar_ml.simulate.clock import NANOS, VirtualClock
from pulsar_ml.simulate.subscriptions.acks import Acknowledgements
from pulsar_ml.simulate.subscriptions.delays import DelayedEntries
from pulsar_ml.simulate.subscriptions.reader import TopicReader
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

    __slots__ = ("_acks", "_delayed", "_replaying", "_waiting", "consumers")

    def __init__(
        self,
        name: str,
        topic: Topic,
        settings: SubscriptionGroup,
        clock: VirtualClock,
        random: Random,
    ) -> None:
        super().__init__(name, topic, settings, clock, random)
        self._waiting = 0
        self._replaying: set[int] = set()
        fast = settings.consumers - settings.slow_consumers
        rates = [settings.entries_per_second] * fast
        rates += [settings.slow_entries_per_second] * settings.slow_consumers
        self.consumers = [Consumer(rate, settings.receiver_queue) for rate in rates]
        self._acks = Acknowledgements(topic.cached, self.position)
        self._delayed = DelayedEntries(topic, name, clock, self._replay_due)

    def start(self) -> None:
        self._topic.cached.activate(self)
        self._read()

    def _may_read(self) -> bool:
        has_permits = any(consumer.permits for consumer in self.consumers)
        return (
            has_permits
            and self._waiting < self._settings.most_waiting
            and self._acks.may_dispatch
            and not self._delayed.should_pause
        )

    def _deliver(self, copies: Sequence[Entry]) -> None:
        self.position += len(copies)
        self._topic.cached.on_cursor_moved(self)
        for copy in copies:
            entry = copy.entry_id
            consumer = self._owner(entry)
            if self._delayed.add(entry):
                copy.release()
            elif consumer.permits and not consumer.waiting:
                self._send(consumer, copy)
            else:
                # A replay will read the entry once more.
                copy.expect_read()
                copy.release()
                self._wait(consumer, entry)
        self._busy = False
        self._clock.after(0, self._read)

    def _owner(self, entry: int) -> Consumer:
        key = zlib.crc32(b"%d/%d" % (self._topic.cached.number, entry)) % self._settings.keys
        return self.consumers[key % len(self.consumers)]

    def _wait(self, consumer: Consumer, entry: int) -> None:
        consumer.waiting.append(entry)
        self._waiting += 1

    def _send(self, consumer: Consumer, copy: Entry) -> None:
        consumer.permits -= 1
        entry = copy.entry_id
        share = self._settings.redelivered_share
        again = share > 0 and self._random.random() < share
        if again:
            copy.expect_read()
        copy.release()
        consumer.free_at = max(consumer.free_at, self._clock.now) + consumer.nanos
        self._clock.after(
            consumer.free_at - self._clock.now, lambda: self._processed(consumer, entry, again)
        )

    def _processed(self, consumer: Consumer, entry: int, again: bool) -> None:
        if again:
            self._clock.after(
                seconds(self._settings.redelivery_seconds), lambda: self._redeliver(consumer, entry)
            )
        else:
            self._after_ack_time(lambda: self._acknowledge(entry))
        consumer.done += 1
        if consumer.done * 2 >= self._settings.receiver_queue:
            consumer.permits += consumer.done
            consumer.done = 0
            self._replay(consumer)
            self._read()

    def _acknowledge(self, entry: int) -> None:
        paused = not self._acks.may_dispatch
        self.marked = self._acks.acknowledge(entry)
        self._delayed.mark(self.marked)
        if self._topic.cached.broker.by_mark_delete:
            self._topic.cached.on_cursor_moved(self)
        if paused and self._acks.may_dispatch:
            self._clock.after(0, self._read)

    def _redeliver(self, consumer: Consumer, entry: int) -> None:
        self._topic.cached.broker.counters.redelivered += 1
        self._wait(consumer, entry)
        self._replay(consumer)

    def _replay_due(self, entries: Sequence[int]) -> None:
        """Delivers delayed entries whose time has come."""
        for entry in entries:
            consumer = self._owner(entry)
            self._wait(consumer, entry)
            self._replay(consumer)
        self._clock.after(0, self._read)

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
