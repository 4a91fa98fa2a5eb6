"""A configuration that is replaced as a whole: one change of two is lost without a lock."""

from __future__ import annotations

import threading


class Configuration:
    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.lock = threading.Lock()

    def set_unsafely(self, name: str, value: int) -> None:
        self.values = {**self.values, name: value}

    def set(self, name: str, value: int) -> None:
        with self.lock:
            self.values = {**self.values, name: value}


def run(safe: bool) -> None:
    configuration = Configuration()
    change = configuration.set if safe else configuration.set_unsafely
    threads = [threading.Thread(target=change, args=(name, 1)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert configuration.values == {"a": 1, "b": 1}


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
