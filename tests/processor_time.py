"""A plugin that prints the tests and their processor time by folder: ``-p tests.processor_time``.

``make test`` uses it. Processes that a test waited for are counted; a process that was killed with
its parent, or outlives its test, is not.
"""

from __future__ import annotations

import resource
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import PurePosixPath

import pytest

NAME = "processor_time"
STARTED = pytest.StashKey[float]()


def processor_seconds() -> float:
    """The processor time of this process and of all children that it waited for."""
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    item.stash[STARTED] = processor_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "teardown":  # pytest-xdist carries it to the process that prints
        report.user_properties.append((NAME, processor_seconds() - item.stash[STARTED]))
    return report


def by_folder(costs: Iterable[tuple[str, float]]) -> list[tuple[str, int, float]]:
    """The tests and the seconds of each folder below ``tests``, the most expensive one first."""
    sums: dict[str, list[float]] = defaultdict(list)
    for node, seconds in costs:
        path = PurePosixPath(node.partition("::")[0])
        sums["/".join(path.parts[:2])].append(seconds)
    rows = [(folder, len(each), sum(each)) for folder, each in sums.items()]
    return sorted(rows, key=lambda row: -row[2])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    costs = [
        (report.nodeid, value)
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "teardown"
        for name, value in report.user_properties
        if name == NAME and isinstance(value, float)
    ]
    terminalreporter.section("processor time")
    for folder, tests, seconds in (
        *by_folder(costs),
        ("all", len(costs), sum(c for _, c in costs)),
    ):
        terminalreporter.line(f"{seconds:8.1f} s {tests:6,} tests  {folder}")
