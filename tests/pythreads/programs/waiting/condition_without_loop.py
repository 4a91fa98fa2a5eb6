"""A consumer that checks the condition once, and finds the queue empty when it wakes."""

from __future__ import annotations

import threading


class Mailbox:
    def __init__(self) -> None:
        self.letters: list[str] = []
        self.arrived = threading.Condition()

    def send(self, letter: str) -> None:
        with self.arrived:
            self.letters.append(letter)
            self.arrived.notify()

    def receive_once_checked(self) -> str:
        with self.arrived:
            if not self.letters:
                self.arrived.wait()
            return self.letters.pop()

    def receive(self) -> str:
        with self.arrived:
            while not self.letters:
                self.arrived.wait()
            return self.letters.pop()


def run(safe: bool) -> None:
    mailbox = Mailbox()
    receive = mailbox.receive if safe else mailbox.receive_once_checked
    threads = [threading.Thread(target=receive) for _ in range(2)]
    for thread in threads:
        thread.start()
    mailbox.send("first")
    mailbox.send("second")
    for thread in threads:
        thread.join()


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
