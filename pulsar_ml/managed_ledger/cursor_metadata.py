"""What is stored of a cursor, as bytes: properties, sequence ids of producers, acknowledgements.

In this order of priority. A header of fixed size comes on top of the limit, which counts what varies.
Little-endian throughout.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from pulsar_ml._core import AckState
from pulsar_ml.errors import StorageError
from pulsar_ml.positions import Position

MAGIC = b"PMLC"
VERSION = 1
# Magic, version, checksum of all that follows it; revision, mark-delete position; then properties, sequence
# ids, ranges and batches.
CHECKED = struct.Struct("<4sII")
HEADER = struct.Struct("<QqqIIQQ")
LENGTH = struct.Struct("<I")
SEQUENCE_ID = struct.Struct("<q")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """How many of each did not fit."""

    properties: int = 0
    sequence_ids: int = 0
    ranges: int = 0
    batches: int = 0

    def __bool__(self) -> bool:
        return bool(self.properties or self.sequence_ids or self.ranges or self.batches)


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorMetadata:
    """A cursor as it was stored; ``revision`` grows with each time.

    ``data`` holds ``ranges`` ranges and ``batches`` batches for AckState.restore.
    """

    revision: int
    mark_delete: Position
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
    """What the two take, for AckState.set_metadata_bytes."""
    return sum(map(len, property_items(properties) + sequence_items(sequence_ids)))


def within(items: list[bytes], room: int | None) -> list[bytes]:
    """The first items that take at most ``room`` bytes; all without a limit."""
    taken: list[bytes] = []
    for item in items:
        if room is not None:
            if len(item) > room:
                break
            room -= len(item)
        taken.append(item)
    return taken


def encode(
    acks: AckState,
    *,
    revision: int,
    properties: Mapping[str, str],
    sequence_ids: Mapping[str, int],
    max_bytes: int | None,
    in_metadata_store: bool = False,
) -> tuple[bytes, LeftOut]:
    """The bytes of what fits: properties, then sequence ids, then acknowledgements; and what does not."""
    given = property_items(properties)
    first = within(given, max_bytes)
    room = None if max_bytes is None else max_bytes - sum(map(len, first))
    ids = sequence_items(sequence_ids)
    # What comes later takes no room that something before it needed.
    second = within(ids, room) if len(first) == len(given) else []
    acknowledged = acks.encode(in_metadata_store=in_metadata_store)
    header = HEADER.pack(
        revision,
        *acknowledged.mark_delete,
        len(first),
        len(second),
        acknowledged.ranges,
        acknowledged.batches,
    )
    body = b"".join((header, *first, *second, acknowledged.data))
    left = LeftOut(
        properties=len(given) - len(first),
        sequence_ids=len(ids) - len(second),
        ranges=acknowledged.ranges_left,
        batches=acknowledged.batches_left,
    )
    return CHECKED.pack(MAGIC, VERSION, zlib.crc32(body)) + body, left


def decode(data: bytes) -> CursorMetadata:
    """Raises StorageError that says what is wrong with the bytes."""
    if len(data) < CHECKED.size + HEADER.size:
        raise StorageError(f"{len(data)} bytes are too few for the metadata of a cursor")
    magic, version, checksum = CHECKED.unpack_from(data)
    body = data[CHECKED.size :]
    if magic != MAGIC:
        raise StorageError(f"the metadata of a cursor begins with {magic!r}, not {MAGIC!r}")
    if version != VERSION:
        raise StorageError(
            f"the metadata of a cursor has version {version}; this one reads {VERSION}"
        )
    if zlib.crc32(body) != checksum:
        raise StorageError(
            f"the metadata of a cursor is damaged: checksum {zlib.crc32(body):#x}, not {checksum:#x}"
        )
    revision, ledger_id, entry_id, properties, sequence_ids, ranges, batches = HEADER.unpack_from(
        body
    )
    reader = Reader(body, HEADER.size)
    return CursorMetadata(
        revision=revision,
        mark_delete=Position(ledger_id, entry_id),
        properties={reader.text(): reader.text() for _ in range(properties)},
        sequence_ids={reader.text(): reader.number() for _ in range(sequence_ids)},
        data=body[reader.at :],
        ranges=ranges,
        batches=batches,
    )


@dataclass(slots=True)
class Reader:
    body: bytes
    at: int

    def text(self) -> str:
        (length,) = LENGTH.unpack(self.take(LENGTH.size))
        try:
            return self.take(length).decode()
        except UnicodeDecodeError as error:
            raise StorageError(
                f"the metadata of a cursor has a text that is none: {error.reason}"
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
