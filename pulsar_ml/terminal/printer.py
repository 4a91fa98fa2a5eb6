"""Prints for people. No text from a file or a program under test controls the terminal.

Every command prints through :func:`echo` or :func:`new_console`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from pulsar_ml.terminal.printable import CONTROLS, printable


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
