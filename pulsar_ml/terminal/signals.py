"""The signals that end a command: Ctrl-C, SIGTERM, SIGHUP and SIGQUIT, at any moment.

The exit code is 128 + the number of the first signal. Before a command holds anything, a signal
ends the process at once (:func:`leave_at_once`). A command runs within :func:`interrupting`, where
a signal raises :class:`Interrupted`; what must not be torn, as writing the end of a run, runs
within :func:`deferred`.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
IMPORT_FRAMES = "<frozen importlib._bootstrap>"


class Interrupted(KeyboardInterrupt):
    """A signal arrived."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.number = number


class _State:
    first = 0  # the number of the first signal
    deferring = 0
    waiting = 0  # a signal that arrived meanwhile
    holding = 0  # runs that are open for writing, and answers that are owed


def code(number: int = 0) -> int:
    """Return the exit code of a command that a signal ended; of the first one by default."""
    return 128 + (number or _State.first or signal.SIGINT)


def note(number: int) -> None:
    """Remember the first signal."""
    _State.first = _State.first or number


def defer(number: int) -> bool:
    """Return True, and remember the signal, when it has to wait."""
    if _State.deferring:
        _State.waiting = number
    return bool(_State.deferring)


def leave(number: int, frame: FrameType | None = None) -> None:
    """End the process at once. Its children end with it, and the kernel closes its files."""
    note(number)
    with suppress(OSError):
        os.write(2, b"Interrupted\n")
    os._exit(code())


def leave_at_once() -> None:
    """Make signals end this process at once; for the start of a program, which holds nothing."""
    install(leave)


def install(handler: object) -> None:
    """Install a handler of the main thread; a SIGHUP that is ignored, as by nohup, stays so."""
    for number in SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)  # type: ignore[arg-type]


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise Interrupted, or leave during an import, from which an exception may not come out."""
    note(number)
    if defer(number):
        return
    if not _State.holding and importing(frame):
        leave(number)
    raise Interrupted(number)


def importing(frame: FrameType | None) -> bool:
    """Return True when a frame, or one that called it, is an import."""
    while frame is not None:
        if frame.f_code.co_filename == IMPORT_FRAMES:
            return True
        frame = frame.f_back
    return False


@contextmanager
def interrupting() -> Iterator[None]:
    """Let signals raise Interrupted while the block runs; without effect in other threads."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = {number: signal.getsignal(number) for number in SIGNALS}
    _State.first = 0
    install(interrupt)
    try:
        yield
    finally:
        for number, handler in earlier.items():
            if handler is not None:  # not installed from Python
                signal.signal(number, handler)


@contextmanager
def deferred() -> Iterator[None]:
    """Let signals wait until the block has ended; then Interrupted is raised."""
    _State.deferring += 1
    try:
        yield
    finally:
        _State.deferring -= 1
        number, _State.waiting = _State.waiting, 0
        if number and _State.deferring:
            _State.waiting = number
        elif number:
            raise Interrupted(number)


@contextmanager
def holding() -> Iterator[None]:
    """Say that a run is open for writing, or an answer is owed, whatever the moment of a signal."""
    _State.holding += 1
    try:
        yield
    finally:
        _State.holding -= 1
