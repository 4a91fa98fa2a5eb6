"""Patience: progress of work that takes longer than two seconds, and Ctrl-C inside of it."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from pulsar_ml.terminal.signals import SIGNALS

SECONDS_SILENT = 2.0
SECONDS_BETWEEN = 0.5
OVER = b"\0"  # no signal has this number


class Patience:
    """Shows what ``describe`` returns, once a block has taken two seconds; a context.

    A thread shows it, because a search does not return for long. A signal that ends the command
    ends a search by way of this thread, too, which then calls ``stop``: Python handles a signal
    only when the search has returned.
    """

    def __init__(self, describe: Callable[[], str], stop: Callable[[], None]) -> None:
        self._describe = describe
        self._stop = stop
        self._lock = threading.Lock()
        self._over = False
        self._shown = False
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._pipe, self._signals = os.pipe()
        os.set_blocking(self._signals, False)
        self._earlier: int | None = None
        if threading.current_thread() is threading.main_thread():
            self._earlier = signal.set_wakeup_fd(self._signals, warn_on_full_buffer=False)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        place: TracebackType | None,
    ) -> None:
        if self._earlier is not None:
            signal.set_wakeup_fd(self._earlier)
        with self._lock:
            self._over = True
        with suppress(OSError):  # the thread failed
            os.write(self._signals, OVER)
        if self._shown:  # else it may still import, and closes the pipe later
            self._thread.join()

    def _watch(self) -> None:
        try:
            if self._silent(SECONDS_SILENT):
                return
            from pulsar_ml.terminal.progress import ProgressDisplay  # slow to import, rarely needed

            with self._lock:
                if self._over:
                    return
                self._shown = True
            with ProgressDisplay() as display:
                display.begin("linearize", headline=self._text())
                while not self._silent(SECONDS_BETWEEN):
                    display.update(0, self._text())
        finally:
            os.close(self._pipe)
            os.close(self._signals)

    def _silent(self, seconds: float) -> bool:
        """Wait; return True when the work is over."""
        end = time.monotonic() + seconds
        while (rest := end - time.monotonic()) > 0:
            if select.select([self._pipe], [], [], rest)[0]:
                numbers = os.read(self._pipe, 64)
                if any(number in SIGNALS for number in numbers):
                    self._stop()
                if OVER in numbers:
                    return True
        return False

    def _text(self) -> str:
        return f"{self._describe()}, {time.monotonic() - self._began:.0f} s"
