"""Metrics that are sent in batches: a value that arrives during the exchange of lists is lost."""

from __future__ import annotations

import threading


class Metrics:
    def __init__(self) -> None:
        self.values: list[int] = []
        self.sent: list[int] = []
        self.lock = threading.Lock()

    def add_unsafely(self, value: int) -> None:
        self.values.append(value)

    def flush_unsafely(self) -> None:
        batch = self.values[:]
        self.values = []
        self.sent.extend(batch)

    def add(self, value: int) -> None:
        with self.lock:
            self.values.append(value)

    def flush(self) -> None:
        with self.lock:
            batch, self.values = self.values, []
        self.sent.extend(batch)


def run(safe: bool) -> None:
    metrics = Metrics()
    add = metrics.add if safe else metrics.add_unsafely
    flush = metrics.flush if safe else metrics.flush_unsafely

    def work() -> None:
        add(1)
        add(2)

    threads = [threading.Thread(target=target) for target in (work, flush)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    flush()
    assert sum(metrics.sent) == 3, f"sent: {metrics.sent}"


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
