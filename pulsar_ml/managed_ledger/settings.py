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


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSettings:
    """Raises UsageError for a value that cannot be.

    Attributes:
        cache_eviction_by_expected_read_count: entries are cached with the number of reads that are expected,
            and eviction is left to the manager. Else cursors invalidate what they all passed.
        cache_eviction_by_mark_deleted_position: without the former: what all cursors mark-deleted is
            invalidated, not what they read.
        continue_caching_added_entries_after_last_active_cursor_leaves_millis: milliseconds.
        managed_ledger_max_entries_per_ledger: entries after which a new ledger begins.
        managed_ledger_cursor_backlogged_threshold: entries; without expected reads a cursor that has more of
            them to read is not active.
        managed_ledger_max_unacked_ranges_to_persist: ranges of acknowledged entries that are stored.
        managed_ledger_max_batch_deleted_index_to_persist: partly acknowledged batches that are stored.
        managed_ledger_max_unacked_ranges_to_persist_in_metadata_store: ranges, when no ledger takes them.
        managed_ledger_max_ack_state_in_bytes_to_persist: bytes, 1 KiB to 5 MiB; the number of ranges has no
            effect then. None: no limit of bytes.
        managed_ledger_cursor_position_flush_seconds: seconds between two flushes of cursors that have
            something that is not stored.
        managed_ledger_default_mark_delete_rate_limit: how often in a second the mark-delete position of a
            cursor is stored when it moves; 0: always. Flushes store what was not.
        dispatcher_pause_on_ack_state_persistent_enabled: see ManagedCursor.may_dispatch.
        managed_ledger_read_entry_timeout_millis: milliseconds until a read of the storage fails; 0: never.
    """

    cache_eviction_by_expected_read_count: bool = True
    cache_eviction_by_mark_deleted_position: bool = False
    continue_caching_added_entries_after_last_active_cursor_leaves_millis: int = 2000
    managed_ledger_max_entries_per_ledger: int = 50_000
    managed_ledger_cursor_backlogged_threshold: int = 1000
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
            least = LEAST.get(field.name, 0)
            if value is not None and value < least:
                raise UsageError(f"{field.name}={value!r} should be at least {least}")
        most = self.managed_ledger_max_ack_state_in_bytes_to_persist
        if most is not None and most > MOST_BYTES:
            raise UsageError(
                f"managed_ledger_max_ack_state_in_bytes_to_persist={most!r} should be at most {MOST_BYTES}"
            )

    @property
    def flush_interval_ns(self) -> int:
        """Nanoseconds between two flushes of cursors."""
        return self.managed_ledger_cursor_position_flush_seconds * 1_000_000_000
