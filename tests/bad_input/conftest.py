"""Fails a test that waits for something that never comes."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

PATIENCE = 600  # seconds; what is tried takes far less than one on a quiet machine


@pytest.fixture(autouse=True)
def no_waiting() -> Iterator[None]:
    def late(*_: object) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
