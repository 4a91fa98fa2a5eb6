"""A shared file with a count of its users: the last two users close it twice, or nobody does."""

from __future__ import annotations

import threading


class Shared:
    def __init__(self, users: int) -> None:
        self.users = users
        self.closed = 0
        self.lock = threading.Lock()

    def leave_unsafely(self) -> None:
        self.users -= 1
        if self.users == 0:
            self.closed += 1

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            last = self.users == 0
        if last:
            self.closed += 1


def run(safe: bool) -> None:
    shared = Shared(users=2)
    leave = shared.leave if safe else shared.leave_unsafely
    threads = [threading.Thread(target=leave) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared.closed == 1, f"closed {shared.closed} times"


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
