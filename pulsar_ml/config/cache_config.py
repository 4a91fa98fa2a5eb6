"""The settings of a cache as one value."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from pulsar_ml.config.setting import Value
from pulsar_ml.config.settings import BY_KEY, EVICTION_TRIGGER, LEAST_DERIVED_SIZE, SETTINGS
from pulsar_ml.errors import ConfigError

MB = 2**20
MOST_ACK_STATE = 5 * MB


def given(key: str) -> Any:
    """A field with the default of that setting."""
    return field(default=BY_KEY[key].default)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheConfig:
    """Values of all settings; :data:`SETTINGS` says what each means.

    None stands for a value that is derived from others; the properties answer the derived one. Making one
    checks each value and what they are to each other: ConfigError names everything that is wrong.
    """

    cache_size_mb: int | None = given("managedLedgerCacheSizeMB")
    cache_copy_entries: bool = given("managedLedgerCacheCopyEntries")
    cache_eviction_watermark: float = given("managedLedgerCacheEvictionWatermark")
    cache_eviction_interval_ms: int = given("managedLedgerCacheEvictionIntervalMs")
    cache_eviction_frequency: float = given("managedLedgerCacheEvictionFrequency")
    cache_eviction_time_threshold_millis: int = given(
        "managedLedgerCacheEvictionTimeThresholdMillis"
    )
    cache_eviction_by_expected_read_count: bool = given("cacheEvictionByExpectedReadCount")
    cache_eviction_by_mark_deleted_position: bool = given("cacheEvictionByMarkDeletedPosition")
    cache_eviction_extend_ttl_of_entries_with_remaining_expected_reads_max_times: int = given(
        "managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes"
    )
    cache_eviction_extend_ttl_of_recently_accessed: bool = given(
        "managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed"
    )
    cache_eviction_time_threshold_millis_max: int = given(
        "managedLedgerCacheEvictionTimeThresholdMillisMax"
    )
    cache_eviction_policy_name: str = given("managedLedgerCacheEvictionPolicyName")
    continue_caching_added_entries_after_last_active_cursor_leaves_millis: int | None = given(
        "managedLedgerContinueCachingAddedEntriesAfterLastActiveCursorLeavesMillis"
    )
    cursor_backlogged_threshold: int = given("managedLedgerCursorBackloggedThreshold")
    minimum_backlog_cursors_for_caching: int = given("managedLedgerMinimumBacklogCursorsForCaching")
    minimum_backlog_entries_for_caching: int = given("managedLedgerMinimumBacklogEntriesForCaching")
    max_backlog_between_cursors_for_caching: int = given(
        "managedLedgerMaxBacklogBetweenCursorsForCaching"
    )
    max_reads_in_flight_size_in_mb: int = given("managedLedgerMaxReadsInFlightSizeInMB")
    max_reads_in_flight_permits_acquire_timeout_millis: int = given(
        "managedLedgerMaxReadsInFlightPermitsAcquireTimeoutMillis"
    )
    max_reads_in_flight_permits_acquire_queue_size: int = given(
        "managedLedgerMaxReadsInFlightPermitsAcquireQueueSize"
    )
    broker_adaptive_recv_byte_buf_allocator_minimum_size: int = given(
        "brokerAdaptiveRecvByteBufAllocatorMinimumSize"
    )
    broker_adaptive_recv_byte_buf_allocator_initial_size: int = given(
        "brokerAdaptiveRecvByteBufAllocatorInitialSize"
    )
    broker_adaptive_recv_byte_buf_allocator_maximum_size: int = given(
        "brokerAdaptiveRecvByteBufAllocatorMaximumSize"
    )
    max_unacked_ranges_to_persist: int = given("managedLedgerMaxUnackedRangesToPersist")
    max_batch_deleted_index_to_persist: int = given("managedLedgerMaxBatchDeletedIndexToPersist")
    max_unacked_ranges_to_persist_in_metadata_store: int = given(
        "managedLedgerMaxUnackedRangesToPersistInMetadataStore"
    )
    max_ack_state_in_bytes_to_persist: int | None = given(
        "managedLedgerMaxAckStateInBytesToPersist"
    )
    dispatcher_pause_on_ack_state_persistent_enabled: bool = given(
        "dispatcherPauseOnAckStatePersistentEnabled"
    )
    cursor_position_flush_seconds: int = given("managedLedgerCursorPositionFlushSeconds")
    default_mark_delete_rate_limit: float = given("managedLedgerDefaultMarkDeleteRateLimit")
    delayed_delivery_tick_time_millis: int = given("delayedDeliveryTickTimeMillis")
    is_delayed_delivery_deliver_at_time_strict: bool = given("isDelayedDeliveryDeliverAtTimeStrict")
    delayed_delivery_fixed_delay_detection_lookahead: int = given(
        "delayedDeliveryFixedDelayDetectionLookahead"
    )
    delayed_delivery_max_delay_in_millis: int = given("delayedDeliveryMaxDelayInMillis")
    delayed_delivery_prune_min_interval_millis: int = given("delayedDeliveryPruneMinIntervalMillis")
    delayed_delivery_prune_eligible_ratio: float = given("delayedDeliveryPruneEligibleRatio")
    delayed_delivery_topic_manager_idle_millis: int = given("delayedDeliveryTopicManagerIdleMillis")

    def __post_init__(self) -> None:
        wrong = []
        for setting in SETTINGS:
            try:
                object.__setattr__(self, setting.name, setting.checked(getattr(self, setting.name)))
            except ValueError as error:
                wrong.append(str(error))
        if not wrong:
            values = {setting.name: getattr(self, setting.name) for setting in SETTINGS}
            wrong = [message for _, message in disagreements(values)]
        if wrong:
            raise ConfigError("; ".join(wrong))

    # Values that are derived or joined from several settings --------------------------------------

    def cache_size_bytes(self, *, memory: int | None = None) -> int:
        """The size of the cache in bytes; ``memory`` is what a derived one is a fifth of (default: ours)."""
        if self.cache_size_mb is not None:
            return self.cache_size_mb * MB
        return (
            max(
                LEAST_DERIVED_SIZE,
                usable_memory() // 5 // MB if memory is None else memory // 5 // MB,
            )
            * MB
        )

    @property
    def cache_enabled(self) -> bool:
        return self.cache_size_mb != 0

    @property
    def eviction_interval_millis(self) -> int:
        """Milliseconds between two runs of the eviction task, from either of the two keys; at least 1."""
        if self.cache_eviction_frequency > 0:
            return max(1, int(min(1000 / self.cache_eviction_frequency, 2**53)))
        return self.cache_eviction_interval_ms

    @property
    def continue_caching_millis(self) -> int:
        """Milliseconds for which added entries are cached while no cursor is active."""
        if not self.cache_eviction_by_expected_read_count:
            return 0
        grace = self.continue_caching_added_entries_after_last_active_cursor_leaves_millis
        return 2 * self.cache_eviction_time_threshold_millis if grace is None else grace

    @property
    def expected_reads_threshold_millis(self) -> int:
        """Milliseconds that the stash policy keeps an entry whose reads are expected."""
        return max(
            self.cache_eviction_time_threshold_millis, self.cache_eviction_time_threshold_millis_max
        )

    @property
    def evicts_by_mark_deleted_position(self) -> bool:
        return (
            self.cache_eviction_by_mark_deleted_position
            and not self.cache_eviction_by_expected_read_count
        )

    @property
    def ack_state_bytes_to_persist(self) -> int | None:
        """Bytes of a cursor's state that are stored; None: the number of ranges decides."""
        if self.max_ack_state_in_bytes_to_persist is not None:
            return self.max_ack_state_in_bytes_to_persist
        ranges = BY_KEY["managedLedgerMaxUnackedRangesToPersist"]
        return MOST_ACK_STATE if self.max_unacked_ranges_to_persist == ranges.default else None

    @property
    def delayed_delivery_prune_interval_millis(self) -> int:
        """Milliseconds between two prunings, derived from the tick when the setting is 0."""
        least = self.delayed_delivery_prune_min_interval_millis
        return least or min(max(self.delayed_delivery_tick_time_millis, 5), 50)

    def manager_keywords(self) -> dict[str, Any]:
        """The keywords with which an EntryCacheManager is made of this."""
        return {
            **self.dynamic_manager_keywords(),
            "eviction_interval_ms": self.eviction_interval_millis,
            "policy": self.cache_eviction_policy_name,
            "copy_entries": self.cache_copy_entries,
        }

    def dynamic_manager_keywords(self) -> dict[str, Any]:
        """The keywords of EntryCacheManager.configure, for settings that change while it runs.

        Without cacheEvictionByExpectedReadCount expected reads extend nothing.
        """
        extensions = (
            self.cache_eviction_extend_ttl_of_entries_with_remaining_expected_reads_max_times
        )
        return {
            "max_size": self.cache_size_bytes(),
            "watermark": self.cache_eviction_watermark,
            "time_threshold_ms": self.cache_eviction_time_threshold_millis,
            "time_threshold_max_ms": self.expected_reads_threshold_millis,
            "max_requeue_count": extensions if self.cache_eviction_by_expected_read_count else 0,
            "extend_ttl_of_recently_accessed": self.cache_eviction_extend_ttl_of_recently_accessed,
        }

    def ledger_keywords(self) -> dict[str, Any]:
        """The keywords of a LedgerSettings made of this."""
        return {
            "cache_eviction_by_expected_read_count": self.cache_eviction_by_expected_read_count,
            "cache_eviction_by_mark_deleted_position": self.evicts_by_mark_deleted_position,
            "continue_caching_added_entries_after_last_active_cursor_leaves_millis": (
                self.continue_caching_millis
            ),
            "managed_ledger_cursor_backlogged_threshold": self.cursor_backlogged_threshold,
            "managed_ledger_max_unacked_ranges_to_persist": self.max_unacked_ranges_to_persist,
            "managed_ledger_max_batch_deleted_index_to_persist": self.max_batch_deleted_index_to_persist,
            "managed_ledger_max_unacked_ranges_to_persist_in_metadata_store": (
                self.max_unacked_ranges_to_persist_in_metadata_store
            ),
            "managed_ledger_max_ack_state_in_bytes_to_persist": self.ack_state_bytes_to_persist,
            "dispatcher_pause_on_ack_state_persistent_enabled": (
                self.dispatcher_pause_on_ack_state_persistent_enabled
            ),
            "managed_ledger_cursor_position_flush_seconds": self.cursor_position_flush_seconds,
            "managed_ledger_default_mark_delete_rate_limit": self.default_mark_delete_rate_limit,
        }

    def factory_keywords(self) -> dict[str, Any]:
        """The keywords of a ManagedLedgerFactory made of this, beside its settings."""
        return {
            "max_reads_in_flight_bytes": self.max_reads_in_flight_size_in_mb * MB,
            "acquire_timeout_millis": self.max_reads_in_flight_permits_acquire_timeout_millis,
            "acquire_queue_size": self.max_reads_in_flight_permits_acquire_queue_size,
        }

    # Changes --------------------------------------------------------------------------------------

    def replace(self, **changes: Value) -> CacheConfig:
        """Another one with these values. ConfigError also for a name that is no setting."""
        check_names(changes)
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    def diff(self, other: CacheConfig) -> tuple[Change, ...]:
        """What is different in ``other``, in the order of the settings."""
        return tuple(
            Change(
                setting.key,
                getattr(self, setting.name),
                getattr(other, setting.name),
                setting.dynamic,
            )
            for setting in SETTINGS
            if getattr(self, setting.name) != getattr(other, setting.name)
        )


@dataclass(frozen=True, slots=True)
class Change:
    """One setting that differs; ``dynamic`` when a running cache takes it over."""

    key: str
    old: Value
    new: Value
    dynamic: bool


def check_names(names: Iterable[str]) -> None:
    known = {setting.name for setting in SETTINGS}
    for name in names:
        if name not in known:
            raise ConfigError(f"no setting {name!r}; the settings are: {', '.join(sorted(known))}")


def disagreements(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is wrong between values (by attribute) that are each allowed: the key at fault and a message."""
    found = []
    for key, least in (
        (
            "brokerAdaptiveRecvByteBufAllocatorInitialSize",
            "brokerAdaptiveRecvByteBufAllocatorMinimumSize",
        ),
        (
            "brokerAdaptiveRecvByteBufAllocatorMaximumSize",
            "brokerAdaptiveRecvByteBufAllocatorInitialSize",
        ),
    ):
        value, bound = values[BY_KEY[key].name], values[BY_KEY[least].name]
        if value < bound:
            found.append(
                (key, f"{key} cannot be {value}; it is at least {least}, which is {bound}")
            )
    return found


def without_effect(config: CacheConfig) -> dict[str, str]:
    """Key -> why it does nothing, for settings that were changed and that others make ineffective."""
    found: dict[str, str] = {}

    def ignored(reason: str, *keys: str) -> None:
        for key in keys:
            if getattr(config, BY_KEY[key].name) != BY_KEY[key].default:
                found.setdefault(key, reason)

    if not config.cache_enabled:
        ignored(
            "managedLedgerCacheSizeMB=0 disables the caches",
            *(setting.key for setting in SETTINGS if "acheEviction" in setting.key),
            "managedLedgerCacheCopyEntries",
        )
    if config.cache_eviction_by_expected_read_count:
        ignored(
            "cacheEvictionByExpectedReadCount is on",
            "cacheEvictionByMarkDeletedPosition",
            "managedLedgerCursorBackloggedThreshold",
            "managedLedgerMinimumBacklogCursorsForCaching",
            "managedLedgerMinimumBacklogEntriesForCaching",
            "managedLedgerMaxBacklogBetweenCursorsForCaching",
        )
    else:
        ignored(
            "cacheEvictionByExpectedReadCount is off",
            "managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes",
            "managedLedgerCacheEvictionTimeThresholdMillisMax",
            "managedLedgerContinueCachingAddedEntriesAfterLastActiveCursorLeavesMillis",
        )
    if config.cache_eviction_frequency > 0:
        ignored(
            "managedLedgerCacheEvictionFrequency is set", "managedLedgerCacheEvictionIntervalMs"
        )
    if config.max_reads_in_flight_size_in_mb == 0:
        ignored(
            "managedLedgerMaxReadsInFlightSizeInMB is 0",
            "managedLedgerMaxReadsInFlightPermitsAcquireTimeoutMillis",
            "managedLedgerMaxReadsInFlightPermitsAcquireQueueSize",
        )
    if config.max_ack_state_in_bytes_to_persist is not None:
        ignored(
            "managedLedgerMaxAckStateInBytesToPersist is set",
            "managedLedgerMaxUnackedRangesToPersist",
        )
    if config.cache_eviction_watermark >= EVICTION_TRIGGER:
        found["managedLedgerCacheEvictionWatermark"] = (
            f"a size pass starts above {EVICTION_TRIGGER} of the size and frees next to nothing"
        )
    return found


def usable_memory() -> int:
    """Bytes this process may use: the machine's, or its control group's when that is less.

    It takes the place of the JVM's direct memory, which no setting bounds here.
    """
    limits = [psutil.virtual_memory().total]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(path).read_text()))
        except (OSError, ValueError):  # no control group, or "max"
            continue
    return min(limits)
