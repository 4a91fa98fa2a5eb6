"""Messages of a child process, which survive a child that writes garbage beside them.

Code under test may write to any descriptor of its process. A message therefore begins with a key
that parent and child share, its length and a checksum; anything else on the pipe is an error, and
nothing else is unpickled. The parent never waits for the rest of a message.
"""

from __future__ import annotations

import os
import pickle
import secrets
import struct
import zlib
from collections.abc import Iterator
from typing import Any

KEY_BYTES = 16
HEAD = struct.Struct("=QI")  # length and checksum of the content
MOST_BYTES = 1 << 32  # of one message; results of an exploration may be large
READ_BYTES = 1 << 20


class GarbageError(Exception):
    """Bytes that are no message of the child's harness."""


def new_key() -> bytes:
    """Return a key for the messages of one child."""
    return secrets.token_bytes(KEY_BYTES)


def write_message(pipe: int, key: bytes, content: object) -> None:
    """Write a message to a pipe. Raises what pickling raises, before it writes anything."""
    data = pickle.dumps(content)
    rest = memoryview(key + HEAD.pack(len(data), zlib.crc32(data)) + data)
    while rest:
        rest = rest[os.write(pipe, rest) :]


class Messages:
    """The messages that arrive on a pipe, which is read without waiting."""

    def __init__(self, pipe: int, key: bytes) -> None:
        self._pipe = pipe
        self._key = key
        self._bytes = bytearray()
        self.ended = False  # nobody has the pipe open for writing
        os.set_blocking(pipe, False)

    def read(self) -> bool:
        """Read what has arrived; False when nothing was there, or nothing will come any more."""
        try:
            data = os.read(self._pipe, READ_BYTES)
        except BlockingIOError:
            return False
        self._bytes += data
        self.ended = not data
        return bool(data)

    def complete(self) -> Iterator[Any]:
        """Yield the complete messages. Raises GarbageError at the first byte of anything else."""
        key, head = self._key, len(self._key) + HEAD.size
        while self._bytes:
            if self._bytes[: len(key)] != key[: len(self._bytes)]:
                raise GarbageError(f"{bytes(self._bytes[:40])!r}")
            if len(self._bytes) < head:
                return
            length, checksum = HEAD.unpack_from(self._bytes, len(key))
            if length > MOST_BYTES:
                raise GarbageError(f"a message of {length:,} bytes")
            if len(self._bytes) < head + length:
                return
            data = bytes(self._bytes[head : head + length])
            if zlib.crc32(data) != checksum:
                raise GarbageError("a message with a wrong checksum")
            del self._bytes[: head + length]
            yield pickle.loads(data)
