"""The display of a running sweep: a bar or plain lines for people, JSON lines for programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console

from pulsar_ml.campaign.run.progress import Progress
from pulsar_ml.campaign.store.merge import Group
from pulsar_ml.campaign.store.summary import short_number
from pulsar_ml.errors import UsageError
from pulsar_ml.sweep.events import JsonLines
from pulsar_ml.terminal.progress import ProgressDisplay, clock

AUTO, PLAIN, JSON, NONE = KINDS = ("auto", "plain", "json", "none")


def line(progress: Progress, seconds: float | None = None) -> str:
    """Trials, rates, findings and time as one line; ``seconds`` bound the sweep."""
    rates = f"{progress.rate:,.0f}/s"
    searched = ""
    if progress.executions:
        rates += f", {progress.execution_rate:,.0f} executions/s"
        searched = f", classes {progress.classes:,}"
    if progress.inside is not None:
        rates += f", {progress.inside:.0%} inside {'executions' if progress.executions else 'runs'}"
    found = f"violations {progress.violations:,}, signatures {progress.signatures:,}{searched}"
    if progress.total is None:
        bound = f" of {clock(seconds)}" if seconds is not None else ""
        return f"{progress.trials:,} trials, {rates}, {found}, for {clock(progress.elapsed)}{bound}"
    left = progress.seconds_left
    if seconds is not None:
        remaining = max(0.0, seconds - progress.elapsed)
        left = remaining if left is None else min(left, remaining)
    share = progress.trials / progress.total
    return (
        f"{progress.trials:,} of {progress.total:,} trials ({share:.0%}), {rates}, {found}, "
        f"left {'?' if left is None else clock(left)}"
    )


def short_line(progress: Progress, seconds: float | None = None) -> str:
    """The line beside the bar: what fits into 80 columns. Other displays have all numbers."""
    total = "" if progress.total is None else f" of {short_number(progress.total)}"
    rate = f"{short_number(progress.rate)}/s"
    if progress.executions:
        rate = f"{short_number(progress.execution_rate)} exec./s"
    left = progress.seconds_left
    if seconds is not None:
        remaining = max(0.0, seconds - progress.elapsed)
        left = remaining if left is None else min(left, remaining)
    end = "" if left is None else f", left {clock(left)}"
    return (
        f"{short_number(progress.trials)}{total}, {rate}, "
        f"{short_number(progress.signatures)} found{end}"
    )


class Display:
    """The display that ``--progress`` and ``--progress-file`` choose."""

    def __init__(self, console: Console, *, kind: str = AUTO, file: Path | None = None) -> None:
        """Raises ``UsageError`` when the file cannot be written."""
        self._file = ExitStack()
        self._kind = kind
        self._screen = ProgressDisplay(console, plain=kind != AUTO, quiet=kind in (JSON, NONE))
        self._lines = [JsonLines(console.file)] if kind == JSON else []  # type: ignore[arg-type]
        self._seconds: float | None = None
        if file is not None:
            try:
                self._lines.append(JsonLines(self._file.enter_context(file.open("a"))))
            except OSError as error:
                raise UsageError(
                    f"--progress-file {file} cannot be written: {error.strerror}"
                ) from None

    @property
    def _for_people(self) -> bool:
        return self._kind in (AUTO, PLAIN)

    def begin(self, headline: str, *, seconds: float | None = None, **facts: object) -> None:
        """Announces the sweep; ``seconds`` bound its time."""
        self._seconds = seconds
        if self._for_people:
            self._screen.message(headline)
        for lines in self._lines:
            lines.event("begin", **facts)

    def show(self, progress: Progress) -> None:
        if self._for_people:
            text = short_line if self._screen.is_changing else line
            self._screen.update(progress.trials, text(progress, self._seconds))
        for lines in self._lines:
            lines.show(progress)

    def found(self, group: Group) -> None:
        """Reports a new signature."""
        if self._for_people:
            self._screen.message(
                f"violation: {group.suite} {group.invariant} at seed {group.seed}: {group.message}"
            )
        for lines in self._lines:
            lines.event(
                "violation",
                suite=group.suite,
                invariant=group.invariant,
                seed=group.seed,
                signature=group.signature,
                message=group.message,
            )

    def note(self, text: str) -> None:
        """Prints something that needs attention, also with ``--progress none``."""
        if self._kind != JSON:
            self._screen.message(text)
        for lines in self._lines:
            lines.event("note", text=text)

    def end(self, **facts: object) -> None:
        for lines in self._lines:
            lines.end(**facts)

    @contextmanager
    def live(self, total: int | None = None) -> Iterator[None]:
        """Shows a bar while it is entered."""
        self._screen.begin("trials", total)
        try:
            yield
        finally:
            self._screen.end()

    def close(self) -> None:
        self._file.close()
