"""tools/prerequisites.sh names a missing program and its package in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

SCRIPT = ROOT / "tools" / "prerequisites.sh"


def check(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(SCRIPT), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def fake(folder: Path, name: str, script: str) -> Path:
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_complete_machine_passes_without_a_word() -> None:
    done = check(sys.executable, "java")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_missing_python_is_said() -> None:
    done = check("python-that-is-not-there")
    assert done.returncode == 4
    assert "No 'python-that-is-not-there' found: install Python 3.11 or newer" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_old_python_is_said(tmp_path: Path) -> None:
    old = fake(tmp_path, "python3", '[ "$1" = -V ] && echo Python 3.9.1 || exit 1')
    done = check(str(old))
    assert done.returncode == 4
    assert "is Python 3.9.1, but Python 3.11 or newer is needed" in done.stderr


def test_a_missing_compiler_is_said() -> None:
    done = check(sys.executable, CC="compiler-that-is-not-there")
    assert done.returncode == 4
    assert "No C compiler 'compiler-that-is-not-there' found: install one" in done.stderr
    assert "apt install gcc" in done.stderr


def test_a_missing_java_is_said(tmp_path: Path) -> None:
    done = check(sys.executable, "java", JAVA_HOME=str(tmp_path))
    assert done.returncode == 4
    assert (
        "Spark needs Java 17 or newer: install it (Debian/Ubuntu: apt install openjdk-17"
        in done.stderr
    )


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_392"])
def test_an_old_java_is_said(tmp_path: Path, version: str) -> None:
    fake(tmp_path, "java", f"echo 'openjdk version \"{version}\" 2020-01-01' >&2")
    done = check(sys.executable, "java", JAVA_HOME=str(tmp_path))
    assert done.returncode == 4
    assert f"is version {version.split('.')[0]}, and Spark needs Java 17 or newer" in done.stderr
