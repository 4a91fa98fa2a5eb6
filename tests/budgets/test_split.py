"""The division of a budget of time, which is arithmetic over counts, and its rounds by a clock."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pulsar_ml.harness.budgets.rounds import spend
from pulsar_ml.harness.budgets.split import LEAST, Slice, division, duration, first_slice


def test_a_round_follows_the_new_classes_of_each_execution() -> None:
    last = [Slice(999, 299), Slice(999, 99), None]  # with one more of both: 0.3 and 0.1
    assert division(80.0, last) == [30.0, 10.0, 0.0]
    assert division(80.0, [Slice(9_990, 2_999), *last[1:]]) == pytest.approx(
        [30.0, 10.0, 0.0], 1e-2
    )
    assert division(80.0, [None, None]) == [0.0, 0.0]
    assert division(0.0, last) == [0.0, 0.0, 0.0]


def test_a_share_that_is_not_worth_its_start_goes_to_the_others() -> None:
    quiet = Slice(10**9, 0)
    assert division(8.0, [Slice(99, 9), quiet]) == [4.0, 0.0]
    # A half would be too little for both, so that the round is the last one.
    assert sum(division(2 * LEAST, [Slice(9, 0), Slice(9, 0)])) == 2 * LEAST
    assert division(LEAST / 8, [quiet, quiet]) == [LEAST / 8, 0.0]


def test_first_slices_have_one_half_and_what_is_left_over() -> None:
    assert first_slice(80.0, 80.0, 4) == 10.0
    assert first_slice(80.0, 70.0, 3) == 10.0
    assert first_slice(80.0, 79.0, 3) == 13.0  # the first test ended early
    assert first_slice(80.0, 16.0, 2) == 2.0  # building took long


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("5m", 300), ("1.5h", 5400), ("0.5", 0.5)]
)
def test_a_duration(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-5m", "0", "5 m", "5d", "1e9", "1..5", "nan", "9" * 10])
def test_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is no time; write 90s, 5m or 1.5h"):
        duration(text)


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Fake:
    """A test with so many classes, one in an execution, of which a second makes ten."""

    clock: Clock
    classes: int
    ends: bool = False
    last: Slice | None = None
    got: list[float] = field(default_factory=list)
    executions: int = 0

    def go_on(self, seconds: float) -> None:
        self.clock.now += 0.5 if self.ends else seconds
        self.got.append(seconds)
        count = round(10 * seconds)
        new = min(count, max(0, self.classes - self.executions))
        self.executions += count
        self.last = None if self.ends else Slice(count, new)


def test_rounds_go_where_classes_are_found_and_keep_to_the_budget() -> None:
    clock = Clock()
    rich, poor, done = Fake(clock, 10**6), Fake(clock, 5), Fake(clock, 10**6, ends=True)
    assert spend([done, poor, rich], 3, 60.0, clock) == [done, poor, rich]
    assert done.got == [10.0]
    assert poor.got[0] == rich.got[0] == 14.75  # with what the first one left
    assert sum(rich.got) > 40 > 20 > sum(poor.got)
    assert clock.now <= 160.0 + 1e-6


def test_a_test_that_is_not_reached_has_no_slice() -> None:
    clock = Clock()

    class Slow(Fake):
        def go_on(self, seconds: float) -> None:
            super().go_on(seconds)
            clock.now += 100  # one execution takes that long

    tests = [Slow(clock, 1), Slow(clock, 1)]
    assert spend(tests, 2, 60.0, clock) == tests[:1]
    assert tests[1].got == []
    assert spend(tests, 2, 0.0, clock) == []
