"""Files of Java properties, with the line on which each key stands.

The syntax (comments with ``#`` and ``!``, separators, escapes, continuation lines) is read by the library
``javaproperties``.
"""

from __future__ import annotations

from dataclasses import dataclass

import javaproperties

from pulsar_ml.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Property:
    """A key, its value and the number of the line on which it begins."""

    key: str
    value: str
    line: int


def parse_properties(text: str, file: str) -> list[Property]:
    """All properties of a text in their order, repeated ones too. ConfigError on a damaged ``\\u`` escape."""
    found = []
    line = 1
    try:
        for element in javaproperties.parse(text):
            if isinstance(element, javaproperties.KeyValue):
                found.append(Property(element.key, element.value, line))
            line += lines_of(element.source)
    except javaproperties.InvalidUEscapeError as error:
        raise ConfigError(
            f"{file}:{line}: {error.escape!r} is no escape; \\u takes four hexadecimal digits"
        ) from None
    return found


def lines_of(source: str) -> int:
    """Lines of a piece of a file: those that end in it, at CR, LF or both."""
    return source.count("\n") + source.count("\r") - source.count("\r\n")


def format_property(key: str, value: str) -> str:
    """One line that reads back as the key and the value."""
    return javaproperties.join_key_value(key, value)


def format_comment(text: str) -> str:
    """Lines that read back as nothing."""
    return javaproperties.to_comment(text)
