"""Runs a command and shows every three seconds how far it is: its last line of output.

    python tools/progress.py LABEL LOG COMMAND...

The whole output goes into the file LOG, and is shown when the command fails. Needs the standard
library alone: it runs before there is a virtual environment. Exit codes: 0 done; 4 the command
failed; 130 interrupted.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import IO, TextIO

PERIOD = 3.0  # seconds
WIDTH = 100
FAILED = 4
INTERRUPTED = 130


class Display:
    """One line that changes on a terminal; a line for each change elsewhere."""

    def __init__(self, label: str, stream: TextIO) -> None:
        self.label = label
        self.stream = stream
        self.started = time.monotonic()

    def show(self, text: str, *, last: bool = False) -> None:
        seconds = time.monotonic() - self.started
        line = f"{self.label}, {seconds:.0f} s: {text}"[:WIDTH]
        if self.stream.isatty():
            self.stream.write(f"\r{line:{WIDTH}}" + ("\n" if last else ""))
        else:
            self.stream.write(line + "\n")
        self.stream.flush()


def copy_lines(source: IO[str], log: IO[str], newest: deque[str]) -> None:
    """Copies all lines into the log and keeps the newest one that is not empty."""
    for line in source:
        log.write(line)
        log.flush()
        if text := line.strip():
            newest.append(text)


def run(label: str, path: Path, command: list[str], stream: TextIO) -> int:
    """The exit code of the command, whose output goes into the log."""
    display = Display(label, stream)
    newest: deque[str] = deque(["started"], maxlen=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        path.open("w") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process,
    ):
        assert process.stdout is not None
        reader = threading.Thread(target=copy_lines, args=(process.stdout, log, newest))
        reader.start()
        display.show(newest[-1])
        while reader.is_alive():
            reader.join(PERIOD)
            if reader.is_alive():
                display.show(newest[-1])
        code = process.wait()
    display.show("failed" if code else "done", last=True)
    return code


def main(label: str, log: str, *command: str) -> int:
    try:
        code = run(label, Path(log), list(command), sys.stderr)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        print(f"{label} failed: {error}", file=sys.stderr)
        return FAILED
    if code:
        sys.stderr.write(Path(log).read_text(errors="replace"))
        print(f"{label} failed; the output is above and in {log}", file=sys.stderr)
    return FAILED if code else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
