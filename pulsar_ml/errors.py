"""Exceptions of pulsar_ml. Each is also the built-in exception that a caller would expect."""

from __future__ import annotations


class PulsarMlError(Exception):
    """The root of all errors raised on purpose by this package."""


class InvalidPositionError(PulsarMlError, ValueError):
    """A position or range of positions that the operation cannot take."""


class PositionMismatchError(PulsarMlError, ValueError):
    """An entry was offered for a position that is not its own."""


class InvalidSizeError(PulsarMlError, ValueError):
    """A size or count that is negative, zero where it must be positive, or too large."""


class ReleasedError(PulsarMlError, ValueError):
    """An entry or a view of it was used after its reference was given back."""


class ClosedError(PulsarMlError, RuntimeError):
    """A cache or manager was used after it was closed."""


class AllocationError(PulsarMlError, MemoryError):
    """Native memory ran out; the structure is as it was before the call."""


class StorageError(PulsarMlError, OSError):
    """The storage of a ledger failed, or its answer lacks an entry that it should have."""


class ReadTimeoutError(PulsarMlError, TimeoutError):
    """A read waited too long for the storage, or for permits of the in-flight read limiter."""


class ReadLimitError(PulsarMlError, RuntimeError):
    """Too many reads wait for permits of the in-flight read limiter; this one was refused."""


class UsageError(PulsarMlError, ValueError):
    """A command or function was called with options that do not fit together."""


class ConfigError(PulsarMlError, ValueError):
    """A setting that cannot have its value; the message has one line for each, with file and line."""


class LimitsError(PulsarMlError, RuntimeError):
    """A program is too large for the controlled engine, which then says nothing about it."""


class BuildError(PulsarMlError, RuntimeError):
    """An extension module could not be built; the message has what the compiler said."""


class NondeterminismError(PulsarMlError, RuntimeError):
    """The same decisions led to different executions: something is not under the engine's control."""


class BadRecordError(PulsarMlError, ValueError):
    """A replay record that is damaged, truncated or written by a newer version."""
