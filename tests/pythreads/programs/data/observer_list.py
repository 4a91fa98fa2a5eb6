"""Observers that leave while they are notified: the loop over their list passes over one."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Subject:
    def __init__(self) -> None:
        self.observers: list[Callable[[str], None]] = []
        self.lock = threading.Lock()

    def attach(self, observer: Callable[[str], None]) -> None:
        with self.lock:
            self.observers.append(observer)

    def detach(self, observer: Callable[[str], None]) -> None:
        with self.lock:
            self.observers.remove(observer)

    def notify_unsafely(self, event: str) -> None:
        for observer in self.observers:
            observer(event)

    def notify(self, event: str) -> None:
        with self.lock:
            observers = list(self.observers)
        for observer in observers:
            observer(event)


def run(safe: bool) -> None:
    subject = Subject()
    events: list[str] = []

    def leaving(event: str) -> None:
        """Stand for an observer that is detached at any time."""

    subject.attach(leaving)
    subject.attach(events.append)
    notify = subject.notify if safe else subject.notify_unsafely
    threads = [
        threading.Thread(target=notify, args=("changed",)),
        threading.Thread(target=subject.detach, args=(leaving,)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert events == ["changed"], "an observer that stays was not notified"


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
