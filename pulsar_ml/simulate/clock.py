"""The virtual clock: what happens next, in order of time and then of registration."""

from __future__ import annotations

import heapq
from collections.abc import Callable

NANOS = 1_000_000_000
MILLI = 1_000_000


class VirtualClock:
    """Nanoseconds since the start, and the calls that are still to come."""

    __slots__ = ("_calls", "_registered", "now")

    def __init__(self) -> None:
        self.now = 0
        self._registered = 0
        self._calls: list[tuple[int, int, Callable[[], None]]] = []

    def after(self, delay: int, call: Callable[[], None]) -> None:
        """Run ``call`` when ``delay`` nanoseconds (>= 0) have passed."""
        self._registered += 1
        heapq.heappush(self._calls, (self.now + delay, self._registered, call))

    def run_until(self, end: int) -> None:
        """Make every call that is due before ``end``, then stand at ``end``."""
        while self._calls and self._calls[0][0] < end:
            self.now, _, call = heapq.heappop(self._calls)
            call()
        self.now = end

    def __call__(self) -> int:
        return self.now
