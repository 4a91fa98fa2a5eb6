"""Finds the Python stack of a child process whose execution does not end.

The child writes it into a page that both processes share when a signal arrives.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import threading
import time
from contextlib import suppress

from pulsar_ml.harness.engine import Explorer  # noqa: F401  (_fibers calls its symbols)
from pulsar_ml.harness.pythreads._fibers import answer_stuck
from pulsar_ml.harness.pythreads.failures import short_name
from pulsar_ml.harness.pythreads.points import PACKAGE
from pulsar_ml.harness.search import sandbox
from pulsar_ml.harness.search.child import Standing

__all__ = ["PAGE", "answer", "answer_stuck", "places", "standing"]

SIGNAL = signal.SIGRTMIN + 11  # of no meaning to the interpreter and to most programs
PATIENCE = 2.0  # seconds for the answer of a child that can run
HEADER = struct.Struct("=iii")  # process, thread, and the process that can answer
TEXT = 16
PAGE = mmap.mmap(-1, mmap.PAGESIZE)
ADVICE = (
    "a loop that waits needs a step, such as a lock, an attribute or time.sleep(); a long "
    "computation needs a larger bound: --patience, or limits=Limits(wall=..., cpu=...)"
)


def answer() -> None:
    """Let this process answer, from its main thread."""
    if threading.current_thread() is not threading.main_thread():
        return
    answer_stuck(PAGE, int(SIGNAL))
    struct.pack_into("=i", PAGE, 8, os.getpid())


def standing(pid: int, quiet: float) -> Standing | None:
    """Return where the running thread of a child stands; None for a child without an answer.

    ``quiet`` is the time without a step.
    """
    _, _, ready = HEADER.unpack_from(PAGE)
    if ready != pid:
        return None
    struct.pack_into("=i", PAGE, 0, 0)
    os.kill(pid, SIGNAL)
    deadline = time.monotonic() + PATIENCE
    while HEADER.unpack_from(PAGE)[0] != pid:
        if time.monotonic() > deadline:
            return None
        time.sleep(0.01)
    with suppress(OSError):  # what it wrote is complete when it has stopped
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    _, thread, _ = HEADER.unpack_from(PAGE)
    text = PAGE[TEXT:].partition(b"\0")[0].decode("ascii", "replace")
    stack = tuple(places(text))
    if thread < 0 or not stack:
        return None
    steps = f"took no scheduling point for {quiet:.1f} s" if quiet > 0 else "goes on taking steps"
    return Standing(f": thread {thread} {steps} at {stack[0]}; {ADVICE}", stack)


def places(text: str) -> list[str]:
    """Return the frames of Python code, from the inside out, without those that call the test."""
    found = []
    for row in text.splitlines():
        line, _, rest = row.partition("\t")
        function, _, file = rest.partition("\t")
        if file.startswith(PACKAGE) or file == threading.__file__:
            continue
        found.append(f"{function.replace('.<locals>.', '.')} {short_name(file)}:{line}")
    return found


sandbox.STANDINGS.append(standing)
