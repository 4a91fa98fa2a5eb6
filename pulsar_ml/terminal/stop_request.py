"""Ctrl-C and SIGTERM: the first requests a graceful stop, the second stops at once."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Handles SIGINT and SIGTERM of the process while its ``with`` block runs; main thread only.

    Before ``install`` a signal raises KeyboardInterrupt at once, because there is nothing to keep.
    """

    def __init__(self) -> None:
        self._requested = False
        self._earlier = {number: signal.getsignal(number) for number in SIGNALS}

    def install(self) -> None:
        """Makes the first signal a request. Libraries replace handlers, so call it after them."""
        for number in SIGNALS:
            signal.signal(number, self._request)

    def requested(self) -> bool:
        return self._requested

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self._requested:
            raise KeyboardInterrupt
        self._requested = True

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def __enter__(self) -> Self:
        for number in SIGNALS:
            signal.signal(number, self._interrupt)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._earlier.items():
            signal.signal(number, handler)
