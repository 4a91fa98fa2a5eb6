"""Settings of the cache: its size, eviction, backlogged cursors, and reads in flight."""

from __future__ import annotations

from pulsar_ml._core import EVICTION_POLICIES
from pulsar_ml.config.setting import MAX_INT, MAX_LONG, OURS, PIP_430_FIRST, Setting

# The share of the cache size above which a size pass starts; fixed in Pulsar, too.
EVICTION_TRIGGER = 0.98
# The smallest derived cache size in MB.
MIN_DERIVED_MB = 64

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
        choices=tuple(EVICTION_POLICIES),
        meaning="The policy that selects the entries to evict.",
        interplay="managedLedgerCacheEvictionTimeThresholdMillisMax belongs to stash_queue and "
        "priority_queue.",
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
        meaning=(
            "The number of other cursors with a similar backlog at which the reads of a backlogged "
            "cursor are cached; 0: never."
        ),
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
        meaning="The largest difference of two backlogs that are similar.",
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
        low=-(MAX_LONG // 2**20),
        high=MAX_LONG // 2**20,
        meaning=(
            "Bytes that reads may have in flight until they are delivered; 0 or less: no limit."
        ),
        interplay=(
            "Pulsar 5.0 derives its default: 15 % of direct memory, at least 5 MB. The estimate "
            "of a read is entries x (average + 64) bytes; a read above the limit "
            "waits until nothing else is in flight."
        ),
    ),
    Setting(
        key="managedLedgerMaxReadsInFlightPermitsAcquireTimeoutMillis",
        kind=int,
        default=60000,
        unit="ms",
        low=-(MAX_LONG // 1_000_000),
        high=MAX_LONG // 1_000_000,
        meaning=(
            "The longest time that a read waits for its share of the limit; 0 or less: no end."
        ),
        interplay="No effect when managedLedgerMaxReadsInFlightSizeInMB is 0 or less.",
    ),
    Setting(
        key="managedLedgerMaxReadsInFlightPermitsAcquireQueueSize",
        kind=int,
        default=10000,
        unit="requests",
        low=0,
        high=MAX_INT,
        meaning="Reads that may wait for the limit; the next one fails at once.",
        interplay="No effect when managedLedgerMaxReadsInFlightSizeInMB is 0 or less.",
    ),
)
