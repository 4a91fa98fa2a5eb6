"""Effort: the steps and the time of one check, and their limits."""

from __future__ import annotations

import time

FOR_EVER = 2**63 - 1


class Effort:
    """The steps that searches took so far, and the moment at which they give up.

    Attributes:
        most_steps: the limit of steps of all searches together.
        deadline_ns: the moment of the monotonic clock at which searches end; FOR_EVER: none.
        steps, configurations: steps of all searches, and configurations of the largest.
        parts, legal_parts: of a history in parts, their number, and the number of legal ones.
    """

    def __init__(self, most_steps: int, deadline_ns: int = FOR_EVER) -> None:
        self.most_steps = most_steps
        self.deadline_ns = deadline_ns
        self.steps = 0
        self.configurations = 0
        self.parts = 0
        self.legal_parts = 0

    @classmethod
    def of(cls, most_steps: int, timeout: float | None) -> Effort:
        """Return an effort that ends ``timeout`` seconds from now, or without a limit of time."""
        if timeout is None:
            return cls(most_steps)
        return cls(most_steps, min(FOR_EVER, time.monotonic_ns() + int(timeout * 1e9)))

    @property
    def left(self) -> int:
        """The steps that remain."""
        return max(0, self.most_steps - self.steps)

    @property
    def late(self) -> bool:
        """True when the time is over."""
        return self.deadline_ns != FOR_EVER and time.monotonic_ns() > self.deadline_ns

    def soon(self, seconds: float) -> int:
        """Return the moment after so many seconds, or the deadline if that is earlier."""
        return min(self.deadline_ns, time.monotonic_ns() + int(seconds * 1e9))

    def seconds_left(self) -> float | None:
        """Return the seconds that remain, at least a nanosecond; None: no limit."""
        if self.deadline_ns == FOR_EVER:
            return None
        return max(1, self.deadline_ns - time.monotonic_ns()) / 1e9

    def add(self, steps: int, configurations: int) -> None:
        """Count a search. It notices its limit one step behind it, which is not counted."""
        self.steps = min(self.steps + steps, self.most_steps)
        self.configurations = max(self.configurations, configurations)

    def limit_reached(self, answer: str) -> str:
        """Describe an answer such as "out of steps" with the effort until then."""
        return f"{answer} after {self.steps} steps in {self.configurations} configurations"
