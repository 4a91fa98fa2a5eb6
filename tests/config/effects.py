"""A behaviour that each setting changes, observed in objects that a configuration made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pulsar_ml import EntryCacheManager, InMemoryDelayedDeliveryTrackerFactory, ReceiveBufferSize
from pulsar_ml.config import CacheConfig
from pulsar_ml.errors import PulsarMlError
from pulsar_ml.managed_ledger import LedgerSettings, ManagedCursor, MemoryStorage
from tests.managed_ledger.kit import SECONDS, Broker, texts

Observe = Callable[[CacheConfig], object]
MB = 2**20
NO_EXPECTED_READS = {"cacheEvictionByExpectedReadCount": False}


@dataclass(frozen=True, slots=True)
class Effect:
    """Two values of a setting and what is observed with each, over ``others``."""

    behaviour: str
    observe: Observe
    values: tuple[Any, Any]
    seen: tuple[object, object]
    others: dict[str, Any]


EFFECTS: dict[str, Effect] = {}


def effect(
    key: str, behaviour: str, values: tuple[Any, Any], seen: tuple[object, object], **others: Any
) -> Callable[[Observe], Observe]:
    def add(observe: Observe) -> Observe:
        EFFECTS[key] = Effect(behaviour, observe, values, seen, others)
        return observe

    return add


# The cache ----------------------------------------------------------------------------------------


@contextmanager
def cache_of(config: CacheConfig) -> Iterator[EntryCacheManager]:
    manager = EntryCacheManager(**config.manager_keywords(), clock=lambda: 0)
    yield manager
    manager.close()


def cached_megabytes(config: CacheConfig, megabytes: int = 4) -> int:
    """The number of entries of 1 MB that stay of so many."""
    with cache_of(config) as manager:
        cache = manager.range_cache("a")
        for number in range(megabytes):
            cache.put((1, number), bytes(MB), timestamp_ns=number)
        return sum((1, number) in cache for number in range(megabytes))


def passes_until_evicted(
    config: CacheConfig, *, expected_reads: int = 0, read: bool = False
) -> int:
    """The number of time passes, one after each time to live, until an entry is gone."""
    with cache_of(config) as manager:
        cache = manager.range_cache("a")
        cache.put((1, 1), b"x", expected_reads=expected_reads, timestamp_ns=0)
        if read:
            for entry in cache.get_range((1, 1), (1, 1)):
                entry.release()
        step = config.cache_eviction_time_threshold_millis * 1_000_000 + 1
        for number in range(1, 30):
            manager.periodic_eviction(now_ns=number * step)
            if (1, 1) not in cache:
                return number
        return 30


effect("managedLedgerCacheSizeMB", "entries of 1 MB that stay in the cache", (2, 64), (1, 4))(
    cached_megabytes
)
effect(
    "managedLedgerCacheEvictionWatermark",
    "entries that stay after a size pass",
    (0.3, 0.9),
    (1, 3),
    managedLedgerCacheSizeMB=4,
)(cached_megabytes)


@effect("managedLedgerCacheCopyEntries", "memory that a cached slice keeps", (True, False), (1, 64))
def pinned_by_a_slice(config: CacheConfig) -> int:
    with cache_of(config) as manager:
        buffer = manager.receive_buffer(64)
        buffer.write(b"x" * 64)
        manager.range_cache("a").put((1, 1), buffer.slice(0, 1))
        buffer.release()
        return manager.pinned_size


@effect(
    "managedLedgerCacheEvictionIntervalMs", "time between two eviction passes", (7, 30), (7, 30)
)
def interval(config: CacheConfig) -> object:
    return config.manager_keywords()["eviction_interval_ms"]


effect(
    "managedLedgerCacheEvictionFrequency",
    "time between two eviction passes",
    (0.0, 50.0),
    (10, 20),
)(interval)


@effect(
    "managedLedgerCacheEvictionTimeThresholdMillis",
    "age at which a pass evicts an entry",
    (3, 8),
    (3, 8),
)
def age_of_eviction(config: CacheConfig) -> int:
    with cache_of(config) as manager:
        cache = manager.range_cache("a")
        cache.put((1, 1), b"x", timestamp_ns=0)
        age = 0
        while (1, 1) in cache:
            age += 1
            manager.periodic_eviction(now_ns=age * 1_000_000 + 1)
        return age


@effect(
    "managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes",
    "passes that keep an entry with expected reads",
    (0, 3),
    (1, 4),
)
def passes_with_expected_reads(config: CacheConfig) -> int:
    return passes_until_evicted(config, expected_reads=1)


effect(
    "cacheEvictionByExpectedReadCount",
    "passes that keep an entry with expected reads",
    (True, False),
    (6, 1),
)(passes_with_expected_reads)
effect(
    "managedLedgerCacheEvictionTimeThresholdMillisMax",
    "passes that the stash keeps an entry with expected reads",
    (1000, 3000),
    (1, 3),
    managedLedgerCacheEvictionPolicyName="stash_queue",
)(passes_with_expected_reads)


@effect(
    "managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed",
    "passes that keep an entry that was read",
    (True, False),
    (2, 1),
)
def passes_after_a_read(config: CacheConfig) -> int:
    return passes_until_evicted(config, read=True)


@effect(
    "managedLedgerCacheEvictionPolicyName",
    "the entry that a size pass evicts: the oldest, or the one that was not read",
    ("central_queue", "lru"),
    ([2, 3], [0, 3]),
    managedLedgerCacheSizeMB=4,
    managedLedgerCacheEvictionWatermark=0.5,
    managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed=False,
)
def left_by_the_policy(config: CacheConfig) -> list[int]:
    with cache_of(config) as manager:
        cache = manager.range_cache("a")
        for number in range(3):
            cache.put((1, number), bytes(MB), timestamp_ns=number)
        for entry in cache.get_range((1, 0), (1, 0)):
            entry.release()
        cache.put((1, 3), bytes(MB), timestamp_ns=3)
        return [number for number in range(4) if (1, number) in cache]


# Managed ledgers ----------------------------------------------------------------------------------


@contextmanager
def broker_of(config: CacheConfig, storage: MemoryStorage | None = None) -> Iterator[Broker]:
    keywords = config.factory_keywords()
    broker = Broker(
        storage or MemoryStorage(),
        settings=LedgerSettings(**config.ledger_keywords()),
        limit=keywords.pop("max_reads_in_flight_bytes"),
        **keywords,
    )
    yield broker
    broker.close()


def cached(broker: Broker, most: int = 100) -> int:
    """The number of entries of the first ledger in the cache."""
    (ledger_id,) = broker.ledger.ledger_ids
    entries = broker.ledger.cache.cached.get_range((ledger_id, 0), (ledger_id, most))
    for entry in entries:
        entry.release()
    return len(entries)


@effect(
    "cacheEvictionByMarkDeletedPosition",
    "entries that stay when all cursors read them and none marked them",
    (True, False),
    (4, 0),
    **NO_EXPECTED_READS,
)
def cached_after_a_read(config: CacheConfig) -> int:
    with broker_of(config) as broker:
        cursor = broker.ledger.open_cursor("a")
        broker.add(4)
        texts(cursor.read_entries(4).result(SECONDS))
        return cached(broker)


@effect(
    "managedLedgerContinueCachingAddedEntriesAfterLastActiveCursorLeavesMillis",
    "entries cached 100 ms after the last active cursor left",
    (50, 200),
    (0, 1),
)
def cached_after_the_last_left(config: CacheConfig) -> int:
    with broker_of(config) as broker:
        cursor = broker.ledger.open_cursor("a")
        cursor.set_inactive()
        broker.clock.pass_millis(100)
        broker.add(1)
        return cached(broker)


@effect(
    "managedLedgerCursorBackloggedThreshold",
    "a cursor that is 5 entries behind is active",
    (4, 5),
    (False, True),
    **NO_EXPECTED_READS,
)
def active_with_a_backlog(config: CacheConfig) -> bool:
    with broker_of(config) as broker:
        cursor = broker.ledger.open_cursor("a")
        broker.add(5)
        broker.factory.expire()
        return cursor.is_active


def cached_reads_of_backlogs(config: CacheConfig) -> int:
    """Entries in the cache after the second of two cursors, 20 and 14 behind, read 4 of them."""
    with broker_of(config) as broker:
        first, second = (broker.ledger.open_cursor(name, active=False) for name in "ab")
        broker.add(20)
        texts(second.read_entries(6).result(SECONDS))
        broker.factory.expire()
        texts(second.read_entries(4).result(SECONDS))
        assert first.unread == 20
        return cached(broker)


ALIKE = {
    "managedLedgerMinimumBacklogCursorsForCaching": 1,
    "managedLedgerMinimumBacklogEntriesForCaching": 10,
    "managedLedgerMaxBacklogBetweenCursorsForCaching": 10,
} | NO_EXPECTED_READS
for key, values in (
    ("managedLedgerMinimumBacklogCursorsForCaching", (2, 1)),
    ("managedLedgerMinimumBacklogEntriesForCaching", (15, 14)),
    ("managedLedgerMaxBacklogBetweenCursorsForCaching", (5, 6)),
):
    effect(
        key,
        "entries that one of two backlogged cursors reads and that stay for the other",
        values,
        (0, 4),
        **{other: value for other, value in ALIKE.items() if other != key},
    )(cached_reads_of_backlogs)


def second_read(config: CacheConfig, *, millis: int = 0) -> str:
    """The end of a read while another one holds all permits, after a time."""
    with broker_of(config) as broker:
        cursors = [broker.ledger.open_cursor(name, active=False) for name in "ab"]
        broker.add(2, size=900_000)
        broker.evict()
        first, second = (cursor.read_entries(1) for cursor in cursors)
        broker.clock.pass_millis(millis)
        broker.factory.expire()
        if not second.done():
            texts(first.result(SECONDS))
            texts(second.result(SECONDS))
            return "waited"
        error = second.exception(SECONDS)
        for read in (first, second):
            if read.exception(SECONDS) is None:
                texts(read.result(SECONDS))
        return "served" if error is None else type(error).__name__


LIMITED = {"managedLedgerMaxReadsInFlightSizeInMB": 1}
effect(
    "managedLedgerMaxReadsInFlightSizeInMB",
    "the end of a second read of 0.9 MB",
    (1, 2),
    ("waited", "served"),
)(second_read)
effect(
    "managedLedgerMaxReadsInFlightPermitsAcquireQueueSize",
    "the end of a read that has to wait",
    (0, 1),
    ("ReadLimitError", "waited"),
    **LIMITED,
)(second_read)


@effect(
    "managedLedgerMaxReadsInFlightPermitsAcquireTimeoutMillis",
    "the end of a read that waited 100 ms",
    (50, 200),
    ("ReadTimeoutError", "waited"),
    **LIMITED,
)
def read_after_100_ms(config: CacheConfig) -> str:
    return second_read(config, millis=100)


# Acknowledgements ---------------------------------------------------------------------------------


def acknowledged(broker: Broker, ranges: int) -> ManagedCursor:
    """A cursor with so many separate ranges of acknowledged entries."""
    cursor = broker.ledger.open_cursor("sub", earliest=True)
    for number, at in enumerate(broker.add(2 * ranges + 1)):
        if number % 2:
            cursor.delete(at)
    return cursor


def ranges_left_out(config: CacheConfig) -> int:
    with broker_of(config) as broker:
        return acknowledged(broker, 200).flush().ranges


effect(
    "managedLedgerMaxUnackedRangesToPersist",
    "ranges of 200 that a flush leaves out",
    (50, 300),
    (150, 0),
)(ranges_left_out)
effect(
    "managedLedgerMaxAckStateInBytesToPersist",
    "ranges of 200 that a flush leaves out",
    (1024, 1 << 20),
    (168, 0),
)(ranges_left_out)


@effect(
    "managedLedgerMaxUnackedRangesToPersistInMetadataStore",
    "ranges of 5 left out when only the metadata store accepts them",
    (2, 9),
    (3, 0),
)
def ranges_left_out_of_the_store(config: CacheConfig) -> int:
    with broker_of(config) as broker:
        cursor = acknowledged(broker, 5)
        broker.storage.fail_appends = 1
        return cursor.flush().ranges


@effect(
    "managedLedgerMaxBatchDeletedIndexToPersist",
    "partly acknowledged batches of 5 that a restart keeps",
    (2, 5),
    (2, 5),
)
def batches_kept(config: CacheConfig) -> int:
    storage = MemoryStorage()
    with broker_of(config, storage) as broker:
        cursor = broker.ledger.open_cursor("sub", earliest=True)
        positions = broker.add(5)
        for at in positions:
            cursor.delete_index(at, 1, batch_size=4)
    with broker_of(config, storage) as broker:
        acks = broker.ledger.open_cursor("sub").acks
        return sum(acks.contains_index(at, 1) for at in positions)


@effect(
    "dispatcherPauseOnAckStatePersistentEnabled",
    "dispatch goes on while ranges are left out",
    (True, False),
    (False, True),
    managedLedgerMaxUnackedRangesToPersist=2,
)
def dispatch_goes_on(config: CacheConfig) -> bool:
    with broker_of(config) as broker:
        return acknowledged(broker, 5).may_dispatch()


@effect(
    "managedLedgerCursorPositionFlushSeconds",
    "an acknowledgement is stored after 30 s",
    (20, 40),
    (True, False),
)
def stored_after_30_seconds(config: CacheConfig) -> bool:
    with broker_of(config) as broker:
        cursor = acknowledged(broker, 1)
        broker.clock.pass_millis(30_000)
        broker.factory.expire()
        return not cursor.is_dirty


@effect(
    "managedLedgerDefaultMarkDeleteRateLimit",
    "mark-delete positions of 4 in 2 s that are stored at once",
    (1.0, 0.0),
    (2, 4),
)
def marks_stored(config: CacheConfig) -> int:
    with broker_of(config) as broker:
        cursor = broker.ledger.open_cursor("sub", earliest=True)
        seen = set()
        for at in broker.add(4):
            cursor.mark_delete(at)
            seen.add(broker.storage.properties("orders")["cursor/sub"])
            broker.clock.pass_millis(500)
        return len(seen)


# Receive buffers ----------------------------------------------------------------------------------


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


# Delayed delivery ---------------------------------------------------------------------------------


def trackers(config: CacheConfig) -> InMemoryDelayedDeliveryTrackerFactory:
    return InMemoryDelayedDeliveryTrackerFactory(**config.delayed_keywords())


def due_after(config: CacheConfig) -> int:
    """The millisecond from which on a message for the millisecond 1,000 is delivered."""
    view = trackers(config).new_tracker("a")
    assert view.add_message((1, 1), 1000, now=0)
    return next(now for now in range(2000) if view.has_message_available(now=now))


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
        view.add_message((1, number), 100_000 + number, now=number)
    return view.should_pause_all_deliveries(now=10)


@effect(
    "delayedDeliveryMaxDelayInMillis",
    "an entry with a delay of 100 ms is accepted",
    (99, 100),
    (False, True),
)
def delay_is_accepted(config: CacheConfig) -> bool:
    with broker_of(config) as broker:
        try:
            broker.ledger.add_entry(b"x", deliver_at=1100, now=1000)
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
    view.add_message((1, 1), 100_000, now=0)
    view.update_mark_delete_position((1, 0), now=0)
    view.update_mark_delete_position((1, 1), now=20)
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
        first.add_message((1, number), 5000, now=0)
    for view, mark in ((first, 2), (second, 1)):
        view.update_mark_delete_position((1, mark), now=0)
    assert first.topic_delayed_messages == 2
    assert first.fire(now=10_000) == 1
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
    view.add_message((1, 1), 100_000, now=0)
    view.close(now=0)
    topics.expire(now=100)
    return topics.new_tracker("a").topic_delayed_messages
