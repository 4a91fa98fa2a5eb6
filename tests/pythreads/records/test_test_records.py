"""A record of a test function of Python is enough: it names the file and the test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsar_ml.exit_codes import USAGE, VIOLATION
from pulsar_ml.harness.subjects import hash_seed
from tests.commands import call

NAME = "check_visits_of_records"
TEXT = """
import threading


class Page:
    def __init__(self):
        self.visits = 0

    def visit(self):
        visits = self.visits
        self.visits = visits + 1


def test_visits():
    page = Page()
    other = threading.Thread(target=page.visit)
    other.start()
    page.visit()
    other.join()
    assert page.visits == 2
"""


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(hash_seed, "OF_PROCESS", "0")  # as in a process of the command
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{NAME}.py").write_text(TEXT)
    assert call("check", f"{NAME}.py", "--executions", "200").code == VIOLATION
    (path,) = (tmp_path / ".pulsar_ml" / "failures").glob("*.json")
    yield path
    sys.modules.pop(NAME, None)


@pytest.mark.parametrize("command", ["replay", "trace", "explain", "shrink"])
def test_each_command_takes_the_test_from_the_record(record: Path, command: str) -> None:
    assert "a source file and flags" in call(command, str(record)).err  # not without --trust
    done = call(command, str(record), "--trust")
    assert done.code == VIOLATION, done.err
    assert "assert page.visits == 2" in done.out


def test_gdb_and_code_of_python(record: Path) -> None:
    done = call("replay", str(record), "--trust", "--gdb")
    assert done.code == USAGE
    assert "whose lines gdb does not know; --to STEP shows" in done.err or "no gdb" in done.err
    state = call("replay", str(record), "--trust", "--to", "2")
    assert "Page.visits = 0, written by step 2" in state.out


def test_a_test_that_is_gone_is_named(record: Path, tmp_path: Path) -> None:
    file = tmp_path / f"{NAME}.py"
    file.write_text(TEXT.replace("test_visits", "test_other_visits"))
    done = call("replay", str(record), "--trust")
    assert done.code == USAGE
    assert "has no test 'test_visits' any more; it has: test_other_visits" in done.err
    file.unlink()
    assert "which does not exist; run the command in" in call("replay", str(record), "--trust").err
