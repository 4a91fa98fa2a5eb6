"""Ends the JVM of a session with the session, whatever the moment."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil

END_SECONDS = 20.0  # for a JVM to end by itself, which removes its files


def end_jvm(gateway: Any) -> None:
    """Ends the JVM that this process started; that of spark-submit stays.

    PySpark would keep it until the end of this process, and a later session would use it although
    it starts a JVM of its own.
    """
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:
        return
    from pyspark import SparkContext

    SparkContext._gateway = SparkContext._jvm = None
    try:
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()  # the JVM ends with its standard input
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
    finally:
        _kill(process.pid)
        process.wait()
        # Behind the JVM: py4j closes what a thread of its own may be reading, and waits for it.
        with suppress(Exception):
            gateway.shutdown()


@contextmanager
def ended_when_interrupted() -> Iterator[None]:
    """Kills the processes that started within the block when an exception ends it.

    py4j prints the stack of an interrupted call within the block and afterwards; it is left out.
    """
    if _no_interrupts not in logging.root.filters:
        logging.root.addFilter(_no_interrupts)
    this = psutil.Process()
    before = {child.pid for child in this.children()}
    try:
        yield
    except BaseException:
        for child in this.children():
            if child.pid not in before:
                _kill(child.pid)
                with suppress(psutil.Error):
                    child.wait()
        with suppress(ImportError):
            from pyspark import SparkContext

            SparkContext._gateway = SparkContext._jvm = None
        raise


def _kill(leader: int) -> None:
    """Kills a process and its group; one that has not made its group yet, too."""
    for end in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            end(leader, signal.SIGKILL)


def _no_interrupts(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("KeyboardInterrupt while")
