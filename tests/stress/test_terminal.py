"""Text from files and programs never controls the terminal; one function prints for all."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.table import Table
from rich.text import Text

from pulsar_ml.cli import main
from pulsar_ml.terminal.console import new_console
from pulsar_ml.terminal.printable import printable
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.progress import ProgressDisplay
from tests import ROOT
from tests.report.kit import failure_of, row, violation, write_run

HOSTILE = "a\x1b]0;title\x07b\x1b[2Jc\x9b31md\re\x08f\u202eg\ud800h\x7f"
SHOWN = r"a\x1b]0;title\x07b\x1b[2Jc\x9b31md\x0de\x08f\u202eg\ud800h\x7f"


def test_controls_are_escapes_and_other_text_stays() -> None:
    assert printable(HOSTILE) == SHOWN
    text = "two lines\n\tand 日本語 ✓ é\n"
    assert printable(text) == text and printable(SHOWN) == SHOWN


def test_echo_prints_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    echo(HOSTILE)
    echo(HOSTILE, err=True)
    said = capsys.readouterr()
    assert said.out == said.err == f"{SHOWN}\n"


@pytest.mark.parametrize("terminal", [False, True])
def test_a_console_prints_escapes_and_its_own_colours(terminal: bool) -> None:
    file = io.StringIO()
    console = new_console(file=file, force_terminal=terminal, width=200)
    table = Table(HOSTILE, title=HOSTILE)
    table.add_row(Text(HOSTILE, style="bold"))
    for shown in (HOSTILE, Text(HOSTILE), table, f"[bold red]{HOSTILE.replace('[', '(')}[/]"):
        console.print(shown)
    written = re.sub("\x1b\\[[0-9;]*m", "", file.getvalue())
    assert printable(written) == written, written
    assert written.count(r"\x9b31m") >= 4  # a column may fold
    assert ("\x1b[1m" in file.getvalue()) is terminal


def test_the_progress_of_a_hostile_suite(capsys: pytest.CaptureFixture[str]) -> None:
    file = io.StringIO()
    with ProgressDisplay(new_console(file=file, force_terminal=True, width=200)) as progress:
        progress.begin(HOSTILE, 3, HOSTILE)
        progress.update(1, HOSTILE)
    written = re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", file.getvalue()).replace("\r", "")
    assert printable(written) == written and r"\x9b31m" in written


@pytest.mark.parametrize("command", ["replay", "report"])
def test_a_hostile_file(tmp_path: Path, command: str) -> None:
    """Messages, suites' names and texts of a record or a run, at each command that shows them."""
    found = violation("I1", HOSTILE.replace("\ud800", ""))
    failure = json.loads(failure_of("race_met").to_json())
    if command == "replay":
        path = tmp_path / "record.json"
        path.write_text(json.dumps({**failure, "subject": HOSTILE, "module": ""}))
        words = ["replay", str(path)]
    else:
        run = write_run(tmp_path / "run", [row(0, suite="a\x1b[2Jb", found=[found])])
        words = ["report", str(run), "--format", "markdown", "--out", "-"]
    done = CliRunner().invoke(main, words)
    assert printable(done.output) == done.output, done.output
    assert r"\x1b" in done.output or command == "report", done.output


ALLOWED = {  # a child's answer to its parent, and the log of an executor
    "pulsar_ml/terminal/console.py",
    "pulsar_ml/terminal/printer.py",
    "pulsar_ml/campaign/shrink/shrinking.py",
    "pulsar_ml/distributed/machines/environment.py",
    "pulsar_ml/distributed/tasks.py",
    "stress/mutants/table/sanitized_trials.py",
}
PRINTING = re.compile(r"\bclick\.s?echo\(|(?<![\w.])Console\(|(?<![\w.])(?<!def )print\(")


def test_every_command_prints_through_it() -> None:
    printing = {
        path.relative_to(ROOT).as_posix()
        for package in ("pulsar_ml", "spark")
        for path in (ROOT / package).rglob("*.py")
        if PRINTING.search(path.read_text())
    }
    assert printing <= ALLOWED, printing - ALLOWED
    assert PRINTING.search('    click.echo("x")') and PRINTING.search("x = Console(stderr=True)")
