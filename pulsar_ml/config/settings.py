"""All settings of the cache, in the order of the printed table."""

from __future__ import annotations

from pulsar_ml.config.setting import (
    MAX_INT,
    MAX_LONG,
    OURS,
    PIP_299,
    PIP_430,
    PIP_430_FIRST,
    PIP_448,
    Setting,
)

# The share of the cache size above which a size pass starts; fixed in Pulsar, too.
EVICTION_TRIGGER = 0.98
# The smallest derived cache size in MB.
MIN_DERIVED_MB = 64
# The queue of PIP-430, repaired and as it was released; the stash of its first revision; the scan
# that PIP-430 replaced; and two general policies.
POLICIES = ("central_queue", "released_queue", "stash_queue", "ledger_scan", "lru", "s3_fifo")
# The largest receive buffer.
MAX_BUFFER = 2**30

SIZE = (
    Setting(
        key="managedLedgerCacheSizeMB",
        kind=int,
        default=None,
        unit="MB",
        low=0,
        high=MAX_INT,
        dynamic=True,
        meaning=(
            "Bytes of entries that all caches of a broker hold together. 0 disables the caches: "
            "every read goes to storage."
        ),
        derived=(
            f"a fifth of the memory that this process may use, at least {MIN_DERIVED_MB} MB "
            "(Pulsar: a fifth of the JVM's direct memory)"
        ),
        interplay=(
            "Eviction begins above 0.98 of this size and ends at "
            "managedLedgerCacheEvictionWatermark of it. The lengths of entries count, not the "
            "memory that they pin: see managedLedgerCacheCopyEntries."
        ),
    ),
    Setting(
        key="managedLedgerCacheCopyEntries",
        kind=bool,
        default=False,
        meaning="Copy an entry into memory of its own when it is cached.",
        interplay=(
            "Off, a cached entry pins the whole receive buffer that it arrived in, so that the "
            "cache pins more memory than it counts; the brokerAdaptiveRecvByteBufAllocator keys "
            "bound the difference."
        ),
    ),
)

EVICTION = (
    Setting(
        key="managedLedgerCacheEvictionWatermark",
        kind=float,
        default=0.9,
        unit="fraction",
        low=1e-06,
        high=1.0,
        dynamic=True,
        meaning="The share of managedLedgerCacheSizeMB down to which a size pass evicts.",
        interplay=(
            "A size pass starts above 0.98 of the size; a watermark of 0.98 or more frees next to "
            "nothing."
        ),
    ),
    Setting(
        key="managedLedgerCacheEvictionIntervalMs",
        kind=int,
        default=10,
        unit="ms",
        low=1,
        high=MAX_LONG,
        meaning="The time between two runs of the eviction task.",
        interplay="managedLedgerCacheEvictionFrequency, when above 0, replaces it.",
    ),
    Setting(
        key="managedLedgerCacheEvictionFrequency",
        kind=float,
        default=0.0,
        unit="per second",
        low=0.0,
        high=1000.0,
        meaning=(
            "Runs of the eviction task per second; 0: see managedLedgerCacheEvictionIntervalMs."
        ),
        interplay=(
            "The older key, which wins when above 0: the interval is 1000 / frequency, in whole "
            "milliseconds."
        ),
    ),
    Setting(
        key="managedLedgerCacheEvictionTimeThresholdMillis",
        kind=int,
        default=1000,
        unit="ms",
        low=0,
        high=MAX_LONG // 1_000_000,
        dynamic=True,
        meaning="The longest time that an entry stays cached without an extension.",
        interplay=(
            "The two ...ExtendTTLOf... settings extend it, each time by this much. The default of "
            "managedLedgerContinueCachingAddedEntriesAfterLastActiveCursorLeavesMillis is derived "
            "from it."
        ),
    ),
    Setting(
        key="cacheEvictionByExpectedReadCount",
        kind=bool,
        default=True,
        meaning="Keep entries longer while cursors are expected to read them.",
        interplay="On, cacheEvictionByMarkDeletedPosition and the backlog settings are ignored.",
    ),
    Setting(
        key="cacheEvictionByMarkDeletedPosition",
        kind=bool,
        default=False,
        meaning=(
            "Invalidate entries up to the slowest mark-delete position; off: up to the slowest "
            "read position."
        ),
        interplay="Ignored while cacheEvictionByExpectedReadCount is on.",
    ),
    Setting(
        key="managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes",
        kind=int,
        default=5,
        unit="times",
        low=0,
        high=65535,
        dynamic=True,
        meaning="The most times that a pass keeps an entry with remaining expected reads.",
        interplay=(
            "Takes effect with cacheEvictionByExpectedReadCount only. The released queue counts "
            "every requeue, also one for a recent access."
        ),
    ),
    Setting(
        key="managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed",
        kind=bool,
        default=True,
        dynamic=True,
        meaning="Let a pass keep an entry that was read since the pass before.",
        interplay=(
            "False in Pulsar 5.0. On, an entry that is read stays at least twice "
            "managedLedgerCacheEvictionTimeThresholdMillis, and another one once."
        ),
        other_keys=("cacheEvictionExtendTTLOfRecentlyAccessed",),
    ),
    Setting(
        key="managedLedgerCacheEvictionTimeThresholdMillisMax",
        kind=int,
        default=5000,
        unit="ms",
        low=0,
        high=MAX_LONG // 1_000_000,
        dynamic=True,
        meaning="The longest time that an entry with remaining expected reads stays cached.",
        interplay=(
            "Used by the stash policy only; needs cacheEvictionByExpectedReadCount. Entries "
            "without expected reads have managedLedgerCacheEvictionTimeThresholdMillis, which "
            "holds for all entries when it is longer."
        ),
        origin=PIP_430_FIRST,
    ),
    Setting(
        key="managedLedgerCacheEvictionPolicyName",
        kind=str,
        default="central_queue",
        choices=POLICIES,
        meaning="The policy that selects the entries to evict.",
        interplay="managedLedgerCacheEvictionTimeThresholdMillisMax belongs to stash_queue.",
        origin=OURS,
    ),
    Setting(
        key="managedLedgerContinueCachingAddedEntriesAfterLastActiveCursorLeavesMillis",
        kind=int,
        default=None,
        unit="ms",
        low=0,
        high=MAX_LONG // 1_000_000,
        meaning=(
            "The grace period: how long new entries are cached after the last active cursor left."
        ),
        derived="twice managedLedgerCacheEvictionTimeThresholdMillis",
        interplay="Ignored without cacheEvictionByExpectedReadCount.",
    ),
)

BACKLOG = (
    Setting(
        key="managedLedgerCursorBackloggedThreshold",
        kind=int,
        default=1000,
        unit="entries",
        low=0,
        high=MAX_LONG,
        meaning="A cursor this far behind is backlogged and counts as inactive.",
        interplay="Ignored with cacheEvictionByExpectedReadCount.",
    ),
    Setting(
        key="managedLedgerMinimumBacklogCursorsForCaching",
        kind=int,
        default=0,
        unit="cursors",
        low=0,
        high=MAX_INT,
        dynamic=True,
        meaning="The least number of backlogged cursors whose reads are cached; 0: never.",
        interplay="Ignored with cacheEvictionByExpectedReadCount.",
    ),
    Setting(
        key="managedLedgerMinimumBacklogEntriesForCaching",
        kind=int,
        default=1000,
        unit="entries",
        low=0,
        high=MAX_INT,
        dynamic=True,
        meaning="The least backlog of a cursor whose reads are cached.",
        interplay="Ignored with cacheEvictionByExpectedReadCount or when "
        "managedLedgerMinimumBacklogCursorsForCaching is 0.",
    ),
    Setting(
        key="managedLedgerMaxBacklogBetweenCursorsForCaching",
        kind=int,
        default=1000,
        unit="entries",
        low=0,
        high=MAX_INT,
        dynamic=True,
        meaning="The largest distance of two cursors that cache for each other.",
        interplay="Ignored with cacheEvictionByExpectedReadCount or when "
        "managedLedgerMinimumBacklogCursorsForCaching is 0.",
    ),
)

READS = (
    Setting(
        key="managedLedgerMaxReadsInFlightSizeInMB",
        kind=int,
        default=0,
        unit="MB",
        low=0,
        high=MAX_LONG // 2**20,
        meaning="Bytes that reads may have in flight until they are delivered; 0: no limit.",
        interplay=(
            "Pulsar 5.0 derives its default: 15 % of direct memory, at least 5 MB. The estimate "
            "of a read is entries x (average + 64) bytes; a read above the limit "
            "can only time out."
        ),
    ),
    Setting(
        key="managedLedgerMaxReadsInFlightPermitsAcquireTimeoutMillis",
        kind=int,
        default=60000,
        unit="ms",
        low=0,
        high=MAX_LONG // 1_000_000,
        meaning="The longest time that a read waits for its share of the limit.",
        interplay="No effect when managedLedgerMaxReadsInFlightSizeInMB is 0.",
    ),
    Setting(
        key="managedLedgerMaxReadsInFlightPermitsAcquireQueueSize",
        kind=int,
        default=10000,
        unit="requests",
        low=0,
        high=MAX_INT,
        meaning="Reads that may wait for the limit; the next one fails at once.",
        interplay="No effect when managedLedgerMaxReadsInFlightSizeInMB is 0.",
    ),
)

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

SETTINGS: tuple[Setting, ...] = (
    *SIZE,
    *EVICTION,
    *BACKLOG,
    *READS,
    *RECEIVE_BUFFERS,
    *ACK_STATE,
    *DELAYED_DELIVERY,
)
BY_KEY = {setting.key: setting for setting in SETTINGS}
# BY_KEY with the alternative keys.
BY_ANY_KEY = BY_KEY | {other: setting for setting in SETTINGS for other in setting.other_keys}
