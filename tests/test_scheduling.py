"""Tests are distributed in the order of ``--dist loadgroup``, and forgotten when they ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from xdist.scheduler import LoadGroupScheduling

from tests.scheduling import FewUnits

TESTS = [f"tests/test_{n % 7}.py::test_{n}{'@group' if n % 5 == 0 else ''}" for n in range(40)]


class Process:
    """A process that runs what it gets, in the order of its numbers."""

    shutting_down = False
    gateway = SimpleNamespace(id="gw")

    def __init__(self) -> None:
        self.waiting: list[int] = []

    def send_runtest_some(self, numbers: list[int]) -> None:
        self.waiting += numbers

    def shutdown(self) -> None:
        self.shutting_down = True


def order(kind: type[LoadGroupScheduling]) -> list[tuple[int, int]]:
    """The process and the number of each test, when two processes take turns."""
    config: Any = SimpleNamespace(
        getvalue=lambda name: ["popen", "popen"], option=SimpleNamespace(loadscopereorder=True)
    )
    scheduler = kind(config)
    processes: list[Any] = [Process(), Process()]
    for each in processes:
        scheduler.add_node(each)
        scheduler.add_node_collection(each, TESTS)
    scheduler.schedule()
    done: list[tuple[int, int]] = []
    while any(each.waiting for each in processes):
        for number, each in enumerate(processes):
            if each.waiting:
                done.append((number, each.waiting.pop(0)))
                scheduler.mark_test_complete(each, done[-1][1])
    assert scheduler.tests_finished and not scheduler.has_pending
    if kind is FewUnits:
        assert [len(units) for units in scheduler.assigned_work.values()] == [0, 0]
    return done


def test_the_order_is_that_of_pytest_xdist() -> None:
    assert order(FewUnits) == order(LoadGroupScheduling)
    assert sorted(number for _, number in order(FewUnits)) == list(range(40))
