"""Which violations look alike: a short hash of suite, invariant and message without its numbers."""

from __future__ import annotations

import hashlib
import re

# Hexadecimal before decimal, and a sign only where it is not a minus between two numbers.
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|(?<![\w.])-?\d+(\.\d+)?|\d+")


def pattern(message: str) -> str:
    """The message with every number replaced by ``#``."""
    return _NUMBER.sub("#", message)


def signature(suite: str, invariant: str, message: str, places: tuple[str, ...] = ()) -> str:
    """Twelve hexadecimal digits, equal for the same broken invariant told with other numbers.

    Places in the source say more than a message: where they are known they take its place, with
    their line numbers.
    """
    text = "\0".join((suite, invariant, *(places or (pattern(message),))))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
