"""The parts of tools/thread_sanitizer.py that need no interpreter which is built for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tools import interpreters
from tools.thread_sanitizer import NAME, reports_of, shortened, track

REPORT = """==================
WARNING: ThreadSanitizer: data race (pid=1)
  Write of size 8 at 0x7b0400000800 by thread T2:
    #0 add mine.pyx:12 (mine.so+0x1234)
    #1 _PyEval_EvalFrameDefault Python/generated_cases.c.h:1 (python3.14t+0x5678)
{deep}
  Previous write of size 8 at 0x7b0400000800 by thread T1:
    #0 {other} mine.pyx:{line} (mine.so+0x1234)
    #1 _PyEval_EvalFrameDefault Python/generated_cases.c.h:1 (python3.14t+0x5678)

  Thread T2 (tid=3, running) created by main thread at:
    #0 pthread_create <null> (libtsan.so.2+0x1)

SUMMARY: ThreadSanitizer: data race mine.pyx:12 in add
==================
"""
DEEP = "\n".join(f"    #{number} frame a.c:1 (a+0x1)" for number in range(2, 40))


def report(other: str = "add", line: int = 12) -> str:
    return REPORT.format(deep=DEEP, other=other, line=line)


def command(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.thread_sanitizer", *arguments],
        cwd=ROOT, env={**os.environ, "XDG_CACHE_HOME": str(home)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_an_interpreter_that_is_not_built_is_said_in_one_sentence(tmp_path: Path) -> None:
    done = command("-c", "print(1)", home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert f"python tools/interpreters.py {NAME}" in done.stderr


def test_a_command_without_arguments_is_a_mistake(tmp_path: Path) -> None:
    done = command(home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: python -m tools.thread_sanitizer")


def test_reports_of_all_processes_are_read(tmp_path: Path) -> None:
    (tmp_path / "report.11").write_text(report() + report("count", 16))
    (tmp_path / "report.12").write_text(report())
    found = reports_of(tmp_path)
    assert len(found) == 3
    assert len({track(each) for each in found}) == 2
    assert reports_of(tmp_path / "elsewhere") == []


def test_reports_of_one_pair_of_lines_are_equal_at_any_address() -> None:
    other = report().replace("0x7b0400000800", "0x7b0400000900").replace("T2", "T7")
    assert track(other) == track(report())
    assert track(report(line=13)) != track(report())
    assert track(report()) == track(report().replace("+0x1234", "+0x4321"))


def test_a_report_is_printed_without_the_deep_frames_of_the_interpreter() -> None:
    text = shortened(report())
    assert "#0 add mine.pyx:12" in text
    assert "#1 _PyEval" in text
    assert "#20 " not in text
    assert "SUMMARY" in text


def test_no_test_or_benchmark_takes_its_interpreter_for_an_ordinary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in interpreters.INTERPRETERS:
        interpreters.executable(name).parent.mkdir(parents=True)
        interpreters.executable(name).touch()
    assert set(interpreters.INTERPRETERS) - set(interpreters.built()) == {NAME}
