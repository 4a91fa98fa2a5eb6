"""Effects of the settings of managed ledgers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pulsar_ml.config import CacheConfig
from pulsar_ml.managed_ledger import LedgerSettings, MemoryStorage
from tests.config.effects import NO_EXPECTED_READS, effect
from tests.managed_ledger.kit import SECONDS, Broker, texts


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
