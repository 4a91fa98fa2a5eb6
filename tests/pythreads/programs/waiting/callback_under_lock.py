"""A cache and its listener, each with a lock: the listener is called with the cache's lock held."""

from __future__ import annotations

import threading


class Cache:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.entries: dict[str, int] = {}
        self.listener: Statistics | None = None

    def put_unsafely(self, key: str, value: int) -> None:
        with self.lock:
            self.entries[key] = value
            if self.listener is not None:
                self.listener.on_put(key)

    def put(self, key: str, value: int) -> None:
        with self.lock:
            self.entries[key] = value
            listener = self.listener
        if listener is not None:
            listener.on_put(key)

    def size(self) -> int:
        with self.lock:
            return len(self.entries)


class Statistics:
    def __init__(self, cache: Cache) -> None:
        self.lock = threading.Lock()
        self.cache = cache
        self.puts = 0

    def on_put(self, key: str) -> None:
        with self.lock:
            self.puts += 1

    def report(self) -> tuple[int, int]:
        with self.lock:
            return self.puts, self.cache.size()


def run(safe: bool) -> None:
    cache = Cache()
    statistics = cache.listener = Statistics(cache)
    put = cache.put if safe else cache.put_unsafely
    threads = [
        threading.Thread(target=put, args=("a", 1)),
        threading.Thread(target=statistics.report),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statistics.report() == (1, 1)


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
