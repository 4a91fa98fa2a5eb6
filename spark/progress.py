"""The live line of a sweep: one line that changes on a terminal, plain lines now and then elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from pulsar_ml.campaign.waves import Progress

PLAIN_SECONDS = 5.0  # between two plain lines


def line(progress: Progress) -> str:
    """Trials, rate, findings and the time left, as one line."""
    left = progress.seconds_left
    return (
        f"{progress.trials:,} of {progress.total:,} trials ({progress.trials / progress.total:.0%}), "
        f"{progress.rate:,.0f}/s, violations {progress.violations:,}, signatures {progress.signatures:,}, "
        f"left {'?' if left is None else clock(left)}"
    )


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, as short as they allow."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class LiveLine:
    """Shows progress on ``console``; other messages printed through it do not break the line."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, transient=True) if console.is_terminal else None
        self._next_plain = time.monotonic() + PLAIN_SECONDS

    def show(self, progress: Progress) -> None:
        if self._live is not None:
            self._live.update(Text(line(progress)))
        elif time.monotonic() >= self._next_plain:
            self._next_plain = time.monotonic() + PLAIN_SECONDS
            self.say(line(progress))

    def say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, highlight=False, markup=False)

    def __enter__(self) -> LiveLine:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
