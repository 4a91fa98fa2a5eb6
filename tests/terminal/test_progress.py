"""The progress display of all commands."""

from __future__ import annotations

from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from pulsar_ml.terminal.progress import LINE_SECONDS, ProgressDisplay, clock


def display(file: StringIO, **more: bool) -> ProgressDisplay:
    return ProgressDisplay(Console(file=file, width=80), **more)


def set_clock(monkeypatch: pytest.MonkeyPatch, *times: float) -> None:
    ticks = iter(times)
    monkeypatch.setattr(
        "pulsar_ml.terminal.progress.time",
        SimpleNamespace(monotonic=lambda: next(ticks, times[-1])),
    )


def test_without_a_terminal_a_line_appears_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_clock(monkeypatch, 0.0, 1.0, LINE_SECONDS, LINE_SECONDS, LINE_SECONDS + 1)
    file = StringIO()
    with display(file) as progress:
        progress.begin("reading rows", 4000)
        for _ in range(4):
            progress.advance(1000)
    assert file.getvalue() == "reading rows: 2,000 of 4,000\n"


def test_a_quick_task_shows_its_headline_only(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, 0.0)
    file = StringIO()
    with display(file) as progress:
        progress.begin("reading rows", 4000, "4,000 rows of a run")
        progress.advance(4000)
    assert file.getvalue() == "4,000 rows of a run\n"


def test_quiet_shows_messages_only(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, 0.0, 100.0)
    file = StringIO()
    with display(file, quiet=True) as progress:
        progress.begin("reading rows", 4000, "4,000 rows")
        progress.advance(4000)
        progress.message("the disk is nearly full")
    assert file.getvalue() == "the disk is nearly full\n"


@pytest.mark.parametrize("plain", [False, True])
def test_a_terminal_gets_a_bar_unless_lines_are_requested(plain: bool) -> None:
    file = StringIO()
    console = Console(file=file, force_terminal=True, width=80)
    with ProgressDisplay(console, plain=plain) as progress:
        progress.begin("rows", 10, "ten rows")
        progress.advance(5)
        progress.message("a message")
    assert ("\x1b[" in file.getvalue()) == (not plain)
    assert "ten rows" in file.getvalue() and "a message" in file.getvalue()


def test_times_are_as_short_as_possible() -> None:
    assert [clock(seconds) for seconds in (7, 61, 3600)] == ["0:07", "1:01", "1:00:00"]
