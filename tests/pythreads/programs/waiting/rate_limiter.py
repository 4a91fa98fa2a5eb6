"""A limiter of calls in a sliding window: two threads take the window's last place."""

from __future__ import annotations

import threading
import time
from collections import deque


class RateLimiter:
    def __init__(self, calls: int, seconds: float) -> None:
        self.calls = calls
        self.seconds = seconds
        self.times: deque[float] = deque()
        self.lock = threading.Lock()

    def allow_unsafely(self) -> bool:
        now = time.monotonic()
        while self.times and now - self.times[0] >= self.seconds:
            self.times.popleft()
        if len(self.times) < self.calls:
            self.times.append(now)
            return True
        return False

    def allow(self) -> bool:
        with self.lock:
            return self.allow_unsafely()


def run(safe: bool) -> None:
    limiter = RateLimiter(calls=1, seconds=3600.0)
    allowed: list[bool] = []

    def call() -> None:
        allowed.append(limiter.allow() if safe else limiter.allow_unsafely())

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(allowed) == 1, f"{sum(allowed)} calls in a window of one"


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
