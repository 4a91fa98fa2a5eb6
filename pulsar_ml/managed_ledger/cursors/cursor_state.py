"""The stored state of a cursor: acknowledgements, properties and sequence ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from pulsar_ml._core import AckState
from pulsar_ml.errors import UsageError
from pulsar_ml.managed_ledger.checks import check_text
from pulsar_ml.managed_ledger.cursors.cursor_metadata import Omitted, metadata_bytes
from pulsar_ml.managed_ledger.cursors.cursor_store import CursorStore
from pulsar_ml.managed_ledger.settings import LedgerSettings
from pulsar_ml.positions import Position


def ack_limits(settings: LedgerSettings) -> dict[str, Any]:
    """Keyword arguments of an AckState for these settings."""
    return {
        "max_bytes": settings.managed_ledger_max_ack_state_in_bytes_to_persist,
        "max_ranges": settings.managed_ledger_max_unacked_ranges_to_persist,
        "max_batches": settings.managed_ledger_max_batch_deleted_index_to_persist,
        "max_ranges_in_metadata_store": (
            settings.managed_ledger_max_unacked_ranges_to_persist_in_metadata_store
        ),
        "pause_dispatch": settings.dispatcher_pause_on_ack_state_persistent_enabled,
    }


class CursorState:
    """The state of one cursor: restored from ``store`` and moved on to ``mark_delete``, or new.

    ``store`` is None for a cursor that is not durable. ``lock`` is the ledger's: every change holds
    it, and a flush holds it while it encodes, so that sequence ids and their mark-delete position
    are stored together. ``resume``: see AckState.

    ``dirty`` is true while a part of the state may not be stored; ``omitted`` counts what the last
    flush omitted.
    """

    def __init__(
        self,
        store: CursorStore | None,
        settings: LedgerSettings,
        mark_delete: Position,
        *,
        lock: AbstractContextManager[Any],
        resume: Callable[[], object],
    ) -> None:
        self.store = store
        self.lock = lock
        self.max_bytes = settings.managed_ledger_max_ack_state_in_bytes_to_persist
        self.dirty = False
        self.omitted = Omitted()
        self.properties: dict[str, str] = {}
        self.sequence_ids: dict[str, int] = {}
        limits = ack_limits(settings)
        stored = None if store is None else store.load()
        if stored is None:
            self.acks = AckState(mark_delete, **limits, on_resume=resume)
            return
        self.acks = AckState.restore(
            stored.mark_delete_position,
            stored.data,
            stored.ranges,
            stored.batches,
            **limits,
            on_resume=resume,
        )
        self.acks.mark_delete(mark_delete)
        self.set_metadata(properties=stored.properties, sequence_ids=stored.sequence_ids)
        self.dirty = False

    def set_metadata(
        self,
        *,
        properties: Mapping[str, str] | None = None,
        sequence_ids: Mapping[str, int] | None = None,
    ) -> None:
        """Replaces properties or sequence ids.

        The caller holds the lock. UsageError for bad types.
        """
        properties = dict(self.properties if properties is None else properties)
        sequence_ids = dict(self.sequence_ids if sequence_ids is None else sequence_ids)
        check_properties(properties)
        check_sequence_ids(sequence_ids)
        self.properties, self.sequence_ids = properties, sequence_ids
        self.dirty = True
        self.acks.set_metadata_bytes(metadata_bytes(properties, sequence_ids))

    @property
    def is_mark_delete_only(self) -> bool:
        """True when the state is only a mark-delete position, both now and in the storage."""
        return self.store is None or (self.acks.size == 0 and self.store.revision == 0)

    def flush(self) -> Omitted:
        """Stores the state within its limits; returns the counts of omitted items.

        After StorageError nothing was stored and the state stays dirty.
        """
        if self.store is None:
            return Omitted()
        self.dirty = False
        try:
            self.omitted = self.store.save(
                self.acks,
                properties=lambda: self.properties,
                sequence_ids=lambda: self.sequence_ids,
                max_bytes=self.max_bytes,
                lock=self.lock,
            )
        except BaseException:
            self.dirty = True
            raise
        if self.omitted and self.store.used_metadata_store:
            self.dirty = True  # A ledger has more room than the metadata store: try again later.
        return self.omitted


def check_properties(properties: Mapping[str, str]) -> None:
    for key, value in properties.items():
        check_text(key, "property")
        check_text(value, f"the value of property {key!r}:")


def check_sequence_ids(sequence_ids: Mapping[str, int]) -> None:
    for name, last in sequence_ids.items():
        check_text(name, "producer")
        if not isinstance(name, str) or not isinstance(last, int) or not -(2**63) <= last < 2**63:
            raise UsageError(
                f"sequence id {last!r} of producer {name!r} is not valid; "
                "use a string and a signed 64-bit integer"
            )
