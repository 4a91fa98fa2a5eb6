"""The progress display of all commands."""

from __future__ import annotations

import re
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from pulsar_ml.campaign.run.progress import Progress
from pulsar_ml.sweep.display import short_line
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


@pytest.mark.parametrize("width", [40, 80])
def test_a_changing_line_is_as_wide_as_the_terminal(width: int) -> None:
    file = StringIO()
    with ProgressDisplay(Console(file=file, force_terminal=True, width=width)) as progress:
        progress.begin("rows", 10)
        progress.update(5, "word " * 60 + "end")
    text = re.sub(r"\x1b\[[^A-Za-z]*[A-Za-z]", "", file.getvalue())
    lines = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    assert lines and all(len(line) <= width for line in lines), lines
    assert "end" not in text and "0:00:00" in lines[-1] and "…" in lines[-1]


def test_the_line_of_a_sweep_fits_into_80_columns() -> None:
    moment = Progress(
        trials=123_456_789, total=999_999_999, violations=123_456, signatures=12_345,
        elapsed=9_876.0, executions=9_876_543_210, classes=87_654_321,
    )  # fmt: skip
    file = StringIO()
    with ProgressDisplay(Console(file=file, force_terminal=True, width=80)) as progress:
        assert progress.is_changing
        progress.begin("trials", moment.total)
        progress.update(moment.trials, short_line(moment))
    assert short_line(moment) in file.getvalue(), "nothing is cut"
    assert "of 1.00 G, 1.00 M exec./s, 12.3 k found, left 19:" in short_line(moment)
    assert short_line(Progress(3, None, 0, 0, 2.0), 60.0) == "3, 2/s, 0 found, left 0:58"
