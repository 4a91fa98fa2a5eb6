"""A reader-writer lock whose last reader lets the writer in: the count has no lock."""

from __future__ import annotations

import threading


class SharedLock:
    def __init__(self, safe: bool) -> None:
        self.readers = 0
        self.counting = threading.Lock() if safe else None
        self.writing = threading.Lock()

    def begin_reading(self) -> None:
        if self.counting is None:
            self.readers += 1
            if self.readers == 1:
                self.writing.acquire()
            return
        with self.counting:
            self.readers += 1
            if self.readers == 1:
                self.writing.acquire()

    def end_reading(self) -> None:
        if self.counting is None:
            self.readers -= 1
            if self.readers == 0:
                self.writing.release()
            return
        with self.counting:
            self.readers -= 1
            if self.readers == 0:
                self.writing.release()


def run(safe: bool) -> None:
    lock = SharedLock(safe)
    value = [0, 0]

    def read() -> None:
        lock.begin_reading()
        assert value[0] == value[1], "a reader sees half of a change"
        lock.end_reading()

    def write() -> None:
        with lock.writing:
            value[0] += 1
            value[1] += 1

    threads = [threading.Thread(target=target) for target in (read, read, write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
