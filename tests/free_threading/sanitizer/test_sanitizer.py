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

# One process builds the core, once.
pytestmark = pytest.mark.xdist_group("thread_sanitizer")
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
    options = ["-3", "-X", "freethreading_compatible=True", "-i", str(source)]
    done = sanitized("-m", "Cython.Build.Cythonize", *options)
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


@pytest.mark.parametrize(("member", "code"), [("add", REPORTED), ("add_guarded", 0)])
def test_the_pairs_report_a_field_without_a_lock(unguarded: Path, member: str, code: int) -> None:
    words = pairs_command("Unguarded", seed=1, calls=10, rounds=20, only=member)
    done = sanitized(*words[1:], folder=unguarded)
    assert done.returncode == code, done.stdout + done.stderr
    assert json.loads(done.stdout)["calls"] == 400
    assert ("7Counter_add" in done.stderr) is bool(code)


def test_two_releases_of_a_receive_buffer_read_and_write_under_its_lock() -> None:
    """The second release looked at the field without it, which is reported in these calls."""
    words = pairs_command("ReceiveBuffer", seed=1, calls=10, rounds=20, only="release")
    done = sanitized(*words[1:])
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["outcomes"]["ReleasedError"] > 100


def test_the_pairs_of_a_class_are_clean() -> None:
    done = sanitized(*pairs_command("InflightReadsLimiter", seed=1, calls=2, rounds=1)[1:])
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["outcomes"]["returned"] > 10
