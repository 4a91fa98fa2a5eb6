"""A generator of numbers that threads share: it runs in one thread while another one asks it."""

from __future__ import annotations

import threading
from collections.abc import Iterator


class Sequence:
    def __init__(self) -> None:
        self.last = 0
        self.numbers = self.generate()
        self.lock = threading.Lock()

    def generate(self) -> Iterator[int]:
        while True:
            self.last += 1
            yield self.last

    def take_unsafely(self) -> int:
        return next(self.numbers)

    def take(self) -> int:
        with self.lock:
            return next(self.numbers)


def run(safe: bool) -> None:
    sequence = Sequence()
    take = sequence.take if safe else sequence.take_unsafely
    taken: list[int] = []
    threads = [threading.Thread(target=lambda: taken.append(take())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [1, 2]


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
