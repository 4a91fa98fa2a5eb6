"""All settings of the cache, in the order of the printed table."""

from __future__ import annotations

from pulsar_ml._core import EVICTION_POLICIES
from pulsar_ml.config.setting import (
    INT_MAX,
    LONG_MAX,
    OURS,
    PIP_299,
    PIP_430,
    PIP_430_FIRST,
    PIP_448,
    Setting,
)

# Fixed in Pulsar, and here: a cache is too large above this share of its size.
EVICTION_TRIGGER = 0.98
# Bytes that a read is estimated to need for each entry beyond the payload.
READ_OVERHEAD = 64
# Bytes of an entry that the estimate takes when nothing is known.
DEFAULT_ENTRY_SIZE = 10240
# The smallest cache size that is derived, MB.
LEAST_DERIVED_SIZE = 64
# The largest buffer a receive-buffer allocator can be asked for.
MOST_BUFFER = 2**30

SIZE = (
    Setting(
        key="managedLedgerCacheSizeMB",
        kind=int,
        default=None,
        unit="MB",
        low=0,
        high=INT_MAX,
        dynamic=True,
        meaning="Bytes of entries that all caches of a broker hold together. 0 disables them: nothing is "
        "cached and every read goes to storage.",
        derived=f"a fifth of the memory this process may use, at least {LEAST_DERIVED_SIZE} MB (Pulsar: a "
        "fifth of the JVM's direct memory)",
        interplay="Eviction begins above 0.98 of it and ends at managedLedgerCacheEvictionWatermark of it. "
        "It "
        "counts lengths of entries: see managedLedgerCacheCopyEntries.",
    ),
    Setting(
        key="managedLedgerCacheCopyEntries",
        kind=bool,
        default=False,
        meaning="Whether an entry is copied into memory of its own when it is cached.",
        interplay="Off, a cached entry keeps the whole receive buffer it came in, so that the cache pins "
        "more "
        "than it counts; on, both are the same. The brokerAdaptiveRecvByteBufAllocator keys bound the gap.",
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
        interplay="A size pass starts above 0.98 of the size; at or above that a pass frees next to nothing.",
    ),
    Setting(
        key="managedLedgerCacheEvictionIntervalMs",
        kind=int,
        default=10,
        unit="ms",
        low=1,
        high=LONG_MAX,
        meaning="The time between two runs of the eviction task.",
        interplay="managedLedgerCacheEvictionFrequency, when above 0, takes its place.",
    ),
    Setting(
        key="managedLedgerCacheEvictionFrequency",
        kind=float,
        default=0.0,
        unit="per second",
        low=0.0,
        high=1000.0,
        meaning="Runs of the eviction task a second; 0: see managedLedgerCacheEvictionIntervalMs.",
        interplay="The older key. Above 0 it wins: the interval is 1000 / frequency, in whole milliseconds.",
    ),
    Setting(
        key="managedLedgerCacheEvictionTimeThresholdMillis",
        kind=int,
        default=1000,
        unit="ms",
        low=0,
        high=LONG_MAX // 1_000_000,
        dynamic=True,
        meaning="The time an entry stays at most when nothing extends it.",
        interplay="Extended by the two ...ExtendTTLOf... settings, each time by this much. The grace period "
        "of "
        "managedLedgerContinueCachingAddedEntriesAfterLastActiveCursorLeavesMillis follows it.",
    ),
    Setting(
        key="cacheEvictionByExpectedReadCount",
        kind=bool,
        default=True,
        meaning="Whether entries that cursors are expected to read yet are kept longer.",
        interplay="On, cacheEvictionByMarkDeletedPosition and the backlog settings are ignored.",
    ),
    Setting(
        key="cacheEvictionByMarkDeletedPosition",
        kind=bool,
        default=False,
        meaning="Whether cursor-based invalidation follows the slowest mark-delete position; off, the "
        "slowest "
        "read position.",
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
        meaning="How often at most a pass keeps an entry that has expected reads left.",
        interplay="Takes effect with cacheEvictionByExpectedReadCount only. In the released queue every "
        "requeue counts, also one for a recent access.",
    ),
    Setting(
        key="managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed",
        kind=bool,
        default=True,
        dynamic=True,
        meaning="Whether a pass keeps an entry that was read since the last one looked at it.",
        interplay="False in Pulsar 5.0. An entry that is read lives at least twice "
        "managedLedgerCacheEvictionTimeThresholdMillis; one that is not, once.",
        other_keys=("cacheEvictionExtendTTLOfRecentlyAccessed",),
    ),
    Setting(
        key="managedLedgerCacheEvictionTimeThresholdMillisMax",
        kind=int,
        default=5000,
        unit="ms",
        low=0,
        high=LONG_MAX // 1_000_000,
        dynamic=True,
        meaning="The time an entry with expected reads left stays at most.",
        interplay="Of the stash policy only; needs cacheEvictionByExpectedReadCount. Entries without "
        "expected "
        "reads have managedLedgerCacheEvictionTimeThresholdMillis; when that is longer it holds for both.",
        origin=PIP_430_FIRST,
    ),
    Setting(
        key="managedLedgerCacheEvictionPolicyName",
        kind=str,
        default="central_queue",
        choices=tuple(EVICTION_POLICIES),
        meaning="Which policy decides what leaves the cache.",
        interplay="managedLedgerCacheEvictionTimeThresholdMillisMax is the stash's.",
        origin=OURS,
    ),
    Setting(
        key="managedLedgerContinueCachingAddedEntriesAfterLastActiveCursorLeavesMillis",
        kind=int,
        default=None,
        unit="ms",
        low=0,
        high=LONG_MAX // 1_000_000,
        meaning="How long added entries are cached yet while no cursor is active.",
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
        high=LONG_MAX,
        meaning="A cursor this far behind is backlogged and counts as inactive.",
        interplay="Ignored with cacheEvictionByExpectedReadCount.",
    ),
    Setting(
        key="managedLedgerMinimumBacklogCursorsForCaching",
        kind=int,
        default=0,
        unit="cursors",
        low=0,
        high=INT_MAX,
        dynamic=True,
        meaning="Backlogged cursors that make their reads worth caching; 0: never.",
        interplay="Ignored with cacheEvictionByExpectedReadCount.",
    ),
    Setting(
        key="managedLedgerMinimumBacklogEntriesForCaching",
        kind=int,
        default=1000,
        unit="entries",
        low=0,
        high=INT_MAX,
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
        high=INT_MAX,
        dynamic=True,
        meaning="Cursors further apart than this do not cache for each other.",
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
        high=LONG_MAX // 2**20,
        meaning="Bytes that reads may have in flight until they are delivered; 0: no limit.",
        interplay="Pulsar 5.0 derives its default: 15 % of direct memory, at least 5 MB. A read is estimated"
        " at "
        f"entries x (average + {READ_OVERHEAD}) bytes; one larger than the limit can only time out.",
    ),
    Setting(
        key="managedLedgerMaxReadsInFlightPermitsAcquireTimeoutMillis",
        kind=int,
        default=60000,
        unit="ms",
        low=0,
        high=LONG_MAX // 1_000_000,
        meaning="How long a read waits at most for its share of the limit.",
        interplay="Without effect when managedLedgerMaxReadsInFlightSizeInMB is 0.",
    ),
    Setting(
        key="managedLedgerMaxReadsInFlightPermitsAcquireQueueSize",
        kind=int,
        default=10000,
        unit="requests",
        low=0,
        high=INT_MAX,
        meaning="Reads that may wait for the limit; one more fails at once.",
        interplay="Without effect when managedLedgerMaxReadsInFlightSizeInMB is 0.",
    ),
)

RECEIVE_BUFFERS = (
    Setting(
        key="brokerAdaptiveRecvByteBufAllocatorMinimumSize",
        kind=int,
        default=1024,
        unit="bytes",
        low=16,
        high=MOST_BUFFER,
        meaning="The smallest receive buffer of a connection.",
        interplay="Not above ...InitialSize.",
        origin=PIP_430,
    ),
    Setting(
        key="brokerAdaptiveRecvByteBufAllocatorInitialSize",
        kind=int,
        default=16384,
        unit="bytes",
        low=16,
        high=MOST_BUFFER,
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
        high=MOST_BUFFER,
        meaning="The largest receive buffer of a connection.",
        interplay="Not below ...InitialSize. Smaller buffers lessen what cached entries pin beyond their own "
        "bytes, at the price of copies for messages that do not fit.",
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
        high=INT_MAX,
        meaning="Ranges of acknowledged messages that are stored for a cursor; the rest is in memory only.",
        interplay="200000 in Pulsar 5.0. Has no effect when managedLedgerMaxAckStateInBytesToPersist is set, "
        "or while both have their defaults.",
    ),
    Setting(
        key="managedLedgerMaxBatchDeletedIndexToPersist",
        kind=int,
        default=10000,
        unit="entries",
        low=0,
        high=INT_MAX,
        meaning="Partly acknowledged batches that are stored for a cursor.",
        interplay="200000 in Pulsar 5.0.",
    ),
    Setting(
        key="managedLedgerMaxUnackedRangesToPersistInMetadataStore",
        kind=int,
        default=1000,
        unit="ranges",
        low=0,
        high=INT_MAX,
        meaning="Up to so many ranges are stored in the metadata store; more go to a ledger.",
        interplay="200000 in Pulsar 5.0.",
    ),
    Setting(
        key="managedLedgerMaxAckStateInBytesToPersist",
        kind=int,
        default=None,
        unit="bytes",
        low=1024,
        high=5 * 2**20,
        meaning="Bytes of acknowledgement state that are stored for a cursor: properties first, then "
        "sequence "
        "ids, then ranges.",
        derived="5 MiB, as in the proposal; no limit in bytes when managedLedgerMaxUnackedRangesToPersist "
        "differs from its default, so that the number of ranges decides, as in the releases",
        interplay="When both are set, managedLedgerMaxUnackedRangesToPersist has no effect.",
        origin=PIP_299,
    ),
    Setting(
        key="dispatcherPauseOnAckStatePersistentEnabled",
        kind=bool,
        default=False,
        dynamic=True,
        meaning="Whether delivery, that of delayed messages included, pauses while a cursor's "
        "acknowledgements cannot be stored whole.",
        interplay="The proposal calls it dispatcherPauseOnAckPersistentStateEnabled and has it on. What can "
        "be stored, the limits above say.",
        other_keys=("dispatcherPauseOnAckPersistentStateEnabled",),
    ),
    Setting(
        key="managedLedgerCursorPositionFlushSeconds",
        kind=int,
        default=60,
        unit="s",
        low=1,
        high=INT_MAX,
        meaning="The time between two flushes of cursors that have something that is not stored.",
        interplay="Stores what managedLedgerDefaultMarkDeleteRateLimit put off, and acknowledgements behind "
        "the mark-delete position.",
    ),
    Setting(
        key="managedLedgerDefaultMarkDeleteRateLimit",
        kind=float,
        default=1.0,
        unit="per second",
        low=0.0,
        high=1_000_000.0,
        meaning="How often a cursor stores its mark-delete position when it moves; 0: always.",
        interplay="What it puts off is stored within managedLedgerCursorPositionFlushSeconds.",
    ),
)

DELAYED_DELIVERY = (
    Setting(
        key="delayedDeliveryTickTimeMillis",
        kind=int,
        default=1000,
        unit="ms",
        low=0,
        high=LONG_MAX // 1_000_000,
        meaning="The step of the delayed-delivery clock.",
        interplay="Buckets are as wide as the largest power of two not above it.",
    ),
    Setting(
        key="isDelayedDeliveryDeliverAtTimeStrict",
        kind=bool,
        default=False,
        meaning="Whether no message is delivered before its time; otherwise up to one tick early.",
    ),
    Setting(
        key="delayedDeliveryFixedDelayDetectionLookahead",
        kind=int,
        default=50000,
        unit="messages",
        low=0,
        high=LONG_MAX,
        meaning="With so many messages of one fixed delay in line, reading ahead pauses; 0: never.",
    ),
    Setting(
        key="delayedDeliveryMaxDelayInMillis",
        kind=int,
        default=0,
        unit="ms",
        low=0,
        high=LONG_MAX // 1_000_000,
        meaning="The longest delay a producer may ask for; 0: any.",
    ),
    Setting(
        key="delayedDeliveryPruneMinIntervalMillis",
        kind=int,
        default=0,
        unit="ms",
        low=0,
        high=LONG_MAX // 1_000_000,
        meaning="The least time between two prunings of a topic's index; 0: the tick, but 5 to 50 ms.",
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
        meaning="The share of a topic's subscriptions that must have something due for the timer to prune.",
        origin=PIP_448,
    ),
    Setting(
        key="delayedDeliveryTopicManagerIdleMillis",
        kind=int,
        default=0,
        unit="ms",
        low=0,
        high=LONG_MAX // 1_000_000,
        meaning="How long a topic's index stays after its last subscription left; 0: not at all.",
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
# Also by the other keys.
BY_ANY_KEY = BY_KEY | {other: setting for setting in SETTINGS for other in setting.other_keys}
