"""What a cursor knows beside its position: acknowledgements, properties, sequence ids; stored as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from pulsar_ml._core import AckState
from pulsar_ml.errors import UsageError
from pulsar_ml.managed_ledger.cursor_metadata import LeftOut, metadata_bytes
from pulsar_ml.managed_ledger.cursor_store import CursorStore
from pulsar_ml.managed_ledger.settings import LedgerSettings
from pulsar_ml.positions import Position


def ack_limits(settings: LedgerSettings) -> dict[str, Any]:
    """The keywords of an AckState for these settings."""
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
    """The state of one cursor: what was stored of it at ``mark_delete`` or behind, or a new one.

    ``store``: None for a cursor that is not durable. ``lock``: whoever changes the state holds it, the
    ledger's; storing takes it while the bytes are made, so that sequence ids and the mark-delete position
    that they were given with stay together. ``resume``: see AckState.

    ``dirty`` says that something may not be stored; ``left_out`` what the last flush left out.
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
        self.left_out = LeftOut()
        self.properties: dict[str, str] = {}
        self.sequence_ids: dict[str, int] = {}
        limits = ack_limits(settings)
        stored = None if store is None else store.load()
        if stored is None:
            self.acks = AckState(mark_delete, **limits, resume=resume)
            return
        self.acks = AckState.restore(
            stored.mark_delete, stored.data, stored.ranges, stored.batches, **limits, resume=resume
        )
        self.acks.mark_delete(mark_delete)
        self.describe(properties=stored.properties, sequence_ids=stored.sequence_ids)
        self.dirty = False

    def describe(
        self,
        *,
        properties: Mapping[str, str] | None = None,
        sequence_ids: Mapping[str, int] | None = None,
    ) -> None:
        """Other properties or sequence ids from now on. With the lock. UsageError for what is none."""
        properties = dict(self.properties if properties is None else properties)
        sequence_ids = dict(self.sequence_ids if sequence_ids is None else sequence_ids)
        check_properties(properties)
        check_sequence_ids(sequence_ids)
        self.properties, self.sequence_ids = properties, sequence_ids
        self.dirty = True
        self.acks.set_metadata_bytes(metadata_bytes(properties, sequence_ids))

    @property
    def mark_says_it_all(self) -> bool:
        """Whether there is nothing beside the mark-delete position, neither now nor stored before."""
        return self.store is None or (self.acks.size == 0 and self.store.revision == 0)

    def flush(self) -> LeftOut:
        """Store what fits, and say what does not. StorageError: nothing was stored, and it stays dirty."""
        if self.store is None:
            return LeftOut()
        self.dirty = False
        try:
            self.left_out = self.store.save(
                self.acks,
                properties=lambda: self.properties,
                sequence_ids=lambda: self.sequence_ids,
                max_bytes=self.max_bytes,
                lock=self.lock,
            )
        except BaseException:
            self.dirty = True
            raise
        if self.left_out and self.store.fell_back:
            self.dirty = True  # A ledger may take more the next time.
        return self.left_out


def check_properties(properties: Mapping[str, str]) -> None:
    for key, value in properties.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise UsageError(f"property {key!r}: {value!r} should be a text under a text")


def check_sequence_ids(sequence_ids: Mapping[str, int]) -> None:
    for name, last in sequence_ids.items():
        if not isinstance(name, str) or not isinstance(last, int) or not -(2**63) <= last < 2**63:
            raise UsageError(
                f"sequence id {last!r} of producer {name!r} should be a 64-bit integer"
            )
