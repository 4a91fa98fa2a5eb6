"""Tests of pyee: a listener for one event, and two threads that emit the event."""

from __future__ import annotations

import pyee

from tests.pythreads.packages.running import together

Emitter = getattr(pyee, "EventEmitter", None) or pyee.BaseEventEmitter


def once() -> None:
    emitter = Emitter()
    heard: list[int] = []

    def listener(number: int) -> None:
        heard.append(number)

    emitter.once("ready", listener)
    together(lambda: emitter.emit("ready", 1), lambda: emitter.emit("ready", 1))
    assert heard == [1]
