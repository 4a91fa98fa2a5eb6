"""Settings around the cache: receive buffers, acknowledgement state, delayed delivery."""

from __future__ import annotations

from pulsar_ml.config.setting import MAX_INT, MAX_LONG, PIP_299, PIP_430, PIP_448, Setting

# The largest receive buffer.
MAX_BUFFER = 2**30

RECEIVE_BUFFERS = (
    Setting(
        key="brokerAdaptiveRecvByteBufAllocatorMinimumSize",
        kind=int,
        default=1024,
        unit="bytes",
        low=16,
        high=MAX_BUFFER,
        meaning="The smallest receive buffer of a connection.",
        interplay="At most ...InitialSize.",
        origin=PIP_430,
    ),
    Setting(
        key="brokerAdaptiveRecvByteBufAllocatorInitialSize",
        kind=int,
        default=16384,
        unit="bytes",
        low=16,
        high=MAX_BUFFER,
        meaning="The first receive buffer of a connection.",
        interplay="Between ...MinimumSize and ...MaximumSize.",
        origin=PIP_430,
    ),
    Setting(
        key="brokerAdaptiveRecvByteBufAllocatorMaximumSize",
        kind=int,
        default=1048576,
        unit="bytes",
        low=16,
        high=MAX_BUFFER,
        meaning="The largest receive buffer of a connection.",
        interplay=(
            "At least ...InitialSize. Smaller buffers reduce the memory that cached entries pin "
            "beyond their own bytes, at the price of copies for messages that do not fit."
        ),
        origin=PIP_430,
    ),
)

ACK_STATE = (
    Setting(
        key="managedLedgerMaxUnackedRangesToPersist",
        kind=int,
        default=10000,
        unit="ranges",
        low=0,
        high=MAX_INT,
        meaning=(
            "The most ranges of acknowledged messages stored for a cursor; further ones stay in "
            "memory."
        ),
        interplay=(
            "200000 in Pulsar 5.0. No effect when managedLedgerMaxAckStateInBytesToPersist is "
            "set, or while both have their defaults."
        ),
    ),
    Setting(
        key="managedLedgerMaxBatchDeletedIndexToPersist",
        kind=int,
        default=10000,
        unit="entries",
        low=0,
        high=MAX_INT,
        meaning="The most partly acknowledged batches stored for a cursor.",
        interplay="200000 in Pulsar 5.0.",
    ),
    Setting(
        key="managedLedgerMaxUnackedRangesToPersistInMetadataStore",
        kind=int,
        default=1000,
        unit="ranges",
        low=0,
        high=MAX_INT,
        meaning="The most ranges stored in the metadata store; more ranges go to a ledger.",
        interplay="200000 in Pulsar 5.0.",
    ),
    Setting(
        key="managedLedgerMaxAckStateInBytesToPersist",
        kind=int,
        default=None,
        unit="bytes",
        low=1024,
        high=5 * 2**20,
        meaning=(
            "Bytes of acknowledgement state stored for a cursor: properties first, then sequence "
            "ids, then ranges."
        ),
        derived=(
            "5 MiB, as in the proposal; no limit on bytes when "
            "managedLedgerMaxUnackedRangesToPersist differs from its default, so that the number "
            "of ranges decides, as in the releases"
        ),
        interplay="When both are set, managedLedgerMaxUnackedRangesToPersist has no effect.",
        origin=PIP_299,
    ),
    Setting(
        key="dispatcherPauseOnAckStatePersistentEnabled",
        kind=bool,
        default=False,
        dynamic=True,
        meaning=(
            "Pause delivery, also of delayed messages, while a cursor's acknowledgements cannot "
            "be stored completely."
        ),
        interplay=(
            "The proposal calls it dispatcherPauseOnAckPersistentStateEnabled and has it on. The "
            "limits above bound the stored acknowledgements."
        ),
        other_keys=("dispatcherPauseOnAckPersistentStateEnabled",),
    ),
    Setting(
        key="managedLedgerCursorPositionFlushSeconds",
        kind=int,
        default=60,
        unit="s",
        low=1,
        high=MAX_INT,
        meaning="The time between two flushes of cursors with unsaved state.",
        interplay=(
            "Stores the positions that managedLedgerDefaultMarkDeleteRateLimit delayed, and "
            "acknowledgements behind the mark-delete position."
        ),
    ),
    Setting(
        key="managedLedgerDefaultMarkDeleteRateLimit",
        kind=float,
        default=1.0,
        unit="per second",
        low=0.0,
        high=1_000_000.0,
        meaning="The most writes of a cursor's mark-delete position per second; 0: no limit.",
        interplay="A delayed write happens within managedLedgerCursorPositionFlushSeconds.",
    ),
)

DELAYED_DELIVERY = (
    Setting(
        key="delayedDeliveryTickTimeMillis",
        kind=int,
        default=1000,
        unit="ms",
        low=0,
        high=MAX_LONG // 1_000_000,
        meaning="The step of the delayed-delivery clock.",
        interplay="Buckets are as wide as the largest power of two that is not above it.",
    ),
    Setting(
        key="isDelayedDeliveryDeliverAtTimeStrict",
        kind=bool,
        default=False,
        meaning="Deliver no message before its time; off: up to one tick early.",
    ),
    Setting(
        key="delayedDeliveryFixedDelayDetectionLookahead",
        kind=int,
        default=50000,
        unit="messages",
        low=0,
        high=MAX_LONG,
        meaning=(
            "The number of messages with one fixed delay at which reading ahead pauses; 0: never."
        ),
    ),
    Setting(
        key="delayedDeliveryMaxDelayInMillis",
        kind=int,
        default=0,
        unit="ms",
        low=0,
        high=MAX_LONG // 1_000_000,
        meaning="The longest delay that a producer may request; 0: no limit.",
    ),
    Setting(
        key="delayedDeliveryPruneMinIntervalMillis",
        kind=int,
        default=0,
        unit="ms",
        low=0,
        high=MAX_LONG // 1_000_000,
        meaning=(
            "The least time between two prunings of a topic's index; 0: one tick, within 5 to 50 "
            "ms."
        ),
        interplay="0 follows delayedDeliveryTickTimeMillis.",
        origin=PIP_448,
    ),
    Setting(
        key="delayedDeliveryPruneEligibleRatio",
        kind=float,
        default=0.5,
        unit="fraction",
        low=0.0,
        high=1.0,
        meaning=(
            "The share of a topic's subscriptions with a due message at which the timer prunes."
        ),
        origin=PIP_448,
    ),
    Setting(
        key="delayedDeliveryTopicManagerIdleMillis",
        kind=int,
        default=0,
        unit="ms",
        low=0,
        high=MAX_LONG // 1_000_000,
        meaning="The time that a topic's index stays after its last subscription left; 0: none.",
        origin=PIP_448,
    ),
)
