"""A ``functools.cached_property`` that is dropped on change: an old value is cached behind it."""

from __future__ import annotations

import threading
from functools import cached_property


class Samples:
    def __init__(self, *values: float) -> None:
        self.values = list(values)
        self.lock = threading.Lock()

    @cached_property
    def mean(self) -> float:
        total = sum(self.values)
        return total / len(self.values)

    def add(self, value: float) -> None:
        self.values.append(value)
        self.__dict__.pop("mean", None)

    def locked_mean(self) -> float:
        with self.lock:
            return self.mean

    def locked_add(self, value: float) -> None:
        with self.lock:
            self.add(value)


def run(safe: bool) -> None:
    samples = Samples(2.0)

    def read() -> None:
        assert (samples.locked_mean() if safe else samples.mean) in (2.0, 3.0)

    add = samples.locked_add if safe else samples.add
    threads = [threading.Thread(target=read), threading.Thread(target=add, args=(4.0,))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert samples.mean == 3.0, "the mean is that of fewer values"


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
