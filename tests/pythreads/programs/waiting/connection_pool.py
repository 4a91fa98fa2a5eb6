"""A pool that counts its connections: the limit is checked outside the lock of the list."""

from __future__ import annotations

import threading


class Pool:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.idle: list[int] = []
        self.opened = 0
        self.lock = threading.Lock()
        self.slots = threading.Semaphore(limit)

    def take_unsafely(self) -> int | None:
        with self.lock:
            if self.idle:
                return self.idle.pop()
        if self.opened < self.limit:
            self.opened += 1
            return self.opened
        return None

    def take(self) -> int:
        self.slots.acquire()
        with self.lock:
            if self.idle:
                return self.idle.pop()
            self.opened += 1
            return self.opened

    def give_back(self, connection: int) -> None:
        with self.lock:
            self.idle.append(connection)
        self.slots.release()


def run(safe: bool) -> None:
    pool = Pool(1)

    def use() -> None:
        connection = pool.take() if safe else pool.take_unsafely()
        if connection is not None:
            pool.give_back(connection)

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pool.opened <= 1, f"{pool.opened} connections of a pool of one"
    assert len(set(pool.idle)) == len(pool.idle), "one connection was given to two threads"


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
