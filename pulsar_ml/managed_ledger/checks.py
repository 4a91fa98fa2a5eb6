"""Checks of texts and bytes that a storage has to keep."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import SupportsIndex, cast

from pulsar_ml.errors import InvalidPositionError, UsageError
from pulsar_ml.positions import Position

# Stands between the parts of a cursor ledger's name; no name of a user contains it.
SEPARATOR = "\x1f"


def check_text(text: object, role: str) -> None:
    """Raises UsageError for a value that is not a string, or cannot be encoded as UTF-8."""
    if not isinstance(text, str):
        raise UsageError(f"{role} {text!r} is not valid; use a string")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{role} {text!r} is not valid: it contains the surrogate "
            f"{text[error.start]!r}, which UTF-8 cannot encode; remove it"
        ) from None


def check_name(name: object, role: str) -> None:
    """Raises UsageError for a value that cannot name a managed ledger or a cursor."""
    check_text(name, role)
    if SEPARATOR in str(name):
        raise UsageError(f"{role} {name!r} contains {SEPARATOR!r}, which is reserved; remove it")


def check_position(position: object) -> Position:
    """The position of a pair. Raises InvalidPositionError for anything but two whole numbers."""
    try:
        ledger_id, entry_id = cast("Iterable[SupportsIndex]", position)
        return Position(index(ledger_id), index(entry_id))
    except (TypeError, ValueError):
        raise InvalidPositionError(
            f"position {position!r} is not valid; use a Position or a (ledger_id, entry_id) pair"
        ) from None


def check_count(value: object, role: str, least: int = 0) -> int:
    """A whole number. Raises UsageError for any other value, or one below ``least``."""
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if number < least:
        raise UsageError(f"{role}={value!r} is not valid; use a whole number of {least} or more")
    return number


def check_bytes(data: object) -> bytes:
    """A copy of a bytes-like object. Raises TypeError for any other object."""
    try:
        return memoryview(data).tobytes()  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"data={data!r} is not valid; use bytes or a bytes-like object") from None
