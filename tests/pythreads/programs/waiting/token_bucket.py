"""A bucket of tokens that fills with time: one second is paid out to two threads."""

from __future__ import annotations

import threading
import time

pause = time.sleep  # takes no real time within an execution


class TokenBucket:
    """Starts empty, and gets a token for each second."""

    def __init__(self) -> None:
        self.tokens = 0
        self.filled = int(time.monotonic())
        self.lock = threading.Lock()

    def refill(self) -> None:
        now = int(time.monotonic())
        if now > self.filled:
            self.tokens += now - self.filled
            self.filled = now

    def take_unsafely(self) -> bool:
        self.refill()
        if self.tokens > 0:
            self.tokens -= 1
            return True
        return False

    def take(self) -> bool:
        with self.lock:
            return self.take_unsafely()


def run(safe: bool) -> None:
    bucket = TokenBucket()
    begin = bucket.filled
    taken: list[bool] = []
    pause(1)

    def take() -> None:
        taken.append(bucket.take() if safe else bucket.take_unsafely())

    threads = [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent, paid = sum(taken) + bucket.tokens, bucket.filled - begin
    assert spent == paid, f"{spent} tokens in {paid} s"


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
