"""Signatures: equal for violations of one kind; a hash of suite, invariant and message pattern."""

from __future__ import annotations

import hashlib
import re

# Hexadecimal before decimal, and a sign only where it is not a minus between two numbers.
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|(?<![\w.])-?\d+(\.\d+)?|\d+")


def pattern(message: str) -> str:
    """Return the message with every number replaced by ``#``."""
    return _NUMBER.sub("#", message)


def signature(suite: str, invariant: str, message: str, places: tuple[str, ...] = ()) -> str:
    """Return twelve hexadecimal digits, equal for messages that differ in numbers only.

    Where source positions are known, they replace the message, with their line numbers.
    """
    text = "\0".join((suite, invariant, *(places or (pattern(message),))))
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:12]
