"""Signals during a sweep: the first requests a graceful stop, the second stops at once.

Any further one waits until the end of the run is written, and then ends the process at once.
"""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Self

from pulsar_ml.terminal import signals
from pulsar_ml.terminal.signals import SIGNALS, Interrupted


class StopRequest:
    """Handles the signals of the process while its ``with`` block runs; main thread only.

    Before ``install`` the first signal stops at once, because there is nothing to keep.
    """

    def __init__(self) -> None:
        self._requested = False
        self._stopping = False
        self._hurried = False
        self._written = False
        self._earlier = {number: signal.getsignal(number) for number in SIGNALS}

    def install(self) -> None:
        """Makes the first signal a request. Libraries replace handlers, so call it after them."""
        signals.install(self._request)

    def requested(self) -> bool:
        return self._requested

    def written(self) -> None:
        """The end of the run is on disk: from now on a signal ends the process at once."""
        self._written = True
        if self._hurried:
            signals.leave(0)

    def _request(self, number: int, frame: FrameType | None) -> None:
        signals.note(number)
        if self._requested or self._written:
            self._stop(number)
        self._requested = True

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        signals.note(number)
        self._stop(number)

    def _stop(self, number: int) -> None:
        if self._written:
            signals.leave(number)
        if self._stopping:
            self._hurried = True
            return
        if signals.defer(number):
            return
        self._stopping = True
        raise Interrupted(number)

    def __enter__(self) -> Self:
        signals.install(self._interrupt)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._earlier.items():
            if handler is not None:
                signal.signal(number, handler)
