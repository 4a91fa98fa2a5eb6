"""Effects of the settings of receive buffers and delayed delivery."""

from __future__ import annotations

from pulsar_ml import InMemoryDelayedDeliveryTrackerFactory, ReceiveBufferSize
from pulsar_ml.config import CacheConfig
from pulsar_ml.errors import PulsarMlError
from tests.config.effects import effect
from tests.config.effects.ledgers import broker_of


def buffer_size(config: CacheConfig, *reads: int) -> int:
    """The next receive buffer after reads of so many bytes."""
    size = ReceiveBufferSize(**config.receive_buffer_keywords())
    for read in reads:
        size.record(read)
    return size.next


@effect(
    "brokerAdaptiveRecvByteBufAllocatorMinimumSize",
    "the receive buffer after many short reads",
    (64, 1024),
    (64, 1024),
)
def smallest_buffer(config: CacheConfig) -> int:
    return buffer_size(config, *[1] * 100)


effect(
    "brokerAdaptiveRecvByteBufAllocatorInitialSize",
    "the first receive buffer",
    (2048, 16384),
    (2048, 16384),
)(buffer_size)


@effect(
    "brokerAdaptiveRecvByteBufAllocatorMaximumSize",
    "the receive buffer after many long reads",
    (32768, 1 << 20),
    (32768, 1 << 20),
)
def largest_buffer(config: CacheConfig) -> int:
    return buffer_size(config, *[1 << 30] * 100)


def trackers(config: CacheConfig) -> InMemoryDelayedDeliveryTrackerFactory:
    return InMemoryDelayedDeliveryTrackerFactory(**config.delayed_keywords())


def due_after(config: CacheConfig) -> int:
    """The millisecond from which on a message for the millisecond 1,000 is delivered."""
    view = trackers(config).new_tracker("a")
    assert view.add_message((1, 1), 1000, now_ms=0)
    return next(now for now in range(2000) if view.has_message_available(now_ms=now))


effect(
    "delayedDeliveryTickTimeMillis",
    "when a message for the millisecond 1,000 is delivered",
    (1, 100),
    (999, 923),
)(due_after)
effect(
    "isDelayedDeliveryDeliverAtTimeStrict",
    "when a message for the millisecond 1,000 is delivered",
    (False, True),
    (923, 1024),
    delayedDeliveryTickTimeMillis=100,
)(due_after)


@effect(
    "delayedDeliveryFixedDelayDetectionLookahead",
    "reading pauses after 10 messages of one delay",
    (10, 11),
    (True, False),
)
def pauses(config: CacheConfig) -> bool:
    view = trackers(config).new_tracker("a")
    for number in range(10):
        view.add_message((1, number), 100_000 + number, now_ms=number)
    return view.should_pause_all_deliveries(now_ms=10)


@effect(
    "delayedDeliveryMaxDelayInMillis",
    "an entry with a delay of 100 ms is accepted",
    (99, 100),
    (False, True),
)
def delay_is_accepted(config: CacheConfig) -> bool:
    with broker_of(config) as broker:
        try:
            broker.ledger.add_entry(b"x", deliver_at_ms=1100, now_ms=1000)
        except PulsarMlError:
            return False
        return True


@effect(
    "delayedDeliveryPruneMinIntervalMillis",
    "messages left when all views marked them 20 ms after a prune",
    (20, 21),
    (0, 1),
)
def left_after_20_ms(config: CacheConfig) -> int:
    view = trackers(config).new_tracker("a")
    view.add_message((1, 1), 100_000, now_ms=0)
    view.update_mark_delete_position((1, 0), now_ms=0)
    view.update_mark_delete_position((1, 1), now_ms=20)
    return view.topic_delayed_messages


@effect(
    "delayedDeliveryPruneEligibleRatio",
    "messages left after a timer that triggered one of two views",
    (0.5, 1.0),
    (1, 2),
    delayedDeliveryPruneMinIntervalMillis=10,
)
def left_after_the_timer(config: CacheConfig) -> int:
    topics = trackers(config)
    first, second = (topics.new_tracker("a", subscription=name) for name in "ab")
    for number in (1, 2):
        first.add_message((1, number), 5000, now_ms=0)
    for view, mark in ((first, 2), (second, 1)):
        view.update_mark_delete_position((1, mark), now_ms=0)
    assert first.topic_delayed_messages == 2
    assert first.fire(now_ms=10_000) == 1
    return first.topic_delayed_messages


@effect(
    "delayedDeliveryTopicManagerIdleMillis",
    "messages that a subscription finds 100 ms after the last one left",
    (50, 200),
    (0, 1),
)
def left_after_an_idle_time(config: CacheConfig) -> int:
    topics = trackers(config)
    view = topics.new_tracker("a")
    view.add_message((1, 1), 100_000, now_ms=0)
    view.close(now_ms=0)
    topics.expire(now_ms=100)
    return topics.new_tracker("a").topic_delayed_messages
