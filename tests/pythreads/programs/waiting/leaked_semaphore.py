"""A semaphore that is not released when the work fails: the last worker waits for ever."""

from __future__ import annotations

import threading


class Limiter:
    def __init__(self) -> None:
        self.slots = threading.Semaphore(1)
        self.busy = False

    def work(self) -> None:
        if self.busy:
            raise BlockingIOError("two workers at once")
        self.busy = True
        self.busy = False


def worker_unsafely(limiter: Limiter, failing: bool) -> None:
    limiter.slots.acquire()
    try:
        if failing:
            raise ValueError("bad input")
        limiter.work()
    except ValueError:
        return
    limiter.slots.release()


def worker(limiter: Limiter, failing: bool) -> None:
    with limiter.slots:
        try:
            if failing:
                raise ValueError("bad input")
            limiter.work()
        except ValueError:
            return


def run(safe: bool) -> None:
    limiter = Limiter()
    target = worker if safe else worker_unsafely
    threads = [threading.Thread(target=target, args=(limiter, each)) for each in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
