"""Runs Python without the GIL under the thread sanitizer, with the core built for it.

    python tools/interpreters.py 3.14t-thread        builds the interpreter, once
    python -m tools.thread_sanitizer -m tests.face_fuzz --pairs
    python -m tools.thread_sanitizer -m Cython.Build.Cythonize -i mine.pyx
    python -m tools.thread_sanitizer -c 'import mine; ...'

The interpreter itself and every extension that it compiles are instrumented, so the sanitizer
knows what its locks and reference counts order. Reports are those of all processes of the command;
equal ones are printed once, and the whole of them stays in build/interpreters. Reports of races of
the interpreter alone are left out by the list that CPython publishes with its sources, and by
SUPPRESSIONS below. Exit codes: that of the command; 66 when it succeeded and there are reports; 2
when the interpreter was not built; 4 when the core could not be built; 130 interrupted.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tools.interpreters import executable, suppressions, without_randomisation
from tools.other_interpreter import OtherInterpreter, OtherInterpreterError

NAME = "3.14t-thread"
PACKAGES = ("numpy>=2.0,<3", "pytest>=9,<9.2", "hypothesis>=6.150,<7")
REPORTED = 66
FRAMES = 9  # of each stack that are printed
# Reports go to files, and the command goes on: each run finds all that it can find.
OPTIONS = "exitcode=0 die_after_fork=0 handle_segv=0 second_deadlock_stack=1 history_size=4"
SUPPRESSIONS = ""
FRAME = re.compile(r"^ +#(\d+) (\S+) (.*)$")


def track(report: str) -> str:
    """The first frames of the two accesses, which are the same in equal reports."""
    stacks = [line for line in report.splitlines() if (m := FRAME.match(line)) and m[1] == "0"]
    return "\n".join(re.sub(r" \(.*", "", line) for line in stacks[:2])


def reports_of(folder: Path) -> list[str]:
    """All reports of the files in a folder."""
    texts = [path.read_text(errors="replace") for path in sorted(folder.glob("report.*"))]
    found = [part for text in texts for part in re.split(r"^=+$", text, flags=re.MULTILINE)]
    return [part.strip() for part in found if "WARNING: ThreadSanitizer" in part]


def shortened(report: str) -> str:
    """A report with the first frames of each stack."""
    lines = [
        line for line in report.splitlines() if not (m := FRAME.match(line)) or int(m[1]) < FRAMES
    ]
    return "\n".join(lines)


def show(reports: list[str]) -> None:
    """Prints one of each kind of report, the most frequent kind first."""
    kinds = Counter(track(report) for report in reports)
    first = {track(report): report for report in reversed(reports)}
    for kind, count in kinds.most_common():
        print(f"\n{count} of this kind:\n{shortened(first[kind])}", file=sys.stderr)
    print(f"\n{len(reports)} reports of {len(kinds)} kinds", file=sys.stderr)


def sanitized() -> OtherInterpreter:
    """The interpreter. Address space layout randomisation can collide with the shadow memory."""
    # Its own work, such as the installation of packages, is not watched.
    variables = {"PYTHON_GIL": "0", "TSAN_OPTIONS": "report_bugs=0 die_after_fork=0"}
    return OtherInterpreter(NAME, executable(NAME), tuple(without_randomisation()), variables)


def run(arguments: list[str]) -> int:
    """Runs Python with these arguments; returns the exit code. Raises OtherInterpreterError."""
    python = sanitized()
    python.install(*PACKAGES)
    core = python.build_core("thread")
    folder = Path(tempfile.mkdtemp(prefix="reports-", dir=python.folder))
    known = python.folder / "suppressions.txt"
    known.write_text(f"{suppressions(NAME).read_text()}\n{SUPPRESSIONS}")
    environment = python.environment(core)
    environment["TSAN_OPTIONS"] = f"{OPTIONS} log_path='{folder / 'report'}' suppressions='{known}'"
    environment["PYTEST_ADDOPTS"] = "--import-mode=append"  # behind the folder of the core
    done = subprocess.run([*python.command, *arguments], env=environment, check=False)
    reports = reports_of(folder)
    if reports:
        show(reports)
        print(f"the whole of them is in {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return done.returncode or (REPORTED if reports else 0)


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: python -m tools.thread_sanitizer ARGUMENTS OF python", file=sys.stderr)
        return 2
    if not executable(NAME).exists():
        print(
            f"there is no interpreter without the GIL that is built for the thread sanitizer: "
            f"build one by `python tools/interpreters.py {NAME}`",
            file=sys.stderr,
        )
        return 2
    try:
        return run(sys.argv[1:])
    except OtherInterpreterError as error:
        print(error, file=sys.stderr)
        return 4


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
