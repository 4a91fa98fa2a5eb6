"""Executions that cannot be repeated end without a verdict, and the message has a likely cause."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable

import pytest

from pulsar_ml.errors import NondeterminismError
from pulsar_ml.harness.pythreads.causes import STATE
from pulsar_ml.harness.pythreads.check import explore_python


class Box:
    def __init__(self) -> None:
        self.value = 0


def steps(number: int) -> None:
    """Make as many steps as the number says, beside another thread."""
    box = Box()
    thread = threading.Thread(target=lambda: setattr(box, "value", 1))
    thread.start()
    for _ in range(number):
        box.value += 1
    thread.join()


kept: list[object] = []
numbers = [0]


# So many different numbers of steps that two in a row are equal by no chance that matters: several
# executions of each test are repeated.
MANY = 499


def by_state() -> None:
    numbers[0] += 1
    steps(numbers[0] % MANY)


def by_address() -> None:
    kept.append(object())  # so that the next one has another address
    steps(id(kept[-1]) // 16 % MANY)


def by_set() -> None:
    boxes = [Box() for _ in range(40)]
    kept.append(boxes)
    for index, box in enumerate(boxes):
        box.value = index
    total = 0
    for position, box in enumerate(set(boxes)):
        total += position * box.value
    steps(total % MANY)


def by_time() -> None:
    steps(datetime.datetime.now().microsecond % MANY)


def by_processor_time() -> None:
    sum(range(300_000))  # longer than the tick in which some machines count this time
    steps(time.process_time_ns() // 100 % MANY)


def controlled() -> None:
    steps(int(time.time()) % 3 + hash("text") % 3 + len({1, 2, 3}))


@pytest.mark.parametrize(
    ("test", "cause"),
    [
        (by_state, STATE),
        (by_address, r"likely cause: id\(\), an address, at pythreads/test_causes\.py:\d+"),
        (
            by_set,
            "likely cause: the order of a set of Box objects, which follows their addresses, at",
        ),
        (by_time, r"likely cause: datetime\.now\(\), the system's clock, at"),
        (by_processor_time, "likely cause: .*the processor's time, at"),
    ],
)
def test_the_likely_cause_is_named(test: Callable[[], None], cause: str) -> None:
    with pytest.raises(NondeterminismError, match=cause):
        explore_python(test, executions=2000, isolated=False)


def test_what_the_engine_controls_is_no_cause() -> None:
    done, text = explore_python(controlled, executions=300, isolated=False)
    assert done.failure is None, text


def test_the_first_difference_has_a_place() -> None:
    with pytest.raises(NondeterminismError, match=r"at \S+ pythreads/test_causes\.py:\d+"):
        explore_python(by_state, executions=300)
