"""What a sweep tells while it runs: a line that changes on a terminal, plain lines now and then elsewhere, or
one JSON object a line for machines, on the terminal's place or in a file.
"""

from __future__ import annotations

import json
import time
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from pulsar_ml.campaign.run.progress import Progress
from pulsar_ml.campaign.store.merge import Group
from pulsar_ml.errors import UsageError

PLAIN_SECONDS = 5.0  # between two plain lines
JSON_SECONDS = 1.0  # between two JSON lines of one wave
JSON_VERSION = 1  # changes when a field does
AUTO, PLAIN, JSON, NONE = KINDS = ("auto", "plain", "json", "none")


def line(progress: Progress) -> str:
    """Trials, rates, findings and the time left, as one line."""
    rates = f"{progress.rate:,.0f}/s"
    searched = ""
    if progress.executions:
        rates += f", {progress.execution_rate:,.0f} executions/s"
        searched = f", classes {progress.classes:,}"
    found = f"violations {progress.violations:,}, signatures {progress.signatures:,}{searched}"
    if progress.total is None:
        return f"{progress.trials:,} trials, {rates}, {found}, for {clock(progress.elapsed)}"
    left = progress.seconds_left
    part = progress.trials / progress.total
    return (
        f"{progress.trials:,} of {progress.total:,} trials ({part:.0%}), {rates}, {found}, "
        f"left {'?' if left is None else clock(left)}"
    )


def fields(progress: Progress) -> dict[str, Any]:
    """The same for JSON."""
    left = progress.seconds_left
    return {
        "round": progress.round,
        "wave": progress.wave,
        "seconds": round(progress.elapsed, 3),
        "trials": progress.trials,
        "earlier": progress.earlier,
        "planned": progress.total,
        "trials_per_second": round(progress.rate, 3),
        "executions": progress.executions,
        "executions_per_second": round(progress.execution_rate, 3),
        "violations": progress.violations,
        "signatures": progress.signatures,
        "classes": progress.classes,
        "seconds_left": None if left is None else round(left, 1),
    }


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, as short as they allow."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class LiveLine:
    """Shows progress on ``console``; other messages printed through it do not break the line."""

    def __init__(self, console: Console, *, plain: bool = False) -> None:
        self._console = console
        changing = console.is_terminal and not plain
        self._live = Live(console=console, transient=True) if changing else None
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
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()


class JsonLines:
    """Writes one object a line; the first line of a wave always, others not more often than each second."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._last: Progress | None = None
        self._next = 0.0

    def event(self, name: str, **content: object) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._file.write(
            json.dumps({"version": JSON_VERSION, "event": name, "at": at, **content}) + "\n"
        )
        self._file.flush()

    def show(self, progress: Progress) -> None:
        if (
            self._last is not None
            and self._last.wave == progress.wave
            and time.monotonic() < self._next
        ):
            self._last = progress
            return
        self._next = time.monotonic() + JSON_SECONDS
        self._last = progress
        self.event("progress", **fields(progress))

    def end(self, **content: object) -> None:
        """The last line, with the last numbers."""
        last = {} if self._last is None else fields(self._last)
        self.event("end", **last, **content)


class Display:
    """All of it, as ``--progress`` and ``--progress-file`` asked for."""

    def __init__(self, console: Console, *, kind: str = AUTO, file: Path | None = None) -> None:
        """Raises ``UsageError`` when the file cannot be written."""
        self._file = ExitStack()
        self._line = LiveLine(console, plain=kind == PLAIN) if kind in (AUTO, PLAIN) else None
        self._notes = self._line or (LiveLine(console, plain=True) if kind == NONE else None)
        self._lines = [JsonLines(console.file)] if kind == JSON else []  # type: ignore[arg-type]
        if file is not None:
            try:
                self._lines.append(JsonLines(self._file.enter_context(file.open("a"))))
            except OSError as error:
                raise UsageError(
                    f"--progress-file {file} cannot be written: {error.strerror}"
                ) from None

    def begin(self, headline: str, **facts: object) -> None:
        if self._line is not None:
            self._line.say(headline)
        for lines in self._lines:
            lines.event("begin", **facts)

    def show(self, progress: Progress) -> None:
        if self._line is not None:
            self._line.show(progress)
        for lines in self._lines:
            lines.show(progress)

    def found(self, group: Group) -> None:
        """A new signature."""
        if self._line is not None:
            self._line.say(
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
        """Something to know, which also those are told who want no progress."""
        if self._notes is not None:
            self._notes.say(text)
        for lines in self._lines:
            lines.event("note", text=text)

    def end(self, **facts: object) -> None:
        for lines in self._lines:
            lines.end(**facts)

    def live(self) -> AbstractContextManager[object]:
        """While it is entered, a line of the terminal may change."""
        return self._line or nullcontext()

    def close(self) -> None:
        self._file.close()
