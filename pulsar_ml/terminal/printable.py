"""Text from files and programs under test, as it may be shown: without control characters."""

from __future__ import annotations

import re

# Control characters but tab and line feed, marks that change the direction of text, and halves of
# characters, which no terminal can show.
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Return the text with each control character as an escape, such as ``\\x1b``."""
    return CONTROLS.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
