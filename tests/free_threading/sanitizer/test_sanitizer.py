"""Pairs of calls on one object under the thread sanitizer, and a race that it must report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.face_fuzz.__main__ import pairs_command
from tools.thread_sanitizer import NAME, REPORTED

HERE = Path(__file__).resolve().parent
# Nothing orders the calls of the two threads behind the marks: the first thread made the counter,
# and counts its references without an atomic instruction.
WORK = """
import sys, threading
import unguarded

counter = unguarded.Counter()
here = [False, False]

def work(own):
    here[own] = True
    while not here[1 - own]:
        pass
    for _ in range(100):
        getattr(counter, sys.argv[1])()

thread = threading.Thread(target=work, args=(1,))
thread.start()
work(0)
thread.join()
print("the GIL is on:", sys._is_gil_enabled())
"""


def sanitized(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Runs the command on the interpreter of the thread sanitizer."""
    return subprocess.run(
        [sys.executable, "-m", "tools.thread_sanitizer", *arguments],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def unguarded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the compiled counter."""
    folder = tmp_path_factory.mktemp("unguarded")
    source = shutil.copy2(HERE / "unguarded.pyx", folder)
    done = sanitized("-m", "Cython.Build.Cythonize", "-i", str(source))
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_a_field_without_a_lock_is_reported(unguarded: Path) -> None:
    done = sanitized("-c", WORK, "add", folder=unguarded)
    assert done.stdout == "the GIL is on: False\n", done.stderr
    assert done.returncode == REPORTED
    assert "WARNING: ThreadSanitizer: data race" in done.stderr
    assert "unguarded" in done.stderr


def test_a_field_with_a_lock_is_not(unguarded: Path) -> None:
    done = sanitized("-c", WORK, "add_guarded", folder=unguarded)
    assert (done.returncode, done.stdout) == (0, "the GIL is on: False\n"), done.stderr
    assert "ThreadSanitizer" not in done.stderr


def test_the_core_is_the_instrumented_one() -> None:
    done = sanitized("-c", "import pulsar_ml._core as core; print(core.__file__)")
    assert done.returncode == 0, done.stderr
    assert f"build/interpreters/{NAME}/core/" in done.stdout


@pytest.mark.parametrize("kind", ["Entry", "InflightReadsLimiter"])
def test_the_pairs_of_a_class_are_clean(kind: str) -> None:
    done = sanitized(*pairs_command(kind, seed=1, calls=2, rounds=1)[1:])
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["calls"] > 100
