"""A cache over OrderedDict: an entry may be evicted between the look-up and its move to the end."""

from __future__ import annotations

import threading
from collections import OrderedDict


class Cache:
    def __init__(self, size: int) -> None:
        self.size = size
        self.entries: OrderedDict[int, str] = OrderedDict()
        self.lock = threading.RLock()

    def get(self, key: int) -> str | None:
        if key not in self.entries:
            return None
        self.entries.move_to_end(key)
        return self.entries[key]

    def put(self, key: int, value: str) -> None:
        self.entries[key] = value
        if len(self.entries) > self.size:
            self.entries.popitem(last=False)

    def get_locked(self, key: int) -> str | None:
        with self.lock:
            return self.get(key)

    def put_locked(self, key: int, value: str) -> None:
        with self.lock:
            self.put(key, value)


def test_buggy() -> None:
    cache = Cache(1)
    cache.put(1, "one")
    threads = [
        threading.Thread(target=cache.get, args=(1,)),
        threading.Thread(target=cache.put, args=(2, "two")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_mended() -> None:
    cache = Cache(1)
    cache.put_locked(1, "one")
    threads = [
        threading.Thread(target=cache.get_locked, args=(1,)),
        threading.Thread(target=cache.put_locked, args=(2, "two")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(cache.entries) == [2]
