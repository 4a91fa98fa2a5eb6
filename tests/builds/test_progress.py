"""tools/progress.py shows the last line of a running command, and the output of a failed one."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest

from tools import progress

TOOL = Path(progress.__file__)


def ended(log: Path, *command: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, str(TOOL), "packages", str(log), *command]
    return subprocess.run(arguments, capture_output=True, text=True)


def test_a_command_that_succeeds_leaves_its_output_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "packages.log"
    done = ended(log, sys.executable, "-c", "print('one'); print('two')")
    assert (done.returncode, done.stdout) == (0, "")
    assert log.read_text() == "one\ntwo\n"
    lines = done.stderr.splitlines()
    assert lines[0].startswith("packages, 0 s: ") and lines[-1].endswith(": done")


@pytest.mark.parametrize("command", [("import sys; print('no disk'); sys.exit(7)",), ("x = = 1",)])
def test_a_command_that_fails_shows_its_output(command: tuple[str], tmp_path: Path) -> None:
    done = ended(tmp_path / "log", sys.executable, "-c", *command)
    assert done.returncode == progress.FAILED
    assert ("no disk" in done.stderr) == ("no disk" in command[0])
    assert f"packages failed; the output is above and in {tmp_path / 'log'}" in done.stderr


def test_a_command_that_does_not_exist_is_one_sentence(tmp_path: Path) -> None:
    done = ended(tmp_path / "log", str(tmp_path / "nothing"))
    assert done.returncode == progress.FAILED
    assert done.stderr.splitlines()[-1].startswith("packages failed: ")


class Screen(io.StringIO):
    """Opens a pipe at the fourth line, for which the command waits."""

    def __init__(self, pipe: Path) -> None:
        super().__init__()
        self.pipe = pipe

    def write(self, text: str) -> int:
        written = super().write(text)
        if len(self.getvalue().splitlines()) == 4 and self.pipe.exists():
            os.close(os.open(self.pipe, os.O_WRONLY))
            self.pipe.unlink()
        return written


def test_a_silent_command_is_shown_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PERIOD", 0.01)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    screen = Screen(pipe)
    command = ["sh", "-c", f"echo compiling {'x' * 200}; cat {pipe}"]
    assert progress.run("extensions", tmp_path / "log", command, screen) == 0
    lines = screen.getvalue().splitlines()
    assert len(lines) >= 5
    assert all(len(line) <= progress.WIDTH for line in lines)
    assert lines[-1].endswith("done")
    assert (tmp_path / "log").read_text().startswith("compiling xxx")


def test_the_newest_line_with_text_is_shown() -> None:
    log, newest = io.StringIO(), deque(["started"], maxlen=1)
    progress.copy_lines(io.StringIO("one\n  two \n\n"), log, newest)
    assert (log.getvalue(), list(newest)) == ("one\n  two \n\n", ["two"])
