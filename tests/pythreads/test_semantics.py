"""Races by happens-before, and what orders two accesses."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import pytest

from pulsar_ml.harness.pythreads.check import explore_python


class Box:
    def __init__(self) -> None:
        self.value = 0


shared = 0


def attribute() -> None:
    box = Box()
    thread = threading.Thread(target=lambda: setattr(box, "value", 1))
    thread.start()
    assert box.value in (0, 1)
    thread.join()


def global_variable() -> None:
    def change() -> None:
        global shared
        shared = 1

    thread = threading.Thread(target=change)
    thread.start()
    assert shared in (0, 1)
    thread.join()


def cell() -> None:
    number = 0

    def change() -> None:
        nonlocal number
        number = 1

    thread = threading.Thread(target=change)
    thread.start()
    assert number in (0, 1)
    thread.join()


def joined() -> None:
    box = Box()
    thread = threading.Thread(target=lambda: setattr(box, "value", 1))
    thread.start()
    thread.join()
    assert box.value == 1


def locked() -> None:
    box, lock = Box(), threading.Lock()

    def change() -> None:
        with lock:
            box.value += 1

    thread = threading.Thread(target=change)
    thread.start()
    change()
    thread.join()
    assert box.value == 2


def through_a_queue() -> None:
    box, arrived = Box(), queue.SimpleQueue[int]()

    def change() -> None:
        box.value = 1
        arrived.put(1)

    thread = threading.Thread(target=change)
    thread.start()
    arrived.get()
    assert box.value == 1
    thread.join()


def by_an_event() -> None:
    box, done = Box(), threading.Event()

    def change() -> None:
        box.value = 1
        done.set()

    thread = threading.Thread(target=change)
    thread.start()
    done.wait()
    assert box.value == 1
    thread.join()


def containers() -> None:
    numbers, names = [0], {"a": 1}

    def change() -> None:
        numbers[0] = 1
        numbers.append(2)
        names["b"] = 2

    thread = threading.Thread(target=change)
    thread.start()
    assert numbers[0] in (0, 1)
    assert len(names) in (1, 2)
    thread.join()


@pytest.mark.parametrize(
    ("test", "name"),
    [(attribute, "Box.value"), (global_variable, "shared"), (cell, "number")],
)
def test_a_race_is_found_with_free_semantics_only(test: Callable[[], None], name: str) -> None:
    done, _ = explore_python(test, isolated=False, executions=200, semantics="free")
    assert done.failure is not None
    assert done.failure.kind == "data race"
    assert name in done.failure.message
    done, text = explore_python(test, isolated=False, executions=200)
    assert done.verdict == "clean", text


@pytest.mark.parametrize("test", [joined, locked, through_a_queue, by_an_event, containers])
def test_what_orders_accesses_or_is_atomic(test: Callable[[], None]) -> None:
    done, text = explore_python(test, isolated=False, executions=200, semantics="free")
    assert done.verdict == "clean", text


def test_a_package_of_choice_has_steps() -> None:
    with_steps, text = explore_python(
        through_a_bounded_queue, isolated=False, executions=100, also=("queue",)
    )
    assert with_steps.verdict == "clean", text
    without, _ = explore_python(through_a_bounded_queue, isolated=False, executions=100)
    assert with_steps.statistics["steps"] > 1.5 * without.statistics["steps"]


def through_a_bounded_queue() -> None:
    numbers: queue.Queue[int] = queue.Queue(1)
    thread = threading.Thread(target=numbers.put, args=(1,))
    thread.start()
    assert numbers.get() == 1
    thread.join()


def test_a_search_comes_to_its_end() -> None:
    done, text = explore_python(locked, isolated=False, strategy="preemptions")
    assert done.verdict == "clean", text
    assert "preemption bound 2" in done.exhausted
