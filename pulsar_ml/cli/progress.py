"""How far a command is, on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

LINE_SECONDS = 2.0  # what takes less shows no line

Advance = Callable[[int], object]
Begin = Callable[[str, int], Advance]


@contextmanager
def progress(console: Console) -> Iterator[Begin]:
    """A function ``begin(what, total)`` for each part of the work; what it gives is told how much is done."""
    if not console.is_terminal:
        yield lambda what, total: lines(console, what, total)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:

        def begin(what: str, total: int) -> Advance:
            task = bar.add_task(what, total=total)
            return lambda count: bar.advance(task, count)

        yield begin


def lines(console: Console, what: str, total: int) -> Advance:
    done = 0
    shown = time.monotonic()

    def advance(count: int) -> None:
        nonlocal done, shown
        done += count
        now = time.monotonic()
        if now - shown >= LINE_SECONDS:
            shown = now
            console.print(
                f"{what}: {done:,} of {total:,}", highlight=False, soft_wrap=True, markup=False
            )

    return advance
