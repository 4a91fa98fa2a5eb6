"""Rounds of slices, until a budget of time is spent or every test has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from pulsar_ml.harness.budgets.split import Slice, division, first_slice


class Sliced(Protocol):
    """A test that can be explored for a while, and goes on later where it stopped."""

    @property
    def last(self) -> Slice | None:
        """The last slice; None before the first one, and when no more slices are of use."""

    def go_on(self, seconds: float) -> object:
        """Explore for one slice."""


Test = TypeVar("Test", bound=Sliced)


def spend(
    tests: Iterable[Test],
    count: int,
    budget: float,
    clock: Callable[[], float] = time.monotonic,
) -> list[Test]:
    """Explore ``count`` tests in slices; return those that got one, in the order of ``tests``.

    ``tests`` may be a generator that prepares each one, as by building it: its time is of the
    budget.
    """
    end = clock() + budget
    reached: list[Test] = []
    upcoming = iter(tests)
    while clock() < end and (test := next(upcoming, None)) is not None:
        if (left := end - clock()) <= 0:  # spent while the test was built
            break
        test.go_on(first_slice(budget, left, max(1, count - len(reached))))
        reached.append(test)
    while (left := end - clock()) > 0:
        shares = division(left, [test.last for test in reached])
        if not any(shares):
            break
        for test, seconds in zip(reached, shares, strict=True):
            if seconds and clock() < end:
                test.go_on(min(seconds, end - clock()))
    return reached
