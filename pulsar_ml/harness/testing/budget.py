"""A budget of time that the tests of a run of pytest share: ``--budget``.

Each test gets a slice; its reports are kept back while the budget has time left, and later slices
run the test again, with fixtures of their own, where the slice before stopped. A test that calls
the fixture ``interleave`` gets one slice, and so does each test in a worker of pytest-xdist.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from _pytest.runner import runtestprotocol

from pulsar_ml.harness.testing.properties import BASELINE, BUDGETED, REPLAYED

if TYPE_CHECKING:
    from pulsar_ml.harness.budgets.slices import Course
    from pulsar_ml.harness.search.explore import Exploration

COURSE = pytest.StashKey["Course"]()
MOST_NAMED = 10  # tests in the summary
MARKER = "interleave"
NOT_RUN = "not run: the budget ended before its first execution"


def is_explored(item: pytest.Item) -> bool:
    """True for a test that the engine runs."""
    return (
        hasattr(item, "subject") or item.get_closest_marker(MARKER) is not None or one_slice(item)
    )


def one_slice(item: pytest.Item) -> bool:
    """True for a test that calls the fixture, of which no slice can go on behind another one."""
    return MARKER in getattr(item, "fixturenames", ())


class SharedBudget:
    """The budget of one run, or of one worker of pytest-xdist."""

    def __init__(
        self,
        config: pytest.Config,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config, self.seconds, self.clock = config, seconds, clock
        self.workers = int(getattr(config, "workerinput", {}).get("workercount", 0))
        self.end = 0.0
        self.waiting = 0
        self.items: list[pytest.Item] = []
        self.slice = 0.0  # of the next call of run()
        self.pending: dict[pytest.Item, list[pytest.TestReport]] = {}
        self.spent: dict[str, str] = {}
        self.missed: list[str] = []
        self.digests: dict[str, str] = {}

    # Before the tests -------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put the tests of files first that changed since a budget last reached all of theirs."""
        from pulsar_ml.harness.budgets.changed import changed_first

        self.items = [item for item in items if is_explored(item)]
        self.waiting = len(self.items)
        self.end = self.clock() + self.seconds
        if self.workers:
            return
        files = list(dict.fromkeys(item.path for item in self.items))
        order, self.digests = changed_first(files, self.folder)
        place = {files[at]: number for number, at in enumerate(order)}
        items.sort(key=lambda item: place.get(item.path, len(place)))

    @property
    def folder(self) -> Any:
        from pulsar_ml.harness.functions.check import BUILDS

        return self.config.rootpath / BUILDS

    # The tests --------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        if item not in self.items:
            return None
        self.slice = self.first_slice()
        self.waiting -= 1
        if self.workers or one_slice(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        self.pending[item] = runtestprotocol(item, log=False, nextitem=nextitem)
        if not self.is_open(item):
            self.log(item)
        return True

    def first_slice(self) -> float:
        """The seconds of the next first slice; 0 when the budget is spent."""
        from pulsar_ml.harness.budgets.split import first_slice

        left = self.end - self.clock()
        if left <= 0:
            return 0.0
        if self.workers:
            return self.seconds * self.workers / max(1, len(self.items))
        if all(map(one_slice, self.items)):
            return left / max(1, self.waiting)
        return first_slice(self.seconds, left, max(1, self.waiting))

    def is_open(self, item: pytest.Item) -> bool:
        course = item.stash.get(COURSE, None)
        return (
            course is not None
            and course.last is not None
            and all(report.passed for report in self.pending[item])
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Give what is left of the budget to the tests that still find new classes."""
        try:
            done = yield
            if not self.workers and not session.config.option.collectonly:
                self.rounds(session)
        finally:
            for item in [*self.pending]:
                self.log(item)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        return done

    def rounds(self, session: pytest.Session) -> None:
        from pulsar_ml.harness.budgets.split import division

        while self.pending and not (session.shouldfail or session.shouldstop):
            tests = [*self.pending]
            last = [test.stash[COURSE].last for test in tests]
            shares = division(self.end - self.clock(), last)
            if not any(shares):
                return
            for item, self.slice in zip(tests, shares, strict=True):
                if self.slice and self.clock() < self.end:
                    self.again(item)

    def again(self, item: pytest.Item) -> None:
        """Run a test for another slice, with fixtures of its own."""
        if hasattr(item, "_initrequest"):
            item._initrequest()
        item.user_properties.clear()
        item._report_sections.clear()
        self.pending[item] = runtestprotocol(item, log=False, nextitem=None)
        if not self.is_open(item):
            self.log(item)

    def log(self, item: pytest.Item) -> None:
        """Report what the last slice of a test reported."""
        for report in self.pending.pop(item):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def run(self, item: pytest.Item, course: Course) -> Exploration:
        """Explore one slice of a test; it fails when the budget is spent."""
        __tracebackhide__ = True
        if self.slice <= 0:
            self.miss(item)
        course.go_on(self.slice)
        assert course.done is not None
        item.user_properties.append((BUDGETED, course.share()))
        new = course.latest.new if course.latest else 0
        state = "ended" if course.last is None else f"{new:,} new in its last slice"
        self.spent[item.nodeid] = f"{course.spent:.1f} s ({state})"
        return course.done

    def slice_of(self, item: pytest.Item) -> float:
        """The seconds of a test that calls the fixture; it fails when the budget is spent."""
        __tracebackhide__ = True
        if self.slice <= 0:
            self.miss(item)
        self.spent[item.nodeid] = f"{self.slice:.1f} s (one slice)"
        return self.slice

    def miss(self, item: pytest.Item) -> NoReturn:
        __tracebackhide__ = True
        self.missed.append(item.nodeid)
        pytest.fail(NOT_RUN, pytrace=False)

    # Behind the tests -------------------------------------------------------------------------

    def pytest_sessionfinish(self) -> None:
        """Remember the files whose tests all got a slice."""
        from pulsar_ml.harness.budgets.changed import name_of, write_digests

        left = {
            name_of(item.path)
            for item in self.items
            if item.nodeid not in self.spent and not one_slice(item)
        }
        kept = {name: digest for name, digest in self.digests.items() if name not in left}
        if kept:
            write_digests(self.folder, kept)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        parts = [f"{node.rpartition('::')[2]} {words}" for node, words in [*self.spent.items()]]
        more = [f"{len(parts) - MOST_NAMED} more tests"] * (len(parts) > MOST_NAMED)
        shown = ", ".join([*parts[:MOST_NAMED], *more])
        missed = f"; not run: {len(self.missed)}" if self.missed else ""
        terminalreporter.write_line(f"budget of {self.seconds:g} s: {shown or 'no test'}{missed}")


BUDGET = pytest.StashKey["SharedBudget | None"]()


def explored(
    item: pytest.Item,
    explore: Callable[..., Exploration],
    options: dict[str, Any],
    default: int,
) -> Exploration:
    """Explore a test within its own budget, or a slice of the run's; it goes on behind known
    failures.

    ``explore`` takes ``options`` but for the budget, and those of a slice.
    """
    from functools import partial

    from pulsar_ml.harness.budgets.slices import Course
    from pulsar_ml.harness.functions.budget import BUDGETS

    __tracebackhide__ = True
    search = {name: value for name, value in options.items() if name not in BUDGETS}
    budget = item.config.stash.get(BUDGET, None)
    if budget is None:
        return Course(partial(explore, **search), is_known_of(item)).run(options, default)
    course = item.stash.setdefault(COURSE, Course(explore, is_known_of(item)))
    course.explore = partial(explore, **search)  # with the fixtures of this slice
    return budget.run(item, course)


def is_known_of(item: pytest.Item) -> Callable[[Any], bool] | None:
    """Says of a failure whether the run's baseline knows it; None without a baseline."""
    baseline = item.config.stash.get(BASELINE, None)
    if baseline is None or item.config.stash[REPLAYED] is not None:
        return None
    from pulsar_ml.harness.testing.known import is_known_by

    return is_known_by(baseline)
