"""A buffer with one condition for both sides: a notification wakes a thread of the wrong side."""

from __future__ import annotations

import threading


class Buffer:
    def __init__(self, room: int, wakes_all: bool) -> None:
        self.room = room
        self.items: list[int] = []
        self.changed = threading.Condition()
        self.wake = self.changed.notify_all if wakes_all else self.changed.notify

    def put(self, item: int) -> None:
        with self.changed:
            while len(self.items) == self.room:
                self.changed.wait()
            self.items.append(item)
            self.wake()

    def get(self) -> int:
        with self.changed:
            while not self.items:
                self.changed.wait()
            item = self.items.pop(0)
            self.wake()
            return item


def run(wakes_all: bool) -> None:
    buffer = Buffer(1, wakes_all)
    threads = [threading.Thread(target=buffer.get) for _ in range(2)]
    threads += [threading.Thread(target=buffer.put, args=(item,)) for item in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not buffer.items


def test_buggy() -> None:
    run(wakes_all=False)


def test_mended() -> None:
    run(wakes_all=True)
