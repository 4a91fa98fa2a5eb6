"""A timer that fires although it was cancelled: the check and the action are two steps."""

from __future__ import annotations

import threading


class Session:
    def __init__(self) -> None:
        self.state = "open"
        self.lock = threading.Lock()
        self.timer = threading.Timer(30, self.expire)

    def expire(self) -> None:
        if self.state == "open":
            self.state = "expired"

    def expire_locked(self) -> None:
        with self.lock:
            self.expire()

    def finish(self) -> None:
        self.timer.cancel()
        assert self.state in ("open", "expired")
        if self.state == "open":
            self.state = "finished"
            assert self.state == "finished", "a finished session expired"

    def finish_locked(self) -> None:
        with self.lock:
            self.finish()


def test_buggy() -> None:
    session = Session()
    session.timer.start()
    session.finish()
    session.timer.join()


def test_mended() -> None:
    session = Session()
    session.timer = threading.Timer(30, session.expire_locked)
    session.timer.start()
    session.finish_locked()
    session.timer.join()
