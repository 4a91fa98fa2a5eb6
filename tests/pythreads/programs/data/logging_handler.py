"""A handler of ``logging`` that collects records: its flush takes no lock and loses records."""

from __future__ import annotations

import logging
import threading


class Collecting(logging.Handler):
    """Keeps messages until ``flush``. ``logging`` holds the handler's lock around ``emit``."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []
        self.sent: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())

    def flush(self) -> None:
        for message in self.messages:
            self.sent.append(message)
        self.messages.clear()


class Locking(Collecting):
    def flush(self) -> None:
        self.acquire()
        try:
            super().flush()
        finally:
            self.release()


def run(handler: Collecting) -> None:
    logger = logging.Logger("program")
    logger.addHandler(handler)
    threads = [
        threading.Thread(target=logger.error, args=("first",)),
        threading.Thread(target=logger.error, args=("second",)),
        threading.Thread(target=handler.flush),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handler.flush()
    assert sorted(handler.sent) == ["first", "second"]


def test_buggy() -> None:
    run(Collecting())


def test_mended() -> None:
    run(Locking())
