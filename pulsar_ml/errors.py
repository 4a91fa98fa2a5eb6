"""Exceptions of pulsar_ml, each of which is also the built-in exception that callers expect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class PulsarMlError(Exception):
    """The base class of all exceptions that this package raises on purpose."""


class InvalidPositionError(PulsarMlError, ValueError):
    """A position, or range of positions, is not valid for the operation."""


class PositionMismatchError(PulsarMlError, ValueError):
    """An entry was put at a position other than its own."""


class InvalidSizeError(PulsarMlError, ValueError):
    """A size or count is negative, zero where it must be positive, or too large."""


class ReleasedError(PulsarMlError, ValueError):
    """An entry, or a view of its bytes, was used after its release."""


class ClosedError(PulsarMlError, RuntimeError):
    """A cache, manager or ledger was used after it was closed."""


class AllocationError(PulsarMlError, MemoryError):
    """Native memory ran out; the call changed nothing."""


class StorageError(PulsarMlError, OSError):
    """The storage of a ledger failed, or its answer lacks a requested entry."""


class LedgerHandleClosedError(StorageError):
    """The storage closed its handle of a ledger; ``reopen_ledger`` opens another one."""


class ReadTimeoutError(PulsarMlError, TimeoutError):
    """A read waited too long for the storage, or for permits of the in-flight read limiter."""


class ReadLimitError(PulsarMlError, RuntimeError):
    """A read was refused: too many reads wait for permits of the in-flight read limiter."""


class UsageError(PulsarMlError, ValueError):
    """A command or function got arguments that are not valid or do not fit together."""


class ConfigError(PulsarMlError, ValueError):
    """Settings have values that are not allowed; the message lists them with file and line."""


class LimitsError(PulsarMlError, RuntimeError):
    """A program is too large for the controlled engine, which therefore has no verdict."""


class BuildError(PulsarMlError, RuntimeError):
    """An extension module could not be built; the message has the compiler's output."""


class NondeterminismError(PulsarMlError, RuntimeError):
    """Equal decisions led to different executions: the engine does not control something."""


class NotRepeatedError(NondeterminismError):
    """An execution differed when it was made again; the message has the first difference."""


class BadRecordError(PulsarMlError, ValueError):
    """A replay record is damaged, truncated or written by a newer version."""


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give the system's errors that lack a file's name this one: a full disk does not say it."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise
