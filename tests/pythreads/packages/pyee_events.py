"""Tests of pyee: a listener for one event, and two threads that emit the event."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.pythreads.packages.running import together

pyee: Any = import_module("pyee")


def once() -> None:
    emitter = pyee.EventEmitter()
    heard: list[int] = []

    def listener(number: int) -> None:
        heard.append(number)

    emitter.once("ready", listener)
    together(lambda: emitter.emit("ready", 1), lambda: emitter.emit("ready", 1))
    assert heard == [1]
