"""A client that enters its event behind its request: an answer before the entry wakes nobody."""

from __future__ import annotations

import queue
import threading


class Client:
    """Sends requests to a thread that answers them, and waits for the answers."""

    def __init__(self) -> None:
        self.requests: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.waiting: dict[int, threading.Event] = {}
        self.answers: dict[int, int] = {}

    def serve(self) -> None:
        request = self.requests.get()
        self.answers[request] = 2 * request
        event = self.waiting.pop(request, None)
        if event is not None:
            event.set()

    def call_unsafely(self, request: int) -> int:
        self.requests.put(request)
        event = self.waiting[request] = threading.Event()
        event.wait()
        return self.answers[request]

    def call(self, request: int) -> int:
        event = self.waiting[request] = threading.Event()
        self.requests.put(request)
        event.wait()
        return self.answers[request]


def run(safe: bool) -> None:
    client = Client()
    server = threading.Thread(target=client.serve)
    server.start()
    assert (client.call(7) if safe else client.call_unsafely(7)) == 14
    server.join()


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
