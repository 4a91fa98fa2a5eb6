"""The progress display of all commands, on standard error.

A terminal gets a bar that changes; elsewhere a plain line appears every few seconds.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from pulsar_ml.terminal.console import new_console

LINE_SECONDS = 5.0  # between two plain lines


# The text between the bar and the time: cut where a narrow terminal ends.
ONE_LINE = Column(ratio=1, no_wrap=True, overflow="ellipsis")


class ProgressDisplay:
    """Shows one task at a time: ``begin``, then ``update`` or ``advance``, then ``end``.

    ``message`` prints a line that stays. ``plain`` asks for lines also on a terminal, and ``quiet``
    for nothing but messages.
    """

    def __init__(
        self, console: Console | None = None, *, plain: bool = False, quiet: bool = False
    ) -> None:
        self._console = console or new_console(stderr=True)
        self._quiet = quiet
        self._changing = self._console.is_terminal and not plain and not quiet
        self._bar: Progress | None = None
        self._title = ""
        self._total: float | None = None
        self._done = 0.0
        self._began = 0.0
        self._next_line = 0.0

    @property
    def is_changing(self) -> bool:
        """True when the progress is one line that changes, as wide as the terminal."""
        return self._changing

    def message(self, text: str) -> None:
        """Prints a line that stays; it does not break the bar."""
        self._console.print(text, soft_wrap=True, highlight=False, markup=False)

    def begin(self, title: str, total: float | None = None, headline: str = "") -> None:
        """Starts a task; ``total`` is None when nobody knows it. The headline stays."""
        self.end()
        self._title, self._total, self._done = title, total, 0.0
        self._began = time.monotonic()
        self._next_line = self._began + LINE_SECONDS
        if headline and not self._quiet:
            self.message(headline)
        if self._changing:
            self._bar = Progress(
                _ShortBar(), TextColumn("{task.description}", markup=False, table_column=ONE_LINE),
                _Elapsed(), console=self._console, transient=True, refresh_per_second=4,
                expand=True,
            )  # fmt: skip
            self._bar.add_task(title, total=total)
            self._bar.start()

    def update(self, done: float, text: str = "") -> None:
        """Sets how much is done; ``text`` replaces the default count."""
        self._done = done
        if self._bar is not None:
            (task,) = self._bar.task_ids
            self._bar.update(task, completed=done, description=text or self._count())
        elif not self._quiet and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_SECONDS
            self.message(text or self._count())

    def advance(self, count: float = 1) -> None:
        """Adds to what is done."""
        self.update(self._done + count)

    def share(self, part: float) -> None:
        """Sets how much is done, as a share of the task."""
        self.update(part, f"{self._title}: {part:.0%}")

    def end(self) -> None:
        """Removes the bar; harmless without one."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _count(self) -> str:
        done = f"{self._done:,.0f}"
        return f"{self._title}: {done}" + (f" of {self._total:,.0f}" if self._total else "")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()


class _ShortBar(BarColumn):
    """A bar where the total is known, and nothing elsewhere."""

    def __init__(self) -> None:
        super().__init__(bar_width=10)

    def render(self, task: Task) -> Text:  # type: ignore[override]
        if task.total is None:
            return Text("")
        return super().render(task)  # type: ignore[return-value]


class _Elapsed(ProgressColumn):
    """The time since the task began."""

    def render(self, task: Task) -> Text:
        return TimeElapsedColumn().render(task)


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, as short as possible: ``0:07``, ``1:00:00``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
