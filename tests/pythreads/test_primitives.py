"""Locks, queues, pools, clocks and the like of the standard library, within executions."""

from __future__ import annotations

import contextvars
import os
import queue
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pulsar_ml.harness.pythreads.check import explore_python

EXECUTIONS = 150
pause = time.sleep  # takes no real time within an execution


def together(*targets: Callable[[], object]) -> None:
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check_condition() -> None:
    items: list[int] = []
    changed = threading.Condition()

    def put() -> None:
        for item in range(2):
            with changed:
                items.append(item)
                changed.notify()

    def get() -> None:
        for _ in range(2):
            with changed:
                while not items:
                    changed.wait()
                items.pop()

    together(put, get)
    assert not items


def check_event_semaphore_barrier() -> None:
    event, semaphore, barrier = threading.Event(), threading.Semaphore(1), threading.Barrier(3)
    count = [0]

    def work() -> None:
        event.wait()
        barrier.wait()
        with semaphore:
            count[0] += 1

    together(work, work, work, event.set)
    assert count == [3]


def check_reentrant_lock() -> None:
    lock = threading.RLock()
    count = 0

    def work() -> None:
        nonlocal count
        with lock, lock:
            count += 1

    together(work, work, work)
    assert count == 3
    with pytest.raises(RuntimeError):
        lock.release()


def check_condition_of_a_reentrant_lock_held_twice() -> None:
    changed = threading.Condition(threading.RLock())
    ready = False

    def wait() -> None:
        with changed, changed:
            while not ready:
                changed.wait()

    def tell() -> None:
        nonlocal ready
        with changed:
            ready = True
            changed.notify_all()

    together(wait, tell)


def check_bounded_queue() -> None:
    jobs: queue.Queue[int | None] = queue.Queue(1)
    found = []

    def produce() -> None:
        for item in (0, 1, None):
            jobs.put(item)

    def consume() -> None:
        while (item := jobs.get()) is not None:
            found.append(item)
            jobs.task_done()

    together(produce, consume)
    assert found == [0, 1]


def check_simple_queue() -> None:
    jobs: queue.SimpleQueue[int] = queue.SimpleQueue()
    found: list[int] = []
    together(lambda: jobs.put(1), lambda: found.append(jobs.get()))
    assert found == [1]
    with pytest.raises(queue.Empty):
        jobs.get(timeout=3)


def check_pool() -> None:
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda number: number * number, range(3))) == [0, 1, 4]


def check_pool_that_nobody_closes() -> None:
    assert ThreadPoolExecutor(2).submit(lambda: 5).result() == 5


def check_time_is_virtual() -> None:
    before = time.monotonic()
    pause(1000)
    assert time.monotonic() - before >= 1000


def check_what_belongs_to_a_thread() -> None:
    local = threading.local()
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)

    def work(number: int) -> None:
        assert not hasattr(local, "number")
        assert variable.get() == 0
        local.number = number
        variable.set(number)
        pause(0)
        assert (local.number, variable.get()) == (number, number)

    together(lambda: work(1), lambda: work(2))


def check_times_out() -> None:
    lock = threading.Lock()
    lock.acquire()
    assert not lock.acquire(timeout=2)
    assert not threading.Event().wait(5)
    with pytest.raises(queue.Empty):
        queue.Queue[int]().get(timeout=3)
    thread = threading.Thread(target=pause, args=(100,))
    thread.start()
    thread.join(1)
    thread.join()
    assert not thread.is_alive()


def check_timer() -> None:
    fired: list[int] = []
    timer = threading.Timer(5, fired.append, (1,))
    timer.start()
    timer.join()
    assert fired == [1]


def check_a_daemon_that_never_ends() -> None:
    def loop() -> None:
        while True:
            pause(1)

    threading.Thread(target=loop, daemon=True).start()


def check_a_loop_that_waits() -> None:
    ready = [False]

    def wait() -> None:
        while not ready[0]:
            pass

    together(wait, lambda: ready.__setitem__(0, True))


def check_generators_and_exceptions() -> None:
    def numbers() -> Iterator[int]:
        try:
            yield 1
        finally:
            pause(0)

    def work() -> None:
        for _ in numbers():
            try:
                raise ValueError
            except ValueError:
                pause(0)
                assert isinstance(sys.exc_info()[1], ValueError)

    together(work, work)


def check_recursion() -> None:
    def deep(depth: int, calls: list[int]) -> int:
        calls.append(depth)
        return 1 + deep(depth - 1, calls) if depth else 0

    def endless() -> None:
        endless()

    def work() -> None:
        assert deep(100, []) == 100
        with pytest.raises(RecursionError):
            endless()

    together(work, work)


class Worker(threading.Thread):
    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names

    def run(self) -> None:
        assert threading.current_thread() is self
        self.names.append(self.name)


def check_five_threads_of_a_subclass() -> None:
    names: list[str] = []
    workers = [Worker(names) for _ in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(names) == [f"Thread-{number}" for number in range(1, 6)]
    assert len({worker.ident for worker in workers}) == 5
    with pytest.raises(RuntimeError):
        workers[0].start()


CHECKS = {
    name.removeprefix("check_"): value for name, value in globals().items() if name[:6] == "check_"
}


@pytest.mark.parametrize("name", CHECKS)
def test_of_the_standard_library(name: str) -> None:
    done, text = explore_python(CHECKS[name], isolated=False, executions=EXECUTIONS, name=name)
    assert done.failure is None, text
    assert done.executions == EXECUTIONS
    assert done.rechecked, "an execution was repeated and was the same"
    assert done.statistics["cut"] == 0


def test_random_numbers_follow_from_the_seed() -> None:
    found: set[tuple[object, ...]] = set()

    def draw() -> None:
        own = random.Random()
        with pytest.raises(ValueError, match="negative argument"):
            os.urandom(-1)
        found.add((random.random(), random.getrandbits(64), uuid.uuid4(), own.random()))

    explore_python(draw, isolated=False, executions=20)
    assert len(found) == 1
