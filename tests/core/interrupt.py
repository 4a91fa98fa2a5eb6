"""Calls into the core with a pending signal, so that an interrupt lands at a known point."""

from __future__ import annotations

import ctypes
import operator
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest


def call_interrupted(call: Callable[[], object]) -> None:
    """Run ``call`` as if Ctrl-C had been pressed the moment before; it must let the interrupt
    through.

    The C library's raise() leaves the signal pending: Python's handlers run between byte codes, and
    ``map`` goes from one C function to the next without any.
    """
    press: Callable[[], object] = partial(ctypes.CDLL(None)["raise"], signal.SIGINT)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            calls: Any = map(operator.call, [press, call])
            list(calls)
    finally:
        signal.signal(signal.SIGINT, before)
