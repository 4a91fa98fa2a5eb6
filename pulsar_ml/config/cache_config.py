"""CacheConfig: all settings of a cache as one immutable value."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from pulsar_ml.config.cache_settings import EVICTION_TRIGGER, MIN_DERIVED_MB
from pulsar_ml.config.setting import Value
from pulsar_ml.config.settings import BY_KEY, SETTINGS
from pulsar_ml.errors import ConfigError

MB = 2**20
MAX_ACK_STATE = 5 * MB


def default_of(key: str) -> Any:
    """A dataclass field with the default of a setting."""
    return field(default=BY_KEY[key].default)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheConfig:
    """The values of all settings; :data:`SETTINGS` describes each setting.

    None stands for a value that is derived from other settings; see :meth:`effective`. The
    constructor checks each value and their relations, and raises ConfigError with all errors.
    """

    cache_size_mb: int | None = default_of("managedLedgerCacheSizeMB")
    cache_copy_entries: bool = default_of("managedLedgerCacheCopyEntries")
    cache_eviction_watermark: float = default_of("managedLedgerCacheEvictionWatermark")
    cache_eviction_interval_ms: int = default_of("managedLedgerCacheEvictionIntervalMs")
    cache_eviction_frequency: float = default_of("managedLedgerCacheEvictionFrequency")
    cache_eviction_time_threshold_millis: int = default_of(
        "managedLedgerCacheEvictionTimeThresholdMillis"
    )
    cache_eviction_by_expected_read_count: bool = default_of("cacheEvictionByExpectedReadCount")
    cache_eviction_by_mark_deleted_position: bool = default_of("cacheEvictionByMarkDeletedPosition")
    cache_eviction_extend_ttl_of_entries_with_remaining_expected_reads_max_times: int = default_of(
        "managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes"
    )
    cache_eviction_extend_ttl_of_recently_accessed: bool = default_of(
        "managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed"
    )
    cache_eviction_time_threshold_millis_max: int = default_of(
        "managedLedgerCacheEvictionTimeThresholdMillisMax"
    )
    cache_eviction_policy_name: str = default_of("managedLedgerCacheEvictionPolicyName")
    continue_caching_added_entries_after_last_active_cursor_leaves_millis: int | None = default_of(
        "managedLedgerContinueCachingAddedEntriesAfterLastActiveCursorLeavesMillis"
    )
    cursor_backlogged_threshold: int = default_of("managedLedgerCursorBackloggedThreshold")
    minimum_backlog_cursors_for_caching: int = default_of(
        "managedLedgerMinimumBacklogCursorsForCaching"
    )
    minimum_backlog_entries_for_caching: int = default_of(
        "managedLedgerMinimumBacklogEntriesForCaching"
    )
    max_backlog_between_cursors_for_caching: int = default_of(
        "managedLedgerMaxBacklogBetweenCursorsForCaching"
    )
    max_reads_in_flight_size_in_mb: int = default_of("managedLedgerMaxReadsInFlightSizeInMB")
    max_reads_in_flight_permits_acquire_timeout_millis: int = default_of(
        "managedLedgerMaxReadsInFlightPermitsAcquireTimeoutMillis"
    )
    max_reads_in_flight_permits_acquire_queue_size: int = default_of(
        "managedLedgerMaxReadsInFlightPermitsAcquireQueueSize"
    )
    broker_adaptive_recv_byte_buf_allocator_minimum_size: int = default_of(
        "brokerAdaptiveRecvByteBufAllocatorMinimumSize"
    )
    broker_adaptive_recv_byte_buf_allocator_initial_size: int = default_of(
        "brokerAdaptiveRecvByteBufAllocatorInitialSize"
    )
    broker_adaptive_recv_byte_buf_allocator_maximum_size: int = default_of(
        "brokerAdaptiveRecvByteBufAllocatorMaximumSize"
    )
    max_unacked_ranges_to_persist: int = default_of("managedLedgerMaxUnackedRangesToPersist")
    max_batch_deleted_index_to_persist: int = default_of(
        "managedLedgerMaxBatchDeletedIndexToPersist"
    )
    max_unacked_ranges_to_persist_in_metadata_store: int = default_of(
        "managedLedgerMaxUnackedRangesToPersistInMetadataStore"
    )
    max_ack_state_in_bytes_to_persist: int | None = default_of(
        "managedLedgerMaxAckStateInBytesToPersist"
    )
    dispatcher_pause_on_ack_state_persistent_enabled: bool = default_of(
        "dispatcherPauseOnAckStatePersistentEnabled"
    )
    cursor_position_flush_seconds: int = default_of("managedLedgerCursorPositionFlushSeconds")
    default_mark_delete_rate_limit: float = default_of("managedLedgerDefaultMarkDeleteRateLimit")
    delayed_delivery_tick_time_millis: int = default_of("delayedDeliveryTickTimeMillis")
    is_delayed_delivery_deliver_at_time_strict: bool = default_of(
        "isDelayedDeliveryDeliverAtTimeStrict"
    )
    delayed_delivery_fixed_delay_detection_lookahead: int = default_of(
        "delayedDeliveryFixedDelayDetectionLookahead"
    )
    delayed_delivery_max_delay_in_millis: int = default_of("delayedDeliveryMaxDelayInMillis")
    delayed_delivery_prune_min_interval_millis: int = default_of(
        "delayedDeliveryPruneMinIntervalMillis"
    )
    delayed_delivery_prune_eligible_ratio: float = default_of("delayedDeliveryPruneEligibleRatio")
    delayed_delivery_topic_manager_idle_millis: int = default_of(
        "delayedDeliveryTopicManagerIdleMillis"
    )

    def __post_init__(self) -> None:
        errors = []
        for setting in SETTINGS:
            try:
                object.__setattr__(self, setting.name, setting.checked(getattr(self, setting.name)))
            except ValueError as error:
                errors.append(str(error))
        if not errors:
            values = {setting.name: getattr(self, setting.name) for setting in SETTINGS}
            errors = [message for _, message in conflicts(values)]
        if errors:
            raise ConfigError("; ".join(errors))

    # Derived values -------------------------------------------------------------------------------

    def effective(self, key: str) -> Value:
        """The value of a setting that holds, by its key; None: no limit.

        It differs from the setting where another one replaces it, and where the setting is None or
        a 0 that stands for a derived value.
        """
        setting = BY_KEY[key]
        derived: dict[str, Callable[[], Value]] = {
            "cache_size_mb": lambda: self.cache_size_bytes() // MB,
            "max_ack_state_in_bytes_to_persist": lambda: self.ack_state_bytes_to_persist,
        }
        always: dict[str, Callable[[], Value]] = {
            "cache_eviction_interval_ms": lambda: self.eviction_interval_ms,
            "cache_eviction_by_mark_deleted_position": lambda: self.evicts_by_mark_deleted_position,
            "cache_eviction_extend_ttl_of_entries_with_remaining_expected_reads_max_times": (
                lambda: self.max_requeue_count
            ),
            "cache_eviction_time_threshold_millis_max": lambda: self.expected_reads_threshold_ms,
            "continue_caching_added_entries_after_last_active_cursor_leaves_millis": (
                lambda: self.continue_caching_ms
            ),
            "delayed_delivery_prune_min_interval_millis": (
                lambda: self.delayed_delivery_prune_interval_ms
            ),
        }
        value: Value = getattr(self, setting.name)
        if setting.name in always:
            return always[setting.name]()
        return derived[setting.name]() if value is None else value

    def cache_size_bytes(self, *, memory: int | None = None) -> int:
        """The size of the cache in bytes, by default a fifth of ``memory`` (of usable_memory())."""
        if self.cache_size_mb is not None:
            return self.cache_size_mb * MB
        available = usable_memory() if memory is None else memory
        return max(MIN_DERIVED_MB, available // 5 // MB) * MB

    @property
    def cache_enabled(self) -> bool:
        return self.cache_size_mb != 0

    @property
    def eviction_interval_ms(self) -> int:
        """Milliseconds between two runs of the eviction task, at least 1, from one of two keys."""
        if self.cache_eviction_frequency > 0:
            return max(1, int(min(1000 / self.cache_eviction_frequency, 2**53)))
        return self.cache_eviction_interval_ms

    @property
    def continue_caching_ms(self) -> int:
        """Milliseconds for which new entries are cached while no cursor is active."""
        if not self.cache_eviction_by_expected_read_count:
            return 0
        grace = self.continue_caching_added_entries_after_last_active_cursor_leaves_millis
        return 2 * self.cache_eviction_time_threshold_millis if grace is None else grace

    @property
    def expected_reads_threshold_ms(self) -> int:
        """Milliseconds for which the stash policy keeps an entry with expected reads."""
        return max(
            self.cache_eviction_time_threshold_millis, self.cache_eviction_time_threshold_millis_max
        )

    @property
    def max_requeue_count(self) -> int:
        """The most times that a pass keeps an entry with remaining expected reads."""
        if not self.cache_eviction_by_expected_read_count:
            return 0
        return self.cache_eviction_extend_ttl_of_entries_with_remaining_expected_reads_max_times

    @property
    def evicts_by_mark_deleted_position(self) -> bool:
        return (
            self.cache_eviction_by_mark_deleted_position
            and not self.cache_eviction_by_expected_read_count
        )

    @property
    def ack_state_bytes_to_persist(self) -> int | None:
        """The most bytes stored of a cursor's state; None: the number of ranges decides."""
        if self.max_ack_state_in_bytes_to_persist is not None:
            return self.max_ack_state_in_bytes_to_persist
        ranges = BY_KEY["managedLedgerMaxUnackedRangesToPersist"]
        return MAX_ACK_STATE if self.max_unacked_ranges_to_persist == ranges.default else None

    @property
    def delayed_delivery_prune_interval_ms(self) -> int:
        """Milliseconds between two prunings, derived from the tick when the setting is 0."""
        least = self.delayed_delivery_prune_min_interval_millis
        return least or min(max(self.delayed_delivery_tick_time_millis, 5), 50)

    def manager_keywords(self) -> dict[str, Any]:
        """Keyword arguments of EntryCacheManager."""
        return {
            **self.dynamic_manager_keywords(),
            "eviction_interval_ms": self.eviction_interval_ms,
            "policy": self.cache_eviction_policy_name,
            "copy_entries": self.cache_copy_entries,
        }

    def dynamic_manager_keywords(self) -> dict[str, Any]:
        """Keyword arguments of EntryCacheManager.configure, for the settings that may change.

        Without cacheEvictionByExpectedReadCount, expected reads do not extend the time to live.
        """
        return {
            "max_size": self.cache_size_bytes(),
            "watermark": self.cache_eviction_watermark,
            "time_threshold_ms": self.cache_eviction_time_threshold_millis,
            "time_threshold_max_ms": self.expected_reads_threshold_ms,
            "max_requeue_count": self.max_requeue_count,
            "extend_ttl_of_recently_accessed": self.cache_eviction_extend_ttl_of_recently_accessed,
        }

    def ledger_keywords(self) -> dict[str, Any]:
        """Keyword arguments of LedgerSettings."""
        return {
            "cache_eviction_by_expected_read_count": self.cache_eviction_by_expected_read_count,
            "cache_eviction_by_mark_deleted_position": self.evicts_by_mark_deleted_position,
            "continue_caching_added_entries_after_last_active_cursor_leaves_millis": (
                self.continue_caching_ms
            ),
            "managed_ledger_cursor_backlogged_threshold": self.cursor_backlogged_threshold,
            "managed_ledger_minimum_backlog_cursors_for_caching": (
                self.minimum_backlog_cursors_for_caching
            ),
            "managed_ledger_minimum_backlog_entries_for_caching": (
                self.minimum_backlog_entries_for_caching
            ),
            "managed_ledger_max_backlog_between_cursors_for_caching": (
                self.max_backlog_between_cursors_for_caching
            ),
            "delayed_delivery_max_delay_in_millis": self.delayed_delivery_max_delay_in_millis,
            "managed_ledger_max_unacked_ranges_to_persist": self.max_unacked_ranges_to_persist,
            "managed_ledger_max_batch_deleted_index_to_persist": (
                self.max_batch_deleted_index_to_persist
            ),
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
        """Keyword arguments of ManagedLedgerFactory, except its settings."""
        return {
            "max_reads_in_flight_bytes": self.max_reads_in_flight_size_in_mb * MB,
            "acquire_timeout_ms": self.max_reads_in_flight_permits_acquire_timeout_millis,
            "acquire_queue_size": self.max_reads_in_flight_permits_acquire_queue_size,
        }

    def delayed_keywords(self) -> dict[str, Any]:
        """Keyword arguments of InMemoryDelayedDeliveryTrackerFactory."""
        return {
            "tick_time_ms": self.delayed_delivery_tick_time_millis,
            "strict": self.is_delayed_delivery_deliver_at_time_strict,
            "fixed_delay_detection_lookahead": self.delayed_delivery_fixed_delay_detection_lookahead,
            "prune_interval_ms": self.delayed_delivery_prune_interval_ms,
            "prune_eligible_ratio": self.delayed_delivery_prune_eligible_ratio,
            "topic_manager_idle_ms": self.delayed_delivery_topic_manager_idle_millis,
        }

    def receive_buffer_keywords(self) -> dict[str, Any]:
        """Keyword arguments of ReceiveBufferSize."""
        return {
            "minimum": self.broker_adaptive_recv_byte_buf_allocator_minimum_size,
            "initial": self.broker_adaptive_recv_byte_buf_allocator_initial_size,
            "maximum": self.broker_adaptive_recv_byte_buf_allocator_maximum_size,
        }

    # Changes --------------------------------------------------------------------------------------

    def replace(self, **changes: Value) -> CacheConfig:
        """A copy with changed values. Raises ConfigError for bad values and unknown names."""
        check_names(changes)
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    def diff(self, other: CacheConfig) -> tuple[Change, ...]:
        """The settings that differ in ``other``, in the order of SETTINGS."""
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
    """A setting that differs; ``dynamic`` is true when a running cache can take it over."""

    key: str
    old: Value
    new: Value
    dynamic: bool


def check_names(names: Iterable[str]) -> None:
    known = {setting.name for setting in SETTINGS}
    for name in names:
        if name not in known:
            raise ConfigError(f"no setting {name!r}; the settings are {', '.join(sorted(known))}")


def conflicts(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Contradictions between valid values (by attribute), as (key, message)."""
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
            found.append((key, f"{key} cannot be {value}; use at least {least}, which is {bound}"))
    return found


def without_effect(config: CacheConfig) -> dict[str, str]:
    """The changed settings that have no effect, as key -> the reason."""
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
    if config.max_reads_in_flight_size_in_mb <= 0:
        ignored(
            "managedLedgerMaxReadsInFlightSizeInMB is 0 or less",
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
    """Bytes that this process may use: the limit of the machine or of its control group.

    The default cache size is a share of this figure, as Pulsar's is of the JVM's direct memory.
    """
    limits: list[int] = [psutil.virtual_memory().total]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(path).read_text()))
        except (OSError, ValueError):  # no control group, or "max"
            continue
    return min(limits)
