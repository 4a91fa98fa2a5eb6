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


class UsageError(PulsarMlError, ValueError):
    """A command or function was called with options that do not fit together."""


class BadRecordError(PulsarMlError, ValueError):
    """A replay record that is damaged, truncated or written by a newer version."""
