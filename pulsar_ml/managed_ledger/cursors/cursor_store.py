"""The store of a cursor's metadata: a cursor ledger, or the metadata store when that fails."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pulsar_ml._core import AckState
from pulsar_ml.errors import StorageError
from pulsar_ml.managed_ledger.checks import SEPARATOR
from pulsar_ml.managed_ledger.cursors.cursor_metadata import CursorMetadata, Omitted, decode, encode
from pulsar_ml.managed_ledger.fork_lock import ForkLock
from pulsar_ml.managed_ledger.storage.interface import LedgerStorage

ACKS_PREFIX = "acks/"
MOST_ENTRIES = 1000  # of a cursor ledger; each entry is a complete copy of the metadata


class CursorStore:
    """Stores the metadata of one cursor of the managed ledger ``ledger``. Thread-safe.

    Writes run one at a time. Origin: ``persistPositionToLedger`` and ``persistPositionMetaStore``
    of Pulsar 4.1; here :meth:`load` returns the copy with the higher revision.
    """

    def __init__(self, storage: LedgerStorage, ledger: str, cursor: str) -> None:
        self.storage = storage
        self.ledger = ledger
        self.key = ACKS_PREFIX + cursor
        # Their name in the storage, which no managed ledger can have.
        self.cursor_ledgers = SEPARATOR.join((ledger, "acks", cursor))
        self.saving = ForkLock(waits=True, on_torn=self.begin_ledger)
        self.revision = 0
        self.current: int | None = None  # the cursor ledger that takes the next entry
        self.entries = 0
        self.used_metadata_store = False  # by the last save

    def save(
        self,
        acks: AckState,
        *,
        properties: Callable[[], Mapping[str, str]] = dict,
        sequence_ids: Callable[[], Mapping[str, int]] = dict,
        max_bytes: int | None = None,
        lock: AbstractContextManager[Any] | None = None,
    ) -> Omitted:
        """Stores the metadata within its limits; returns the counts of omitted items.

        ``lock`` is held while properties and sequence ids are read and encoded. Raises StorageError
        when neither a cursor ledger nor the metadata store accepts the bytes.
        """
        with self.saving:
            self.revision += 1

            def encoded(*, in_metadata_store: bool) -> tuple[bytes, Omitted]:
                with lock or nullcontext():
                    return encode(
                        acks,
                        revision=self.revision,
                        properties=properties(),
                        sequence_ids=sequence_ids(),
                        max_bytes=max_bytes,
                        in_metadata_store=in_metadata_store,
                    )

            data, omitted = encoded(in_metadata_store=False)
            self.used_metadata_store = False
            try:
                self.append(data)
            except StorageError:
                self.used_metadata_store = True
                self.current = None
                data, omitted = encoded(in_metadata_store=True)
                self.storage.set_property(self.ledger, self.key, base64.b85encode(data).decode())
            return omitted

    def begin_ledger(self) -> None:
        """Lets the next save begin a cursor ledger."""
        self.current = None

    def append(self, data: bytes) -> None:
        old = []
        if self.current is None or self.entries >= MOST_ENTRIES:
            old = [ledger.ledger_id for ledger in self.storage.ledgers(self.cursor_ledgers)]
            self.current = self.storage.create_ledger(self.cursor_ledgers)
            self.entries = 0
        self.storage.append(self.current, self.entries, data).result()
        self.entries += 1
        for ledger_id in old:
            self.storage.delete_ledger(ledger_id)

    def load(self) -> CursorMetadata | None:
        """The metadata stored last, or None. Raises StorageError when the metadata is damaged."""
        found = []
        for ledger in reversed(self.storage.ledgers(self.cursor_ledgers)):
            if ledger.entries:
                last = ledger.entries - 1
                found.append(self.storage.read(ledger.ledger_id, last, last).result()[0].data)
                break
        text = self.storage.properties(self.ledger).get(self.key)
        if text is not None:
            try:
                found.append(base64.b85decode(text))
            except ValueError as error:
                raise StorageError(
                    f"the metadata of cursor {self.key!r} is damaged: {error}"
                ) from None
        if not found:
            return None
        newest = max(map(decode, found), key=lambda metadata: metadata.revision)
        with self.saving:
            self.revision = max(self.revision, newest.revision)
        return newest

    def delete(self) -> None:
        """Deletes the stored metadata."""
        with self.saving:
            for ledger in self.storage.ledgers(self.cursor_ledgers):
                self.storage.delete_ledger(ledger.ledger_id)
            self.current = None
            self.storage.set_property(self.ledger, self.key, None)
