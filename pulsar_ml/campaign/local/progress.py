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

    def begin(
        self, suite: str, seconds: float | None, programs: int | None, seed: int, threads: int
    ) -> None:
        self._seconds = seconds
        budget = f"{programs} programs" if seconds is None else f"{seconds:g} s"
        self._begin(suite, f"{budget} from seed {seed} on {threads} threads", seconds or programs)

    def begin_exploring(self, suite: str, executions: int, seed: int) -> None:
        self._seconds = None
        self._begin(
            suite, f"{executions:,} executions from seed {seed} under the engine", executions
        )

    def _begin(self, suite: str, what: str, total: float | None) -> None:
        self._suite = suite
        self._started = self._shown = time.monotonic()
        self._console.print(f"{suite}: {what}", highlight=False, soft_wrap=True)
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
            self._task = self._bar.add_task(suite, total=total, counts="")
            self._bar.start()

    def advance(self, programs: int, operations: int, failures: int) -> None:
        done = programs if self._seconds is None else time.monotonic() - self._started
        self._advance(done, counts(programs, operations, failures))

    def explored(self, executions: int, programs: int) -> None:
        self._advance(executions, f"{executions:,} executions of {programs} programs")

    def _advance(self, done: float, told: str) -> None:
        now = time.monotonic()
        if self._bar is not None:
            self._bar.update(self._task, completed=done, counts=told)
        elif now - self._shown >= LINE_SECONDS:
            self._shown = now
            line = f"{self._suite}: {now - self._started:.0f} s, {told}"
            self._console.print(line, highlight=False, soft_wrap=True)

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def counts(programs: int, operations: int, failures: int) -> str:
    return f"{programs:,} programs, {operations:,} operations, {failures} failed"
