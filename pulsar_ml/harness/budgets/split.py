"""A budget of time, divided between tests by what each found last: pure arithmetic.

Every test gets a first slice; one half of the budget is for these. The rest goes in rounds, each of
one half of what is left, in proportion to the new classes per execution in a test's last slice.
The share of new classes among the last executions estimates how likely the next one is to be new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pulsar_ml.wording import counted

LEAST = 0.25  # seconds of a slice that is worth its start


@dataclass(frozen=True, slots=True)
class Slice:
    """Counts of one slice of a test: its executions, and those classes that no earlier one saw."""

    executions: int
    new: int

    @property
    def rate(self) -> Fraction:
        """New classes per execution, with one more of both: none seen is not none there."""
        return Fraction(self.new + 1, self.executions + 1)


def share_words(seconds: float, slices: int, last: Slice | None) -> str:
    """Describe what a test got of a budget, and what was new in its last slice."""
    if last is None:
        return "no slice"
    new = counted(last.new, "new class", "new classes")
    words = f"{seconds:,.1f} s in {counted(slices, 'slice')}, {new} in the last"
    return f"{words} {last.executions:,} executions"


def first_slice(budget: float, left: float, waiting: int) -> float:
    """The seconds of the next first slice, while ``waiting`` tests have had none.

    What a test before left of its slice goes to those that wait. Where building took the time of
    first slices, they have a quarter of what is left.
    """
    return max(left - budget / 2, left / 4) / waiting


def division(left: float, last: Sequence[Slice | None]) -> list[float]:
    """The seconds of each test in the next round; ``last`` is its last slice, None if it ended.

    A round has one half of what is left, or all when a half is too little. Tests whose share would
    be below :data:`LEAST` get nothing; the others share theirs.
    """
    open_tests = [at for at, one in enumerate(last) if one is not None]
    shares = [0.0] * len(last)
    if not open_tests or left <= 0:
        return shares
    spent = left / 2 if left / 2 >= LEAST * len(open_tests) else left
    rates = {at: one.rate for at, one in enumerate(last) if one is not None}
    chosen = sorted(open_tests, key=lambda at: (-rates[at], at))
    while len(chosen) > 1 and spent * rates[chosen[-1]] / sum(rates[at] for at in chosen) < LEAST:
        chosen.pop()
    total = sum(rates[at] for at in chosen)
    for at in chosen:
        shares[at] = float(spent * rates[at] / total)
    return shares


def duration(text: str) -> float:
    """The seconds of ``90``, ``90s``, ``5m`` or ``1.5h``. ValueError for other texts."""
    number, unit = (text[:-1], text[-1]) if text.endswith(("s", "m", "h")) else (text, "s")
    if not number.replace(".", "", 1).isdecimal() or len(number) > 9 or not float(number) > 0:
        raise ValueError(f"{text!r:.40} is no time; write 90s, 5m or 1.5h")
    return float(number) * {"s": 1, "m": 60, "h": 3600}[unit]
