"""A report over a dict that another thread changes meanwhile."""

from __future__ import annotations

import threading


class Metrics:
    def __init__(self) -> None:
        self.counts = {"a": 1, "b": 2}

    def add(self, name: str) -> None:
        self.counts[name] = 1

    def total_unsafely(self) -> int:
        total = 0
        for name in self.counts:
            total += self.counts[name]
        return total

    def total(self) -> int:
        return sum(self.counts.copy().values())


def run(safe: bool) -> None:
    metrics = Metrics()
    threads = [
        threading.Thread(target=metrics.add, args=("c",)),
        threading.Thread(target=metrics.total if safe else metrics.total_unsafely),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
