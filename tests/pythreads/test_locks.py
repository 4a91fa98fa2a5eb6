"""Locks that stay locked, or that another thread releases, and threads that do not end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from pulsar_ml.harness.pythreads.check import explore_python, replay_python

pause = time.sleep  # takes no real time within an execution


def started(*targets: Callable[[], object]) -> None:
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def left_locked() -> None:
    lock = threading.Lock()

    def work() -> None:
        lock.acquire()
        if done:
            return  # and forgets the lock
        lock.release()

    done = [1]
    started(work)
    assert lock.locked()


def left_locked_reentrant() -> None:
    started(lambda: threading.RLock().acquire(), int)  # nobody has the lock any more


def handed_over() -> None:
    lock = threading.Lock()
    lock.acquire()
    started(lambda: lock.release())
    with lock:
        pass


def well_behaved() -> None:
    """Uses what the standard library makes of locks that other threads release."""
    lock, condition, event = threading.RLock(), threading.Condition(), threading.Event()
    barrier, semaphore = threading.Barrier(2), threading.Semaphore(1)
    ready: list[int] = []

    def wait() -> None:
        with lock, lock:
            pass
        with condition:
            while not ready:
                condition.wait()
        barrier.wait()
        semaphore.acquire()
        event.set()

    def wake() -> None:
        with condition:
            ready.append(1)
            condition.notify()
        barrier.wait()
        event.wait()
        semaphore.release()

    started(wait, wake)


@pytest.mark.parametrize("test", [left_locked, left_locked_reentrant])
def test_a_lock_that_stays_locked_is_remarked_and_no_failure(test: Callable[[], None]) -> None:
    done, text = explore_python(test, isolated=False, executions=100)
    assert done.failure is None, text
    (remark,) = done.remarks
    assert remark.startswith("the lock that thread 1 acquired at pythreads/test_locks.py:")
    assert remark.endswith("is locked when the test ends")


def test_a_lock_that_another_thread_releases_is_remarked() -> None:
    done, text = explore_python(handed_over, isolated=False, executions=100)
    assert done.failure is None, text
    (remark,) = done.remarks
    assert remark.startswith("thread 1 releases at pythreads/test_locks.py:")
    assert "the lock that thread 0 acquired at pythreads/test_locks.py:" in remark


@pytest.mark.parametrize(
    ("test", "rule"),
    [(left_locked, "lock left locked"), (handed_over, "lock of another thread")],
)
def test_strict_makes_a_failure_of_it(test: Callable[[], None], rule: str) -> None:
    done, text = explore_python(test, isolated=False, executions=100, strict=True)
    assert done.failure is not None
    assert done.failure.rule == rule
    assert "test_locks.py:" in done.failure.message
    again, _ = replay_python(test, done.failure, isolated=False)
    assert again.exact, text


@pytest.mark.parametrize("semantics", ["gil", "free"])
def test_the_standard_library_is_no_offender(semantics: str) -> None:
    done, text = explore_python(
        well_behaved, isolated=False, executions=300, strict=True, semantics=semantics
    )
    assert done.failure is None, text
    assert done.remarks == ()


def test_a_thread_that_never_ends_is_a_failure() -> None:
    stop: list[int] = []

    def endless() -> None:
        while not stop:
            pause(1)

    def forgotten() -> None:
        threading.Thread(target=endless).start()

    def left_to_the_end() -> None:
        threading.Thread(target=endless, daemon=True).start()

    done, _ = explore_python(forgotten, isolated=False, executions=5, shrinks=False)
    assert done.failure is not None
    assert done.failure.kind == "livelock"
    done, text = explore_python(left_to_the_end, isolated=False, executions=5)
    assert done.failure is None, text
