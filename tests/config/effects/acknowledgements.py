"""Effects of the settings of acknowledgements."""

from __future__ import annotations

from pulsar_ml.config import CacheConfig
from pulsar_ml.managed_ledger import ManagedCursor, MemoryStorage
from tests.config.effects import effect
from tests.config.effects.ledgers import broker_of
from tests.managed_ledger.kit import Broker


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
