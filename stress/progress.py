"""Progress on standard error: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

LINE_SECONDS = 2.0


class Progress:
    """Shows one suite after the other. Lines are flushed, so a reader sees the first one at once."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: Bar | None = None
        self._task = TaskID(0)
        self._suite = ""
        self._seconds: float | None = None
        self._started = 0.0
        self._shown = 0.0

    def begin(self, suite: str, seconds: float | None, programs: int | None, seed: int, threads: int) -> None:
        self._suite = suite
        self._seconds = seconds
        self._started = self._shown = time.monotonic()
        budget = f"{programs} programs" if seconds is None else f"{seconds:g} s"
        line = f"{suite}: {budget} from seed {seed} on {threads} threads"
        self._console.print(line, highlight=False, soft_wrap=True)
        if self._console.is_terminal:
            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[counts]}"),
                console=self._console,
                transient=True,
                refresh_per_second=4,
            )
            self._task = self._bar.add_task(suite, total=seconds or programs, counts="")
            self._bar.start()

    def advance(self, programs: int, operations: int, failures: int) -> None:
        now = time.monotonic()
        if self._bar is not None:
            done = programs if self._seconds is None else now - self._started
            self._bar.update(self._task, completed=done, counts=counts(programs, operations, failures))
        elif now - self._shown >= LINE_SECONDS:
            self._shown = now
            line = f"{self._suite}: {now - self._started:.0f} s, {counts(programs, operations, failures)}"
            self._console.print(line, highlight=False, soft_wrap=True)

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def counts(programs: int, operations: int, failures: int) -> str:
    return f"{programs:,} programs, {operations:,} operations, {failures} failed"
