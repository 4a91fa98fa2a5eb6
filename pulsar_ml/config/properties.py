"""A parser of Java properties with line numbers, on top of the library ``javaproperties``."""

from __future__ import annotations

from dataclasses import dataclass

import javaproperties

from pulsar_ml.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Property:
    """A key, its value, and the number of its first line."""

    key: str
    value: str
    line: int


def parse_properties(text: str, file: str) -> list[Property]:
    """All properties in order, repeated keys included. ConfigError for a bad ``\\u`` escape."""
    found = []
    line = 1
    try:
        for element in javaproperties.parse(text):
            if isinstance(element, javaproperties.KeyValue):
                found.append(Property(element.key, element.value, line))
            line += lines_of(element.source)
    except javaproperties.InvalidUEscapeError as error:
        raise ConfigError(
            f"{file}:{line}: {error.escape!r} is not an escape; \\u takes four hexadecimal digits"
        ) from None
    return found


def lines_of(source: str) -> int:
    """The number of line ends (CR, LF or CR LF) in a text."""
    return source.count("\n") + source.count("\r") - source.count("\r\n")


def format_property(key: str, value: str) -> str:
    """The line of a property; parsing returns the same key and value."""
    return javaproperties.join_key_value(key, value)


def format_comment(text: str) -> str:
    """Comment lines."""
    return javaproperties.to_comment(text)
