"""Runs the test command on each interpreter that is here, and writes the table of platforms.

    make platforms                                every interpreter that is found
    make platforms ARGS="3.12 3.14t"              these
    make platforms ARGS="3.12 --compiler clang"   another C compiler
    python -m tools.platforms --page              docs/platforms.md from the stored rows alone

Each run is a clone of the last commit with a virtual environment of its own, below
``build/platforms``, where its log stays. Interpreters are looked for on ``PATH``, in pyenv and
among those of ``tools/interpreters.py``. A row is stored whether tests failed or not. Exit codes: 0
all tests of all runs passed; 1 a test failed; 2 an interpreter that is not here; 4 a run did not
get as far as its tests, or not to their end; 130 interrupted.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tools.interpreters import built

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "platforms"
ROWS = ROOT / "tools" / "platforms.csv"
PAGE = ROOT / "docs" / "platforms.md"
PROGRESS = ROOT / "tools" / "progress.py"
BEGIN, END = "<!-- rows: python -m tools.platforms --page -->", "<!-- end of rows -->"
OLDEST = (3, 11)
QUESTION = (
    "import platform, sysconfig; print(platform.python_version(), "
    "'no' if sysconfig.get_config_var('Py_GIL_DISABLED') else 'yes')"
)


@dataclass(frozen=True)
class Interpreter:
    """An executable of CPython: its version and whether it has a GIL."""

    path: Path
    version: str
    has_gil: bool

    @property
    def name(self) -> str:
        """The short name, such as ``3.12`` or ``3.14t``."""
        return ".".join(self.version.split(".")[:2]) + ("" if self.has_gil else "t")


@dataclass(frozen=True)
class Row:
    """The result of one run of the test command."""

    date: str
    commit: str
    interpreter: str
    gil: str
    compiler: str
    processor: str
    system: str
    passed: int
    failed: int
    left_out: str

    @property
    def place(self) -> tuple[str, str, str, str]:
        """The key of a row: a newer one with the same key replaces it."""
        short = ".".join(self.interpreter.split(".")[:2])
        return short, self.gil, self.compiler.partition(".")[0], self.processor


def question(path: Path) -> Interpreter | None:
    """The interpreter of an executable; None when it is too old, or is none."""
    try:
        answer = subprocess.run(
            [str(path), "-c", QUESTION], capture_output=True, text=True, timeout=60, check=True
        ).stdout.split()
        version, gil = answer
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        return None
    return Interpreter(path, version, gil == "yes")


def interpreters() -> dict[str, Interpreter]:
    """The interpreters of this machine by short name; those on PATH come before others."""
    names = [f"python3.{minor}{flag}" for minor in range(OLDEST[1], 20) for flag in ("", "t")]
    on_path = [Path(path) for path in map(shutil.which, names) if path]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    paths = [*on_path, *sorted(pyenv.glob("3.*/bin/python3")), *built().values()]
    found = [each for each in map(question, paths) if each is not None]
    return {each.name: each for each in reversed(found)}


def compiler_version(compiler: str) -> str:
    """The name and version that a C compiler gives, such as ``gcc 12.2.0``."""
    answer = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    words = answer.stdout.splitlines()[0].split()
    kind = "clang" if "clang" in answer.stdout.splitlines()[0] else "gcc"
    numbers = [word for word in words if word[0].isdigit()]
    return f"{kind} {numbers[-1] if kind == 'gcc' else numbers[0]}"


def system() -> str:
    """The system that ran the tests, such as ``Debian 12``."""
    try:
        about = platform.freedesktop_os_release()
    except OSError:
        return platform.system()
    return f"{about.get('NAME', '').split()[0]} {about.get('VERSION_ID', '')}".strip()


def counts(report: Path) -> tuple[int, int]:
    """Tests that passed and tests that did not, of a JUnit file. Raises OSError, ParseError."""
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    total, wrong = (
        sum(int(suite.get(key, 0)) for suite in suites for key in keys)
        for keys in (("tests",), ("failures", "errors", "skipped"))
    )
    return total - wrong, wrong


def left_out(log: Path) -> str:
    """The header's sentences about tests that were left out, for want of a tool."""
    lines = log.read_text(errors="replace").splitlines()
    return "; ".join(line.partition(":")[0] for line in lines if ": left out are" in line)


def was_ended(log: Path) -> bool:
    """True if pytest says that it was ended before its last test."""
    return "\n!!!" in log.read_text(errors="replace")


def run(interpreter: Interpreter, compiler: str) -> Row | None:
    """Runs the test command in a clone; None when it did not get to the end of its tests."""
    name = f"{interpreter.name}-{Path(compiler).name}"
    clone, log, report = (FOLDER / f"{name}{suffix}" for suffix in ("", ".log", ".xml"))
    shutil.rmtree(clone, ignore_errors=True)
    report.unlink(missing_ok=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    commit = subprocess.run(
        ["git", "-C", str(clone), "rev-parse", "--short=12", "HEAD"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    settings = {"PYTHON": str(interpreter.path), "CC": compiler, "PULSAR_ML_STRICT": "1"}
    if not interpreter.has_gil:
        settings["PYTHON_GIL"] = "0"
    # Pytest's header has the tools that are missing; without -v it is not printed.
    command = ["make", "test", f"ARGS=--junitxml={report} -v"]
    shown = [sys.executable, str(PROGRESS), f"{name}, tests", str(log), *command]
    subprocess.run(shown, cwd=clone, env=os.environ | settings, check=False)
    if not report.exists():
        print(f"{name}: no test ran; the whole output is in {log}", file=sys.stderr)
        return None
    if was_ended(log):
        print(f"{name}: the tests were ended early; the whole output is in {log}", file=sys.stderr)
        return None
    passed, failed = counts(report)
    return Row(
        datetime.now(UTC).date().isoformat(), commit, interpreter.version,
        "yes" if interpreter.has_gil else "no", compiler_version(compiler), platform.machine(),
        system(), passed, failed, left_out(log),
    )  # fmt: skip


def stored() -> list[Row]:
    """The rows of earlier runs."""
    if not ROWS.exists():
        return []
    with ROWS.open(newline="") as file:
        return [row_of(record) for record in csv.DictReader(file)]


def row_of(record: Mapping[str, str]) -> Row:
    """The row of a line of the file."""
    values: dict[str, Any] = {field.name: record[field.name] for field in fields(Row)}
    return Row(**values | {name: int(values[name]) for name in ("passed", "failed")})


def store(rows: Iterable[Row]) -> None:
    """Writes rows, in the order of their platforms."""
    with ROWS.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in sorted(rows, key=lambda row: row.place))


def table(rows: Iterable[Row]) -> list[str]:
    """The lines of the page's table."""
    titles = "CPython", "GIL", "compiler", "processor", "system", "passed", "failed", "left out"
    lines = [f"| {' | '.join((*titles, 'date', 'commit'))} |"]
    lines.append("| " + " | ".join(["---"] * (len(titles) + 2)) + " |")
    for row in rows:
        cells = (
            row.interpreter, row.gil, row.compiler, row.processor, row.system,
            f"{row.passed:,}", f"{row.failed:,}", row.left_out, row.date, f"`{row.commit}`",
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def supported(rows: Iterable[Row]) -> list[str]:
    """The versions of CPython with the GIL of which a run passed all tests, as classifiers say."""
    return [row.place[0] for row in rows if row.gil == "yes" and not row.failed and row.passed]


def page(rows: Iterable[Row]) -> str:
    """The page with the table of these rows."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + "\n".join([BEGIN, "", *table(rows), "", END]) + after


def main() -> int:
    """Runs what the arguments name, and writes the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="an interpreter, such as 3.14t")
    parser.add_argument("--compiler", default="cc", help="the C compiler (default: cc)")
    parser.add_argument("--page", action="store_true", help="write the page, run nothing")
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(page(stored()))
        return 0
    found = interpreters()
    for name in options.names:
        if name not in found:
            parser.error(
                f"there is no interpreter {name} here; there are {', '.join(found)}, and "
                "tools/interpreters.py builds others"
            )
    if not shutil.which(options.compiler):
        parser.error(f"there is no compiler {options.compiler!r} on the path")
    code = 0
    for name in options.names or sorted(found):
        row = run(found[name], options.compiler)
        if row is None:
            code = 4
            continue
        store([*(each for each in stored() if each.place != row.place), row])
        PAGE.write_text(page(stored()))
        print(f"{row.interpreter}: {row.passed:,} tests passed, {row.failed:,} failed")
        code = max(code, int(row.failed > 0))
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
