"""Progress of work that takes longer than two seconds, on standard error."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

SECONDS_SILENT = 2.0
SECONDS_BETWEEN = 0.5


class Patience:
    """Shows what ``describe`` returns, once a block has taken two seconds; a context.

    A thread shows it, because a search does not return for long.
    """

    def __init__(self, describe: Callable[[], str]) -> None:
        self._describe = describe
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._shown = False
        self._thread = threading.Thread(target=self._show, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        place: TracebackType | None,
    ) -> None:
        with self._lock:
            self._over.set()
        if self._shown:  # else it may still import
            self._thread.join()

    def _show(self) -> None:
        if self._over.wait(SECONDS_SILENT):
            return
        from pulsar_ml.terminal.progress import ProgressDisplay  # slow to import, rarely needed

        with self._lock:
            if self._over.is_set():
                return
            self._shown = True
        with ProgressDisplay() as display:
            display.begin("linearize", headline=self._text())
            while not self._over.wait(SECONDS_BETWEEN):
                display.update(0, self._text())

    def _text(self) -> str:
        return f"{self._describe()}, {time.monotonic() - self._began:.0f} s"
