"""Words of messages and reports."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 signature``, ``2 signatures``, ``2,000 classes``."""
    ending = "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun if number == 1 else plural or noun + ending}"
