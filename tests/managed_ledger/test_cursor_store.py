from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from functools import partial

import pytest

from pulsar_ml import AckState, Position, StorageError
from pulsar_ml.managed_ledger import FaultyStorage, MemoryStorage
from pulsar_ml.managed_ledger.cursors.cursor_metadata import (
    CHECKED,
    CursorMetadata,
    Omitted,
    decode,
    encode,
    metadata_bytes,
)
from pulsar_ml.managed_ledger.cursors.cursor_store import MOST_ENTRIES, CursorStore

KIB = 1024


def acks_of(ranges: int, *, max_bytes: int | None = 5 * KIB**2, in_store: int = 1000) -> AckState:
    acks = AckState((0, -1), max_bytes=max_bytes, max_ranges_in_metadata_store=in_store)
    for entry in range(1, 2 * ranges, 2):
        acks.acknowledge((0, entry))
    return acks


def restored(stored: CursorMetadata) -> AckState:
    return AckState.restore(stored.mark_delete_position, stored.data, stored.ranges, stored.batches)


def test_properties_come_first_then_sequence_ids_then_ranges() -> None:
    # PIP-299's example at a small scale: a fifth of the room goes to properties, and the rest is
    # too small for all ranges.
    properties, sequence_ids = {"key": "x" * 197}, {"producer": 7}
    acks = acks_of(100, max_bytes=KIB)
    acks.set_metadata_bytes(metadata_bytes(properties, sequence_ids))
    data, left = encode(
        acks, revision=1, properties=properties, sequence_ids=sequence_ids, max_bytes=KIB
    )
    metadata = decode(data)
    assert (metadata.properties, metadata.sequence_ids) == (properties, sequence_ids)
    assert metadata.ranges == (KIB - 208 - 20) // 32
    assert left == Omitted(ranges=100 - metadata.ranges)


def test_sequence_ids_and_ranges_are_left_out_before_properties() -> None:
    properties = {f"{number:03}": "x" * 89 for number in range(11)}  # 100 bytes each
    sequence_ids = {"producer": 1}
    acks = acks_of(3, max_bytes=KIB)
    acks.set_metadata_bytes(metadata_bytes(properties, sequence_ids))
    data, left = encode(
        acks, revision=1, properties=properties, sequence_ids=sequence_ids, max_bytes=KIB
    )
    assert list(decode(data).properties) == sorted(properties)[:10]
    assert left == Omitted(properties=1, sequence_ids=1, ranges=3)


def test_what_is_saved_last_is_loaded() -> None:
    storage = MemoryStorage()
    store = CursorStore(storage, "log", "sub")
    assert store.load() is None
    for ranges in (1, 2, 3):
        assert not store.save(acks_of(ranges), properties=partial(dict, ranges=str(ranges)))
    again = CursorStore(storage, "log", "sub").load()
    assert again is not None and again.properties == {"ranges": "3"} and again.revision == 3
    assert restored(again).ranges() == [(Position(0, e), Position(0, e)) for e in (1, 3, 5)]


def test_when_the_ledger_fails_the_metadata_store_takes_less() -> None:
    storage = FaultyStorage(MemoryStorage())
    store = CursorStore(storage, "log", "sub")
    acks = acks_of(5, in_store=2)
    assert not store.save(acks)
    storage.fail_appends = 1
    assert store.save(acks) == Omitted(ranges=3)
    kept = CursorStore(storage, "log", "sub").load()
    assert kept is not None and (kept.revision, kept.ranges) == (2, 2)
    # Appends work again, so the cursor ledger has the newer copy.
    again = CursorStore(storage, "log", "sub")
    again.load()
    assert not again.save(acks)
    newest = CursorStore(storage, "log", "sub").load()
    assert newest is not None and (newest.revision, newest.ranges) == (3, 5)


def test_a_full_ledger_is_followed_by_another_and_deleted() -> None:
    storage = MemoryStorage()
    store = CursorStore(storage, "log", "sub")
    for _ in range(MOST_ENTRIES + 1):
        store.save(acks_of(1))
    (ledger,) = storage.ledgers(store.cursor_ledgers)
    assert ledger.entries == 1
    store.delete()
    assert CursorStore(storage, "log", "sub").load() is None


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:20], "too few"),
        (lambda data: b"XXXX" + data[4:], "begins with"),
        (lambda data: data[:4] + struct.pack("<I", 9) + data[8:], "version 9"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "checksum"),
        (lambda data: data[:-8], "checksum"),
    ],
)
def test_damaged_metadata_says_what_is_wrong(
    damage: Callable[[bytes], bytes], message: str
) -> None:
    data, _ = encode(acks_of(2), revision=1, properties={"a": "b"}, sequence_ids={}, max_bytes=None)
    with pytest.raises(StorageError, match=message):
        decode(damage(data))


def test_counts_that_promise_too_much_are_noticed() -> None:
    data, _ = encode(acks_of(0), revision=1, properties={}, sequence_ids={}, max_bytes=None)
    body = bytearray(data[CHECKED.size :])
    body[24] = 1  # the header now claims one property
    with pytest.raises(StorageError, match="early"):
        decode(CHECKED.pack(b"PMLC", 1, zlib.crc32(body)) + bytes(body))
