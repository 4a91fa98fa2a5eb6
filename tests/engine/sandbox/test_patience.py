"""A child is stuck only by time that passed for it, not by time that passed on the clock."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from pulsar_ml.campaign.trial.controlled import load_checked
from pulsar_ml.campaign.trial.trial import CHECKED
from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.search import child
from pulsar_ml.harness.search.child import Heart, Limits, LostError, Patience, Watched, nowhere
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.sandbox import call
from pulsar_ml.harness.subjects.program import Program


@pytest.fixture
def sleeper() -> Iterator[int]:
    """A process that waits for its input."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        while psutil.Process(process.pid).status() != psutil.STATUS_SLEEPING:
            pass
        yield process.pid
        process.send_signal(signal.SIGKILL)


def patience_with(
    pid: int, now: list[float], monkeypatch: pytest.MonkeyPatch
) -> tuple[Patience, Heart]:
    """A watch over a process by a clock that the test turns."""
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    nothing: Any = None
    heart = Heart()
    watched = Watched(pid, 0, 0, nothing, heart, 0, None, Limits(wall=30.0), nowhere, lambda _: 0)
    patience = Patience(watched)
    now[0] += 1
    patience.look()
    return patience, heart


def test_a_leap_of_the_clock_is_no_hang(sleeper: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause of the machine, or of the process that watches, makes such a leap."""
    now = [0.0]
    patience, _ = patience_with(sleeper, now, monkeypatch)
    now[0] += 1_000
    patience.look()


def test_a_child_that_waits_is_stuck_in_the_end(
    sleeper: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    patience, _ = patience_with(sleeper, now, monkeypatch)
    for _ in range(30):
        now[0] += 1
        patience.look()
    with pytest.raises(LostError, match="no execution ended within 30 s"):
        now[0] += 1
        patience.look()


def test_a_child_without_a_processor_is_not_stuck(
    sleeper: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(child, "runnable", lambda _: True)
    patience, _ = patience_with(sleeper, now, monkeypatch)
    for _ in range(100):
        now[0] += 1
        patience.look()


def test_a_model_that_takes_long_is_no_hang_of_the_code_under_test(
    sleeper: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    patience, heart = patience_with(sleeper, now, monkeypatch)
    heart.note_judging(True)
    for _ in range(100):
        now[0] += 1
        patience.look()
    heart.note_judging(False)
    for _ in range(30):
        now[0] += 1
        patience.look()
    with pytest.raises(LostError, match="no execution ended within 30 s"):
        now[0] += 1
        patience.look()


def test_a_model_that_never_answers_is_named(sleeper: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    patience, heart = patience_with(sleeper, now, monkeypatch)
    heart.note_judging(True)
    with pytest.raises(LostError, match="the model gave no answer within 600 s"):
        for _ in range(602):
            now[0] += 1
            patience.look()


def test_many_slow_answers_in_a_row_are_answers(
    sleeper: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The moment between two of them is too short to be seen."""
    now = [0.0]
    patience, heart = patience_with(sleeper, now, monkeypatch)
    heart.note_judging(True)
    for item in range(4):
        heart.begin(item)
        for _ in range(400):
            now[0] += 1
            patience.look()


def test_a_search_outlives_a_slow_judge() -> None:
    """The judge takes more processor time than an execution may."""
    subject = load_checked(CHECKED).SUBJECTS["refcount"]
    program = Program.generate(subject, 0, threads=2, operations=2, noise=False)
    calls: list[Explorer] = []

    def judge(explorer: Explorer) -> str:
        if not calls:
            begun = time.process_time()
            while time.process_time() < begun + 1.5:
                pass
        calls.append(explorer)
        return ""

    done = call(
        lambda: explore(subject, program, executions=50, judge=judge, isolated=False).executions,
        limits=Limits(cpu=0.5),
    )
    assert done == 50
