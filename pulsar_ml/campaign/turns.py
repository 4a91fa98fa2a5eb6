"""Turns of trials with the cores of a machine: who holds a token makes its concurrent runs.

A trial of a few threads needs as many cores for its concurrent runs, and one core for all else. So
more trials are under way than can run at once, and a token says whose turn it is. It is a name that
one process can take; the system takes it back when that process ends in whatever way. Tokens order
trials, and nothing depends on them: who waits for too long goes on without.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pulsar_ml.processors import processor_count

LOOK_SECONDS = 0.001
MOST_SECONDS = 2.0  # that a trial waits for a token

_sharing = ""
_end: float | None = None  # of time.monotonic()


def runs_at_once(threads: int) -> int:
    """The number of runs of ``threads`` threads that this machine makes at once.

    Twice as many as its cores have room for, and one more, because the threads of a run wait for
    each other.
    """
    cores = processor_count()
    return cores if threads == 1 else -(-2 * cores // threads) + 1


def ends_at(moment: float | None) -> None:
    """Lets trials make no further runs from this moment of the monotonic clock on; None: never."""
    global _end
    _end = moment


def left_ns() -> int:
    """The nanoseconds in which trials may make further runs."""
    if _end is None:
        return 1 << 62
    return max(0, int((_end - time.monotonic()) * 1e9))


def share_cores(name: str) -> None:
    """Shares the cores from now on with all processes of this machine that say the same name."""
    global _sharing
    _sharing = name


@contextmanager
def token(threads: int) -> Iterator[None]:
    """While it is entered, this process holds the cores for a run of ``threads`` threads."""
    held = _taken(runs_at_once(threads)) if _sharing else None
    try:
        yield
    finally:
        if held is not None:
            held.close()


def _taken(count: int) -> socket.socket | None:
    """One of ``count`` tokens as soon as it is free; None when none was for MOST_SECONDS."""
    end = time.monotonic() + MOST_SECONDS
    one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    while time.monotonic() < end:
        for number in range(count):
            try:
                one.bind(f"\0pulsar_ml {_sharing} {number}")  # an abstract name, in no directory
            except OSError:
                continue
            return one
        time.sleep(LOOK_SECONDS)
    one.close()
    return None
