"""The virtual clock: runs calls in the order of their time, and then of their registration."""

from __future__ import annotations

import heapq
from collections.abc import Callable

NANOS = 1_000_000_000
MILLI = 1_000_000


class VirtualClock:
    """Nanoseconds since the start, and the scheduled calls."""

    __slots__ = ("_calls", "_registered", "now")

    def __init__(self) -> None:
        self.now = 0
        self._registered = 0
        self._calls: list[tuple[int, int, Callable[[], None]]] = []

    def after(self, delay: int, call: Callable[[], None]) -> None:
        """Schedules ``call`` after ``delay`` nanoseconds (>= 0)."""
        self._registered += 1
        heapq.heappush(self._calls, (self.now + delay, self._registered, call))

    def run_until(self, end: int) -> None:
        """Runs every call that is due before ``end``, and sets the time to ``end``."""
        while self._calls and self._calls[0][0] < end:
            self.now, _, call = heapq.heappop(self._calls)
            call()
        self.now = end

    def __call__(self) -> int:
        return self.now
