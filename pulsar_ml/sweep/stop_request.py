"""Ctrl-C as a wish: the first asks to stop and keep what finished, the second stops at once."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Handles SIGINT and SIGTERM of the process while its ``with`` block runs; main thread only."""

    def __init__(self) -> None:
        self._asked = False
        self._earlier = {number: signal.getsignal(number) for number in SIGNALS}

    def install(self) -> None:
        """Takes the signals over. Libraries take them too, so this may be called again after them."""
        for number in SIGNALS:
            signal.signal(number, self._handle)

    def asked(self) -> bool:
        return self._asked

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True

    def __enter__(self) -> StopRequest:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._earlier.items():
            signal.signal(number, handler)
