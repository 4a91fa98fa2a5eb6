"""Waits for a Spark master: says so after some seconds, and gives up after a bounded time."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from pulsar_ml.terminal.printer import echo

MESSAGE_SECONDS = 5.0  # of silence, at most
MASTER_SECONDS = 60.0


def note_on_stderr(text: str) -> None:
    echo(text, err=True)


class MasterWait:
    """Watches a session that is being made; its JVM is killed when the master does not answer.

    A call into the JVM cannot be interrupted otherwise.
    """

    def __init__(
        self, master: str, seconds: float, gateway: Any, note: Callable[[str], None]
    ) -> None:
        self._master = master
        self._seconds = seconds
        self._process = getattr(gateway, "proc", None)
        self._note = note
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self.gave_up = False

    def _wait(self) -> None:
        first = min(MESSAGE_SECONDS, self._seconds)
        if self._over.wait(first):
            return
        self._note(f"waiting for the Spark master {self._master} for up to {self._seconds:g} s")
        if self._over.wait(self._seconds - first):
            return
        self.gave_up = True
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def sentence(self) -> str:
        return (
            f"the Spark master {self._master} did not answer within {self._seconds:g} s; is it "
            "running, and of the same Spark version? --master-seconds N waits longer, and "
            "--runner pool and --master local[*] need no cluster"
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
