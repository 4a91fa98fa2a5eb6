"""Settings of a managed ledger, under Pulsar's names in Python spelling."""

from __future__ import annotations

from dataclasses import dataclass, fields

from pulsar_ml.errors import UsageError

MOST_BYTES = 5 * 2**20
LEAST = {
    "managed_ledger_max_entries_per_ledger": 1,
    "managed_ledger_max_ack_state_in_bytes_to_persist": 1024,
    "managed_ledger_cursor_position_flush_seconds": 1,
}
# By annotation. A truth value counts as a number, as everywhere in Python.
TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "int | None": (int, type(None)),
    "float": (int, float),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSettings:
    """The settings of one managed ledger. Raises UsageError for a value out of range.

    Attributes:
        cache_eviction_by_expected_read_count: cache entries with their number of expected reads and
            leave eviction to the manager. Else cursors invalidate entries that all of them passed.
        cache_eviction_by_mark_deleted_position: without expected reads: invalidate entries that all
            cursors mark-deleted, instead of entries that all cursors read.
        continue_caching_added_entries_after_last_active_cursor_leaves_millis: milliseconds.
        managed_ledger_max_entries_per_ledger: entries after which a new ledger begins.
        managed_ledger_cursor_backlogged_threshold: without expected reads: a cursor with more
            unread entries is not active.
        managed_ledger_minimum_backlog_cursors_for_caching: without expected reads: the entries that
            a durable cursor reads from storage are cached when so many other durable cursors have
            a backlog like its own, whether they are active or not; 0: for active cursors only.
        managed_ledger_minimum_backlog_entries_for_caching: the least backlog of such a cursor.
        managed_ledger_max_backlog_between_cursors_for_caching: the largest difference of two
            backlogs that are alike.
        delayed_delivery_max_delay_in_millis: the longest delay of a new entry; 0: no limit.
        managed_ledger_max_unacked_ranges_to_persist: most stored ranges of acknowledged entries.
        managed_ledger_max_batch_deleted_index_to_persist: most stored partly acknowledged batches.
        managed_ledger_max_unacked_ranges_to_persist_in_metadata_store: most ranges stored in the
            metadata store, the fallback when no ledger accepts them.
        managed_ledger_max_ack_state_in_bytes_to_persist: bytes, 1 KiB to 5 MiB; replaces the limit
            on ranges. None: no limit on bytes.
        managed_ledger_cursor_position_flush_seconds: seconds between two flushes of unsaved
            cursors.
        managed_ledger_default_mark_delete_rate_limit: most writes of a cursor's mark-delete
            position in a second; 0: no limit. A flush writes positions that the limit held back.
        dispatcher_pause_on_ack_state_persistent_enabled: see ManagedCursor.may_dispatch.
        managed_ledger_read_entry_timeout_millis: milliseconds until a storage read fails; 0: never.
    """

    cache_eviction_by_expected_read_count: bool = True
    cache_eviction_by_mark_deleted_position: bool = False
    continue_caching_added_entries_after_last_active_cursor_leaves_millis: int = 2000
    managed_ledger_max_entries_per_ledger: int = 50_000
    managed_ledger_cursor_backlogged_threshold: int = 1000
    managed_ledger_minimum_backlog_cursors_for_caching: int = 0
    managed_ledger_minimum_backlog_entries_for_caching: int = 1000
    managed_ledger_max_backlog_between_cursors_for_caching: int = 1000
    delayed_delivery_max_delay_in_millis: int = 0
    managed_ledger_read_entry_timeout_millis: int = 0
    managed_ledger_max_unacked_ranges_to_persist: int = 10_000
    managed_ledger_max_batch_deleted_index_to_persist: int = 10_000
    managed_ledger_max_unacked_ranges_to_persist_in_metadata_store: int = 1000
    managed_ledger_max_ack_state_in_bytes_to_persist: int | None = MOST_BYTES
    managed_ledger_cursor_position_flush_seconds: int = 60
    managed_ledger_default_mark_delete_rate_limit: float = 1.0
    dispatcher_pause_on_ack_state_persistent_enabled: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, TYPES[str(field.type)]):
                raise UsageError(f"{field.name}={value!r} is not valid; use {field.type}")
            least = LEAST.get(field.name, 0)
            if isinstance(value, int | float) and value < least:
                raise UsageError(f"{field.name}={value!r} is too small; use {least} or more")
        most = self.managed_ledger_max_ack_state_in_bytes_to_persist
        if most is not None and most > MOST_BYTES:
            raise UsageError(
                f"managed_ledger_max_ack_state_in_bytes_to_persist={most!r} is too large; "
                f"use {MOST_BYTES} or less"
            )

    @property
    def flush_interval_ns(self) -> int:
        """Nanoseconds between two flushes."""
        return self.managed_ledger_cursor_position_flush_seconds * 1_000_000_000
