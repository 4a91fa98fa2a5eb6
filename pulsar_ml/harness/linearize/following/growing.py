"""GrowingFile: what is appended to a file, which must stay the file that it was."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.input_files import plain

PIECE = 1 << 20  # bytes of one reading
PAUSE = 0.1  # seconds between two looks at a file that does not grow


class Source(Protocol):
    """Something that is appended to."""

    def read(self) -> bytes:
        """Return what was appended since the last call; empty: nothing."""
        ...

    def wait(self) -> bool:
        """Wait a moment after an empty :meth:`read`; False: nothing more will come."""
        ...


class GrowingFile:
    """The file at ``path``, from its first byte on.

    ``idle`` is the number of seconds without growth after which the file is complete; None: never.
    A file that was replaced, or became shorter than what was read, is refused with BadRecordError.
    One that was overwritten with as many bytes is not noticed.
    """

    def __init__(
        self,
        path: Path,
        idle: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.path = path
        self.idle = idle
        self.clock = clock
        self.sleep = sleep
        self.position = 0
        try:
            self.descriptor = plain(str(path), os.O_RDONLY)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"the history {path} cannot be followed: {reason}") from None
        self.grew_at = clock()

    def read(self) -> bytes:
        own = os.fstat(self.descriptor)
        try:
            there = os.stat(self.path)
        except OSError:
            there = None
        if there is None or (there.st_dev, there.st_ino) != (own.st_dev, own.st_ino):
            raise BadRecordError(
                f"{self.path.name} was {'replaced by another file' if there else 'removed'} after "
                f"{self.position} bytes were read, so the history cannot be followed; start again"
            )
        if own.st_size < self.position:
            raise BadRecordError(
                f"{self.path.name} was truncated to {own.st_size} bytes after {self.position} were "
                "read, so the history cannot be followed; start again"
            )
        piece = os.read(self.descriptor, PIECE)
        self.position += len(piece)
        if piece:
            self.grew_at = self.clock()
        return piece

    def wait(self) -> bool:
        if self.idle is not None and self.clock() - self.grew_at >= self.idle:
            return False
        self.sleep(PAUSE)
        return True

    def close(self) -> None:
        os.close(self.descriptor)
