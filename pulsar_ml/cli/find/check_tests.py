"""The tests of ``pulsar-ml check`` under way: one after the other, or in slices of a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pulsar_ml.errors import LimitsError, NondeterminismError
from pulsar_ml.harness.budgets.rounds import spend
from pulsar_ml.harness.budgets.slices import Course
from pulsar_ml.harness.budgets.split import Slice
from pulsar_ml.harness.functions.budget import NO_LIMIT, with_budget
from pulsar_ml.harness.functions.check import (
    explore_test,
    finish_test,
    most_executions,
)
from pulsar_ml.terminal.command_line import short_path
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.progress import ProgressDisplay

if TYPE_CHECKING:
    from pulsar_ml.harness.functions.check import Checked, PythonTest
    from pulsar_ml.harness.functions.source import TestFunction, TestSource
    from pulsar_ml.harness.search.child import Limits
    from pulsar_ml.harness.subjects.subject import Subject

MOST_NAMED = 10  # tests in the last line


@dataclass(slots=True)
class Counted:
    """The executions of the test under way, which the display of progress shows."""

    progress: ProgressDisplay
    before: int = 0  # of earlier slices
    executions: int = 0

    def __call__(self, executions: int) -> None:
        self.executions = self.before + executions
        self.progress.update(self.executions)


@dataclass(slots=True)
class TestUnderWay:
    """One test of the command line.

    Attributes:
        wanted: its options.
        on_result: gets its result, once.
        error: why it has no verdict, or "".
    """

    __test__ = False  # pytest does not collect this class

    source: TestSource
    test: TestFunction
    subject: Subject | PythonTest
    wanted: Mapping[str, Any]
    limits: Limits
    progress: ProgressDisplay
    on_result: Callable[[TestUnderWay, Checked], object]
    course: Course
    error: str = ""
    settled: bool = False
    count: Counted = field(init=False)

    def __post_init__(self) -> None:
        self.count = Counted(self.progress)
        explore = partial(
            explore_test, self.test, self.subject, limits=self.limits, on_batch=self.count
        )
        self.course.explore = partial(explore, **self.search)

    @property
    def search(self) -> dict[str, Any]:
        """The options without the budget, which is that of each slice."""
        return {
            name: value
            for name, value in self.wanted.items()
            if name not in ("executions", "seconds")
        }

    @property
    def name(self) -> str:
        return f"{short_path(self.source.path)}::{self.test.name}"

    @property
    def last(self) -> Slice | None:
        return None if self.error else self.course.last

    def run(self) -> None:
        """Explore the test within its own budget."""
        default = most_executions(self.subject)
        most = with_budget(self.wanted, default)["executions"]
        self.guarded(lambda: self.course.run(self.wanted, default), most)
        self.settle()

    def go_on(self, seconds: float) -> None:
        """Explore one slice of a budget."""
        self.guarded(lambda: self.course.go_on(seconds))
        if self.course.ended:
            self.settle()

    def guarded(self, explore: Callable[[], object], most: int = NO_LIMIT) -> None:
        title = f"{self.source.path.name}::{self.test.name}"
        self.count.before = self.course.done.executions if self.course.done else 0
        self.progress.begin(title, most if most < NO_LIMIT else None)
        try:
            explore()
        except KeyboardInterrupt:
            self.progress.end()
            many = f"{self.count.executions:,} executions without a failure"
            echo(f"{self.name}  interrupted: {many}", err=True)
            raise
        except (LimitsError, NondeterminismError) as error:
            self.error = str(error)
        finally:
            self.progress.end()
        if self.error:
            echo(f"{self.name}  no verdict: {self.error}", err=True)

    def settle(self) -> None:
        """Shrink and describe the failure, if there is one, and report the result."""
        done = self.course.done
        if self.settled or self.error or done is None:
            return
        self.settled = True
        result = finish_test(
            self.source.path, self.test, self.subject, done, limits=self.limits, **self.search
        )
        self.on_result(self, result)
        if result.interrupted:
            raise KeyboardInterrupt


def run_all(tests: Iterator[TestUnderWay], begun: list[TestUnderWay]) -> None:
    """Run one test after the other, each within its own budget; ``begun`` gets each."""
    for test in tests:
        begun.append(test)
        test.run()


def run_in_slices(
    tests: Iterator[TestUnderWay], begun: list[TestUnderWay], count: int, budget: float
) -> None:
    """Run tests in slices of one budget, of ``count`` tests as far as is known."""

    def noted() -> Iterator[TestUnderWay]:
        for test in tests:
            begun.append(test)
            yield test

    try:
        spend(noted(), count, budget)
    finally:  # an interrupt keeps what the slices found
        begun[:] = [test for test in begun if test.course.done or test.error]
        for test in begun:
            test.settle()


def budget_words(budget: float, begun: list[TestUnderWay], missed: list[str]) -> str:
    """Say what each test got of a budget, what its last slice found, and what got nothing."""
    parts = []
    for one in sorted(begun, key=lambda test: -test.course.spent)[:MOST_NAMED]:
        new = one.course.latest.new if one.course.latest else 0
        state = "ended" if one.last is None else f"{new:,} new in its last slice"
        parts.append(f"{one.test.name} {one.course.spent:.1f} s ({state})")
    more = len(begun) - MOST_NAMED
    parts += [f"{more} more tests"] * (more > 0)
    words = f"budget of {budget:g} s: {', '.join(parts) or 'no test'}"
    if missed:
        rest = f" and {len(missed) - MOST_NAMED} more" * (len(missed) > MOST_NAMED)
        words += f"; not run: {', '.join(missed[:MOST_NAMED])}{rest}"
    return words
