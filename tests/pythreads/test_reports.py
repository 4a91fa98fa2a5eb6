"""A failure of Python threads as a reader sees it: table, stacks, replay, commands, pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pulsar_ml.exit_codes import INTERRUPTED
from pulsar_ml.harness.pythreads.check import explore_python, replay_python
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.terminal.progress import ProgressDisplay
from tests import QUICK_PYTEST
from tests.commands import call

COUNTER = """\
import threading


class Counter:
    def __init__(self):
        self.value = 0

    def increment(self):
        self.value += 1


def test_counter():
    counter = Counter()
    threads = [threading.Thread(target=counter.increment) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value == 2
"""


class Counter:
    def __init__(self) -> None:
        self.value = 0

    def increment(self) -> None:
        self.value += 1


def counter_test() -> None:
    counter = Counter()
    threads = [threading.Thread(target=counter.increment) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value == 3


def test_the_table_shows_python() -> None:
    done, text = explore_python(counter_test, isolated=False)
    assert done.failure is not None
    assert done.failure.kind == "assertion"
    assert done.failure.where[0].startswith("counter_test pythreads/test_reports.py:")
    assert len(done.failure.decisions) <= 2, "it is shrunk"
    assert "Counter.value -> 0  test_reports.py:" in text
    assert "Counter.value <- 1  test_reports.py:" in text
    assert "self.value += 1" in text
    assert "the failure was made again, step by step" in text


def test_a_seed_is_a_failure_and_a_failure_comes_again() -> None:
    first, _ = explore_python(counter_test, isolated=False, seed=7, shrinks=False)
    second, _ = explore_python(counter_test, isolated=False, seed=7, shrinks=False)
    assert first.failure == second.failure
    assert first.failure is not None
    failure = Failure.from_text(first.failure.short())
    again, text = replay_python(counter_test, failure, isolated=False)
    assert again.exact
    assert "step by step" in text


def test_exceptions_of_threads_have_their_traceback() -> None:
    def fails() -> None:
        thread = threading.Thread(target=lambda: {"here": 1}["missing"])
        thread.start()
        thread.join()

    done, text = explore_python(fails, isolated=False)
    assert done.failure is not None
    assert (done.failure.rule, done.failure.message) == ("exception", "KeyError: 'missing'")
    assert "Traceback" in text


def test_a_deadlock_has_the_stack_of_each_thread() -> None:
    def waits() -> None:
        lock = threading.Lock()

        def inner() -> None:
            lock.acquire()
            lock.acquire()

        thread = threading.Thread(target=inner)
        thread.start()
        thread.join()

    done, text = explore_python(waits, isolated=False)
    assert done.failure is not None
    assert done.failure.kind == "deadlock"
    stacks = text.rpartition("\nthread 0:\n")[2]
    assert "thread.join()" in stacks
    assert "lock.acquire()" in stacks.partition("thread 1:")[2]


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **QUICK_PYTEST},
    )  # fmt: skip


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "check_counter.py").write_text(COUNTER)
    (tmp_path / "test_counter.py").write_text(COUNTER)
    done = run("pulsar_ml", "check", ".", "--json", folder=tmp_path)
    assert done.returncode == 1, done.stderr
    rows = json.loads(done.stdout)["tests"]
    assert [(row["file"], row["kind"]) for row in rows] == [("check_counter.py", "assertion")]
    again = run(
        "pulsar_ml", "check", "check_counter.py", "--replay", rows[0]["record"], folder=tmp_path
    )
    assert again.returncode == 1
    assert "step by step" in again.stdout


CLEAN_COUNTER = """
import threading


def test_counter():
    lock, counts = threading.Lock(), [0]

    def increment():
        with lock:
            counts[0] += 1

    threads = [threading.Thread(target=increment) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts[0] == 2
"""


def test_an_interrupt_says_how_many_executions_there_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: ProgressDisplay, done: float, text: str = "") -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ProgressDisplay, "update", interrupt)
    (tmp_path / "check_counter.py").write_text(CLEAN_COUNTER)
    done = call("check", "check_counter.py")
    assert done.code == INTERRUPTED
    assert "::test_counter  interrupted: 256 executions without a failure" in done.err


def test_an_interrupt_while_a_failure_is_shrunk_keeps_the_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*words: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pulsar_ml.harness.pythreads.check.call", interrupted)
    (tmp_path / "check_counter.py").write_text(COUNTER)
    done = call("check", "check_counter.py")
    assert done.code == INTERRUPTED
    assert "check_counter.py::test_counter  assertion" in done.out


@pytest.mark.parametrize("text", ["def test_x(:\n", "raise ValueError\ndef test_x(): pass\n"])
def test_a_file_that_is_no_test(text: str, tmp_path: Path) -> None:
    (tmp_path / "check_bad.py").write_text(text)
    done = run("pulsar_ml", "check", "check_bad.py", folder=tmp_path)
    assert done.returncode not in (0, 1)
    assert "Traceback" not in done.stderr
    assert "check_bad.py" in done.stderr


def test_the_marker_of_pytest(tmp_path: Path) -> None:
    marked = COUNTER.replace(
        "def test_counter():",
        "@pytest.mark.interleave(executions=5000)\ndef test_counter(tmp_path):",
    )
    plain = "\n\ndef test_plain():\n    pass\n"
    (tmp_path / "test_it.py").write_text(f"import pytest\n{marked}{plain}")
    plugin = ("-p", "pulsar_ml.harness.testing.pytest_plugin")
    words = ("pytest", "-p", "no:cacheprovider", *plugin, "-q")
    done = run(*words, folder=tmp_path)
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "Counter.value" in done.stdout
    record = next((tmp_path / ".pulsar_ml" / "failures").iterdir())
    again = run(*words, "--replay", str(record), folder=tmp_path)
    assert "step by step" in again.stdout
