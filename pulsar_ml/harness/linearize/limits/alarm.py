"""The alarm of a check: interrupts Python code, such as a model's step, when the time is over.

Native searches look at the clock themselves. Everything else is interrupted by a signal between two
of its instructions, or in a call that waits. A call into native code of others, such as a large
product of matrices, ends first. The alarm is silent outside the main thread, and where the program
uses SIGALRM itself: there, a limit is noticed after a step.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType

from pulsar_ml.harness.linearize.effort import FOR_EVER

GRACE = 0.05  # seconds in which a native search notices the end of the time before the alarm
AGAIN = 0.05  # seconds between two alarms: a model may swallow an exception

# The functions behind those of ``signal``, which take most of their time to name handlers.
set_handler, handler = (getattr(import_module("_signal"), name) for name in ("signal", "getsignal"))


class OutOfTime(BaseException):
    """The time limit of a check is over; no Exception, so that a model's handlers let it pass."""


class Alarm:
    """The alarm that is set; ``active`` is False once its block is over."""

    def __init__(self) -> None:
        self.active = True

    def ring(self, number: int, frame: FrameType | None) -> None:
        if self.active:
            raise OutOfTime


def free() -> bool:
    """Return True when this thread may set an alarm, and nobody else has set one."""
    return (
        threading.current_thread() is threading.main_thread()
        and handler(signal.SIGALRM) in (signal.SIG_DFL, signal.SIG_IGN)
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    )


@contextmanager
def alarm(deadline_ns: int) -> Iterator[None]:
    """Raise OutOfTime inside the block when the moment of the monotonic clock has come.

    The exception may also come directly behind the block's last statement.
    """
    if deadline_ns == FOR_EVER or not free():
        yield
        return
    own = Alarm()
    earlier = set_handler(signal.SIGALRM, own.ring)
    try:
        seconds = max(0.0, (deadline_ns - time.monotonic_ns()) / 1e9) + GRACE
        signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
        yield
    finally:
        own.active = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        set_handler(signal.SIGALRM, earlier)
