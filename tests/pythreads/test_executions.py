"""Executions that end early, what they leave behind, and what is as it was outside of them."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from types import SimpleNamespace

import pytest

import pulsar_ml.harness.search.explore as exploring
from pulsar_ml.errors import NondeterminismError, UsageError
from pulsar_ml.harness import InterleavingFailure, check
from pulsar_ml.harness.budgets.slices import Course
from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.functions.check import PythonTest, explore_test
from pulsar_ml.harness.functions.source import TestFunction
from pulsar_ml.harness.pythreads.check import explore_python, python_subject
from pulsar_ml.harness.pythreads.session import session
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.subjects.program import Program

EXECUTIONS = 1500
pause = time.sleep  # takes no real time within an execution


def crossed_locks() -> None:
    """Deadlocks often, with a generator, ``finally``, ``with`` and an exception under way."""
    a, b = threading.Lock(), threading.Lock()

    def numbers() -> Iterator[int]:
        with a:
            try:
                yield 1
            finally:
                ended.append(1)

    def first() -> None:
        for _ in numbers():
            try:
                raise KeyError
            except KeyError:
                with b:
                    pass

    def second() -> None:
        try:
            with b, a:
                pass
        finally:
            ended.append(2)

    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


ended: list[int] = []


def explore_all(test: Callable[[], object], name: str) -> int:
    """Make EXECUTIONS random executions, and return the number of those that failed."""
    subject = python_subject(test, name)
    explorer = Explorer(
        subject,
        Program.of_test(subject),
        mode="sc",
        races=False,
        leaks=False,
        strategy="random",
    )
    done = failed = 0
    while done < EXECUTIONS:
        done += explorer.run(done, EXECUTIONS - done)
        failed += explorer.failed()
    return failed


def test_abandoned_threads_unwind_and_leave_nothing() -> None:
    ended.clear()
    states = len(sys._current_frames())
    with session():
        deadlocks = explore_all(crossed_locks, "crossed_locks")
        gc.collect()
        left = [each for each in gc.get_objects() if isinstance(each, threading.Thread)]
    assert deadlocks > EXECUTIONS // 10
    assert ended.count(1) == ended.count(2) == EXECUTIONS
    assert not left
    assert len(sys._current_frames()) == states


def test_loggers_that_live_longer_than_an_execution() -> None:
    """Executions do not differ when a logger knows its level from an earlier one."""
    logger = logging.getLogger("tests.pythreads.executions")

    def test() -> None:
        values = [0]

        def change() -> None:
            values[0] = 1
            values[0] = 0
            logger.debug("changed")

        thread = threading.Thread(target=change)
        thread.start()
        logger.info("started")
        assert values[0] == 0
        thread.join()

    for seed in range(5):
        logging.disable()  # empties what loggers know
        logging.disable(logging.NOTSET)
        done, text = explore_python(test, isolated=False, executions=500, seed=seed, shrinks=False)
        assert done.failure is not None, text


def held_by_an_abandoned_thread() -> None:
    """One thread fails while another one stands before the release of a lock."""
    lock = threading.Lock()
    holder.append(lock)

    def use() -> None:
        with lock:
            pass

    def fail() -> None:
        raise KeyError

    for target in (use, fail):
        threading.Thread(target=target).start()


holder: list[threading.Lock] = []


def test_abandoned_threads_leave_no_lock_behind() -> None:
    holder.clear()
    with session():
        explore_all(held_by_an_abandoned_thread, "held_by_an_abandoned_thread")
    assert len(holder) == EXECUTIONS
    assert not any(lock.locked() for lock in holder)


class Released:
    """Takes a lock in its finalizer, which runs behind the execution."""

    def __init__(self, lock: threading.Lock) -> None:
        self.lock = lock

    def __del__(self) -> None:
        try:
            with self.lock:
                finalized.append("taken")
        except BaseException as error:
            finalized.append(type(error).__name__)


finalized: list[str] = []


def test_a_finalizer_behind_an_execution_does_not_wait() -> None:
    def leave_locked() -> None:
        lock = threading.Lock()
        lock.acquire()
        kept = Released(lock)
        assert kept.lock.locked()
        lock.acquire()

    finalized.clear()
    done, _ = explore_python(leave_locked, isolated=False, executions=5, shrinks=False)
    assert done.failure is not None
    assert done.failure.kind == "deadlock"
    assert set(finalized) == {"Abandoned"}


def test_a_thread_that_catches_everything_is_given_up() -> None:
    def stubborn() -> None:
        lock = threading.Lock()
        lock.acquire()
        while True:
            try:
                lock.acquire()
            except BaseException:
                pause(1)

    done, text = explore_python(stubborn, executions=5)
    assert done.failure is not None
    assert done.failure.kind == "deadlock", text


def test_an_interpreter_that_crashes_is_a_failure() -> None:
    def crash() -> None:
        thread = threading.Thread(target=ctypes.string_at, args=(0,))
        thread.start()
        thread.join()

    done, text = explore_python(crash, executions=5)
    assert done.failure is not None
    assert done.failure.ended_process
    assert "SIGSEGV" in text


def test_calls_that_wait_outside_are_named() -> None:
    def receive() -> None:
        socket.socketpair()[0].recv(1)

    def run() -> None:
        subprocess.run(["true"], check=True)

    with pytest.raises(NondeterminismError, match=r"_socket\.socket\.recv"):
        explore_python(receive, executions=5)
    with pytest.raises(NondeterminismError, match=r"fork_exec"):
        explore_python(run, executions=5)


def test_what_the_engine_does_not_decide_is_noticed() -> None:
    numbers = [0]

    def counted() -> None:
        numbers[0] += 1
        for _ in range(numbers[0] % 7):
            numbers[0] = numbers[0]

    with pytest.raises(NondeterminismError):
        explore_python(counted, executions=500)


def test_everything_is_as_it_was_afterwards() -> None:
    methods = {name: threading.Thread.__dict__[name] for name in ("start", "join", "__init__")}
    run = threading.Timer.run
    explore_python(crossed_locks, executions=5, isolated=False)
    assert {name: threading.Thread.__dict__[name] for name in methods} == methods
    assert threading.Timer.run is run
    assert "__hash__" not in threading.Thread.__dict__
    assert gc.isenabled()
    lock = threading.Lock()
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join()
    assert lock.locked()
    assert time.time() > 1.7e9 + 1e6
    assert os.urandom(8) != os.urandom(8)
    receiver, sender = socket.socketpair()
    with receiver, sender:
        sender.send(b"x")
        assert receiver.recv(1) == b"x"


def test_threads_that_are_not_joined_end_before_the_execution() -> None:
    found: list[int] = []

    def leave() -> None:
        found.clear()
        threading.Thread(target=found.append, args=(1,)).start()

    done, text = explore_python(leave, isolated=False, executions=100)
    assert done.failure is None, text
    assert found == [1]


def test_a_function_is_a_test() -> None:
    with pytest.raises(InterleavingFailure, match="deadlock"):
        check(crossed_locks)
    with pytest.raises(AssertionError, match="nothing exercised"):
        check(lambda: None, executions=10)
    with pytest.raises(UsageError, match="semantics"):
        check(crossed_locks, semantics="none")
    with pytest.raises(UsageError, match="no option 'races'"):
        check(crossed_locks, races=False)


def test_threads_of_python_are_its_own() -> None:
    with pytest.raises(UsageError, match="a test in Python has no option 'threads'"):
        check(lambda: None, threads=2)


def test_a_time_ends_the_exploration(monkeypatch: pytest.MonkeyPatch) -> None:
    def function() -> None:
        box: list[int] = []
        other = threading.Thread(target=box.append, args=(1,))
        other.start()
        box.append(2)
        other.join()
        assert len(box) == 2

    ticks = count()
    clock = SimpleNamespace(monotonic=lambda: float(next(ticks)), thread_time=time.thread_time)
    monkeypatch.setattr(exploring, "time", clock)
    (result,) = check(function, seconds=2)
    assert 0 < result.exploration.executions < 20_000
    with pytest.raises(InterleavingFailure):
        check(lambda: pytest.fail("no"), seconds=2)


def test_the_exploration_goes_on_behind_a_known_failure() -> None:
    def test_two() -> None:
        seen: list[int] = []
        threads = [threading.Thread(target=seen.append, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen[0] != 1, "one is first"
        assert seen[0] != 2, "two is first"

    def is_known(failure: Failure) -> bool:
        return "one is first" in failure.message

    explore = partial(explore_test, TestFunction("test_two", 1), PythonTest(test_two))
    done = Course(explore, is_known).run({}, 300)
    assert done.failure is not None and "two is first" in done.failure.message
    first = Course(explore).run({}, 300).failure
    assert first is not None and (done.met or "one is first" not in first.message)
