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
from pulsar_ml.harness.search import child, descendants
from pulsar_ml.harness.search.child import Heart, Limits, LostError, Patience, Watched, nowhere
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.sandbox import call
from pulsar_ml.harness.subjects.program import Program

USUAL = Limits(wall=30.0)


@pytest.fixture
def sleeper() -> Iterator[int]:
    """A process that waits for its input."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        while psutil.Process(process.pid).status() != psutil.STATUS_SLEEPING:
            pass
        yield process.pid
        process.send_signal(signal.SIGKILL)


class Watch:
    """A watch over a process by a clock that the test turns."""

    def __init__(
        self,
        pid: int,
        monkeypatch: pytest.MonkeyPatch,
        limits: Limits = USUAL,
        *,
        inherited: int = 0,
    ) -> None:
        self.now = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        nothing: Any = None
        self.heart = Heart()
        self.patience = Patience(
            Watched(
                pid, 0, 0, nothing, self.heart, 0, None, limits, nowhere, lambda _: 0, inherited
            )
        )
        self.wait(1)

    def wait(self, seconds: int) -> None:
        """Look at the process once a second."""
        for _ in range(seconds):
            self.now += 1
            self.patience.look()


@pytest.fixture
def watch(sleeper: int, monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(sleeper, monkeypatch)


def test_a_leap_of_the_clock_is_no_hang(watch: Watch) -> None:
    """A pause of the machine, or of the process that watches, makes such a leap."""
    watch.now += 1_000
    watch.patience.look()


def test_a_child_that_waits_is_stuck_in_the_end(watch: Watch) -> None:
    watch.wait(30)
    with pytest.raises(LostError, match="no execution ended within 30 s"):
        watch.wait(1)


def test_a_child_without_a_processor_is_not_stuck(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "runnable", lambda _: True)
    watch.wait(100)


def test_a_model_that_takes_long_is_no_hang_of_the_code_under_test(watch: Watch) -> None:
    watch.heart.note_judging(True)
    watch.wait(100)
    watch.heart.note_judging(False)
    watch.wait(30)
    with pytest.raises(LostError, match="no execution ended within 30 s"):
        watch.wait(1)


def test_a_model_that_never_answers_is_named(watch: Watch) -> None:
    watch.heart.note_judging(True)
    watch.wait(600)
    with pytest.raises(LostError, match="the model gave no answer within 600 s"):
        watch.wait(1)


def test_many_slow_answers_in_a_row_are_answers(watch: Watch) -> None:
    """The moment between two of them is too short to be seen."""
    watch.heart.note_judging(True)
    for item in range(4):
        watch.heart.begin(item)
        watch.wait(400)


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


def test_memory_with_which_a_child_began_does_not_count(
    sleeper: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = child.resident(sleeper)
    limits = Limits(memory=size // 2)
    Watch(sleeper, monkeypatch, limits, inherited=size)
    with pytest.raises(LostError, match=f"more than {size // 2 >> 20} MiB in memory"):
        Watch(sleeper, monkeypatch, limits)


def test_a_child_begins_with_the_memory_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Watched] = []
    monkeypatch.setattr(child, "listen", lambda watched, _: seen.append(watched))
    large = bytearray(b"x") * (64 << 20)
    child.watch(lambda send: send(large[0]), print)
    assert seen[0].inherited > len(large)


def test_processes_are_counted_in_the_end_whatever_threads_ended_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = descendants.MOST_PROCESSES + 1
    machine = iter([100, 100 + many])
    monkeypatch.setattr(descendants, "tasks_here", lambda: 1_000)
    monkeypatch.setattr(descendants, "processes_here", lambda: next(machine))
    monkeypatch.setattr(descendants, "below", lambda _: [None] * many)
    watched = descendants.Processes(1)
    quiet = [0] * (descendants.LOOKS_FOR_COUNT - 1)
    assert [watched.too_many() for _ in range(descendants.LOOKS_FOR_COUNT)] == [*quiet, many]
