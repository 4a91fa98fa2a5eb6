"""Where a cursor's metadata is kept: a ledger of its own, or the metadata store when that fails."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pulsar_ml._core import AckState
from pulsar_ml.errors import StorageError
from pulsar_ml.managed_ledger.cursor_metadata import CursorMetadata, LeftOut, decode, encode
from pulsar_ml.managed_ledger.storage import LedgerStorage

KEPT = "acks/"
MOST_ENTRIES = 1000  # of a cursor's ledger, each of them all of the metadata


class CursorStore:
    """The metadata of one cursor of the managed ledger ``ledger``. Thread-safe; saving is one at a time.

    Origin: ``persistPositionToLedger`` and ``persistPositionMetaStore`` of Pulsar 4.1. Here the newer of the
    two, by revision, is what comes back.
    """

    def __init__(self, storage: LedgerStorage, ledger: str, cursor: str) -> None:
        self.storage = storage
        self.ledger = ledger
        self.key = KEPT + cursor
        self.own = f"{ledger}/{KEPT}{cursor}"  # the name under which its ledgers are kept
        self.saving = threading.Lock()
        self.revision = 0
        self.current: int | None = None
        self.entries = 0
        self.fell_back = False  # the last time, to the metadata store

    def save(
        self,
        acks: AckState,
        *,
        properties: Callable[[], Mapping[str, str]] = dict,
        sequence_ids: Callable[[], Mapping[str, int]] = dict,
        max_bytes: int | None = None,
        lock: AbstractContextManager[Any] | None = None,
    ) -> LeftOut:
        """Store what fits and say what does not. StorageError when neither place takes it.

        ``lock`` is held while properties and sequence ids are asked for and the bytes are made.
        """
        with self.saving:
            self.revision += 1

            def encoded(*, in_metadata_store: bool) -> tuple[bytes, LeftOut]:
                with lock or nullcontext():
                    return encode(
                        acks,
                        revision=self.revision,
                        properties=properties(),
                        sequence_ids=sequence_ids(),
                        max_bytes=max_bytes,
                        in_metadata_store=in_metadata_store,
                    )

            data, left = encoded(in_metadata_store=False)
            self.fell_back = False
            try:
                self.append(data)
            except StorageError:
                self.fell_back = True
                self.current = None
                data, left = encoded(in_metadata_store=True)
                self.storage.set_property(self.ledger, self.key, base64.b85encode(data).decode())
            return left

    def append(self, data: bytes) -> None:
        old = []
        if self.current is None or self.entries >= MOST_ENTRIES:
            old = [ledger.ledger_id for ledger in self.storage.ledgers(self.own)]
            self.current = self.storage.create_ledger(self.own)
            self.entries = 0
        self.storage.append(self.current, self.entries, data).result()
        self.entries += 1
        for ledger_id in old:
            self.storage.delete_ledger(ledger_id)

    def load(self) -> CursorMetadata | None:
        """What was stored last; None when nothing was. StorageError when it is damaged."""
        found = []
        for ledger in reversed(self.storage.ledgers(self.own)):
            if ledger.entries:
                last = ledger.entries - 1
                found.append(self.storage.read(ledger.ledger_id, last, last).result()[0].data)
                break
        kept = self.storage.properties(self.ledger).get(self.key)
        if kept is not None:
            try:
                found.append(base64.b85decode(kept))
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
        """Forget it."""
        with self.saving:
            for ledger in self.storage.ledgers(self.own):
                self.storage.delete_ledger(ledger.ledger_id)
            self.current = None
            self.storage.set_property(self.ledger, self.key, None)
