"""A console of Rich for tables and progress, in which texts cannot control the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from pulsar_ml.terminal.printable import CONTROLS, printable
from pulsar_ml.terminal.printer import leave_closed_output


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

    def on_broken_pipe(self) -> None:
        self.quiet = True
        leave_closed_output()


def new_console(**options: Any) -> Console:
    """The console of standard output, or with ``stderr=True`` of standard error."""
    return PrintableConsole(**{"highlight": False, **options})
