"""The byte format of a cursor's metadata: properties, sequence ids of producers, acknowledgements.

The order is the priority under the limit of bytes, which does not count the header of fixed size.
All numbers are little-endian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from pulsar_ml._core import AckState
from pulsar_ml.errors import StorageError
from pulsar_ml.positions import Position

MAGIC = b"PMLC"
VERSION = 1
# Magic, version and checksum of the rest; then the revision, the mark-delete position, and the
# numbers of properties, sequence ids, ranges and batches.
CHECKED = struct.Struct("<4sII")
HEADER = struct.Struct("<QqqIIQQ")
LENGTH = struct.Struct("<I")
SEQUENCE_ID = struct.Struct("<q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Omitted:
    """The numbers of items that did not fit; false when everything fit."""

    properties: int = 0
    sequence_ids: int = 0
    ranges: int = 0
    batches: int = 0

    def __bool__(self) -> bool:
        return bool(self.properties or self.sequence_ids or self.ranges or self.batches)


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorMetadata:
    """The decoded metadata of a cursor; each write has a higher ``revision``.

    ``data`` holds ``ranges`` ranges and ``batches`` batches for AckState.restore.
    """

    revision: int
    mark_delete_position: Position
    properties: Mapping[str, str] = field(default_factory=dict)
    sequence_ids: Mapping[str, int] = field(default_factory=dict)
    data: bytes = b""
    ranges: int = 0
    batches: int = 0


def text_bytes(text: str) -> bytes:
    encoded = text.encode()
    return LENGTH.pack(len(encoded)) + encoded


def property_items(properties: Mapping[str, str]) -> list[bytes]:
    return [text_bytes(key) + text_bytes(value) for key, value in sorted(properties.items())]


def sequence_items(sequence_ids: Mapping[str, int]) -> list[bytes]:
    return [
        text_bytes(name) + SEQUENCE_ID.pack(last) for name, last in sorted(sequence_ids.items())
    ]


def metadata_bytes(properties: Mapping[str, str], sequence_ids: Mapping[str, int]) -> int:
    """The encoded size of properties and sequence ids, for AckState.set_metadata_bytes."""
    return sum(map(len, property_items(properties) + sequence_items(sequence_ids)))


def within(items: list[bytes], room: int | None) -> list[bytes]:
    """The longest prefix of ``items`` within ``room`` bytes; None: no limit."""
    if room is None:
        return items
    ends = accumulate(map(len, items))
    return [item for item, end in zip(items, ends, strict=True) if end <= room]


def encode(
    acks: AckState,
    *,
    revision: int,
    properties: Mapping[str, str],
    sequence_ids: Mapping[str, int],
    max_bytes: int | None,
    in_metadata_store: bool = False,
) -> tuple[bytes, Omitted]:
    """Encodes as much as fits, in the order of priority; returns the bytes and what was omitted."""
    property_bytes = property_items(properties)
    stored_properties = within(property_bytes, max_bytes)
    room = None if max_bytes is None else max_bytes - sum(map(len, stored_properties))
    id_bytes = sequence_items(sequence_ids)
    # An item of lower priority never uses room that an item of higher priority lacked.
    stored_ids = within(id_bytes, room) if len(stored_properties) == len(property_bytes) else []
    acknowledged = acks.encode(in_metadata_store=in_metadata_store)
    header = HEADER.pack(
        revision,
        *acknowledged.mark_delete_position,
        len(stored_properties),
        len(stored_ids),
        acknowledged.ranges,
        acknowledged.batches,
    )
    body = b"".join((header, *stored_properties, *stored_ids, acknowledged.data))
    omitted = Omitted(
        properties=len(property_bytes) - len(stored_properties),
        sequence_ids=len(id_bytes) - len(stored_ids),
        ranges=acknowledged.ranges_left,
        batches=acknowledged.batches_left,
    )
    return CHECKED.pack(MAGIC, VERSION, zlib.crc32(body)) + body, omitted


def decode(data: bytes) -> CursorMetadata:
    """Decodes metadata. Raises StorageError, which names the damage."""
    if len(data) < CHECKED.size + HEADER.size:
        raise StorageError(f"{len(data)} bytes are too few for the metadata of a cursor")
    magic, version, checksum = CHECKED.unpack_from(data)
    body = data[CHECKED.size :]
    if magic != MAGIC:
        raise StorageError(f"the metadata of a cursor begins with {magic!r}, not {MAGIC!r}")
    if version != VERSION:
        raise StorageError(
            f"the metadata of a cursor has version {version}, but this release reads {VERSION}"
        )
    if zlib.crc32(body) != checksum:
        raise StorageError(
            "the metadata of a cursor is damaged: "
            f"its checksum is {zlib.crc32(body):#x}, not {checksum:#x}"
        )
    revision, ledger_id, entry_id, properties, sequence_ids, ranges, batches = HEADER.unpack_from(
        body
    )
    reader = Reader(body, HEADER.size)
    return CursorMetadata(
        revision=revision,
        mark_delete_position=Position(ledger_id, entry_id),
        properties={reader.text(): reader.text() for _ in range(properties)},
        sequence_ids={reader.text(): reader.number() for _ in range(sequence_ids)},
        data=body[reader.at :],
        ranges=ranges,
        batches=batches,
    )


@dataclass(slots=True)
class Reader:
    """Reads values from the metadata at a moving offset."""

    body: bytes
    at: int

    def text(self) -> str:
        (length,) = LENGTH.unpack(self.take(LENGTH.size))
        try:
            return self.take(length).decode()
        except UnicodeDecodeError as error:
            raise StorageError(
                f"the metadata of a cursor contains a text that is not UTF-8: {error.reason}"
            ) from None

    def number(self) -> int:
        (number,) = SEQUENCE_ID.unpack(self.take(SEQUENCE_ID.size))
        return int(number)

    def take(self, length: int) -> bytes:
        taken = self.body[self.at : self.at + length]
        if len(taken) < length:
            raise StorageError(f"the metadata of a cursor ends {length - len(taken)} bytes early")
        self.at += length
        return taken
