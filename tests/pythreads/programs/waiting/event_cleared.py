"""An event that is cleared behind the wait: a signal in between is lost."""

from __future__ import annotations

import threading
from collections import deque


class Worker:
    def __init__(self) -> None:
        self.jobs: deque[int] = deque()
        self.ready = threading.Event()
        self.done: list[int] = []

    def submit(self, job: int) -> None:
        self.jobs.append(job)
        self.ready.set()

    def work_unsafely(self, count: int) -> None:
        while len(self.done) < count:
            self.ready.wait()
            while self.jobs:
                self.done.append(self.jobs.popleft())
            self.ready.clear()

    def work(self, count: int) -> None:
        while len(self.done) < count:
            self.ready.wait()
            self.ready.clear()
            while self.jobs:
                self.done.append(self.jobs.popleft())


def run(safe: bool) -> None:
    worker = Worker()
    target = worker.work if safe else worker.work_unsafely
    thread = threading.Thread(target=target, args=(2,))
    thread.start()
    worker.submit(1)
    worker.submit(2)
    thread.join()
    assert worker.done == [1, 2]


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
