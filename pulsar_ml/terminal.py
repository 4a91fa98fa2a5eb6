"""Prints for people. No text from a file or a program under test controls the terminal.

Every command prints through :func:`echo` or :func:`new_console`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

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


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text to standard output, or with ``err`` to standard error."""
    click.echo(printable(text), err=err, nl=nl)


class PrintableConsole(Console):
    """A console whose own control codes reach the terminal, and no others."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or not CONTROLS.search(segment.text):
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)


def new_console(**options: Any) -> Console:
    """The console of standard output, or with ``stderr=True`` of standard error."""
    return PrintableConsole(**{"highlight": False, **options})
