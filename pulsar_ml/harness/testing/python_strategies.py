"""Strategies of Hypothesis for functions of Python that start threads.

Arguments, schedule and seed come from one tape, so that Hypothesis shrinks them together, keeps a
failing example in its database, and tries it first the next time. Needs the package
``hypothesis``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.pythreads.check import (
    describe_failure,
    engine_options,
    program_of,
    python_subject,
)
from pulsar_ml.harness.pythreads.session import session
from pulsar_ml.harness.search.failure import Decision, capture
from pulsar_ml.harness.search.interleave import InterleavingFailure
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.testing.schedules import schedules

SHRINK_EXECUTIONS = 500  # of each failing example: Hypothesis makes many


@dataclass(frozen=True, slots=True)
class PythonInterleaving:
    """A call of a Python function with a schedule, drawn by :func:`python_interleavings`.

    Attributes:
        function, arguments: the test and its arguments.
        decisions: the departures from the default policy; those that do not fit are skipped.
        seed: the seed of the random executions.
        semantics, also, options: as :func:`pulsar_ml.harness.check` takes them.
    """

    function: Callable[..., object]
    arguments: Mapping[str, Any]
    decisions: tuple[Decision, ...]
    seed: int
    semantics: str
    also: tuple[str, ...]
    options: Mapping[str, Any]

    def run(self, *, executions: int = 100, strategy: str = "portfolio") -> None:
        """Run the drawn execution, then ``executions`` random ones, with the drawn arguments.

        Raises InterleavingFailure when an execution fails; it shows the failure, its schedule
        shrunk, with a column for each thread.
        """
        __tracebackhide__ = True
        self._explore("replay", 1, decisions=self.decisions)
        if executions:
            self._explore(strategy, executions, seed=self.seed)

    def _explore(self, strategy: str, executions: int, **more: Any) -> None:
        __tracebackhide__ = True

        def test() -> None:
            self.function(**self.arguments)

        test.__wrapped__ = self.function  # type: ignore[attr-defined]
        subject = python_subject(test, getattr(self.function, "__name__", "test"))
        options = {**engine_options(self.semantics, dict(self.options)), **more}
        del options["executions"]
        with session(semantics=self.semantics, also=self.also) as texts:
            program = program_of(subject, self.semantics)
            explorer = Explorer(subject, program, strategy=strategy, **options)
            count = explorer.run(0, executions)
            if explorer.failed():
                found = capture(explorer, count - 1, options)
                failure = shrink(found, subject, budget=SHRINK_EXECUTIONS)
                raise InterleavingFailure(failure, describe_failure(failure, subject, texts))

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", "test")
        arguments = ", ".join(f"{key}={value!r}" for key, value in self.arguments.items())
        return f"{name}({arguments}), decisions={list(self.decisions)}, seed={self.seed}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


@st.composite
def python_interleavings(
    draw: DrawFn,
    /,
    function: Callable[..., object],
    arguments: Mapping[str, SearchStrategy[Any]] | None = None,
    *,
    threads: int = 3,
    points: int = 64,
    decisions: int = 5,
    semantics: str = "gil",
    also: Sequence[str] = (),
    **options: Any,
) -> PythonInterleaving:
    """Draw arguments of a Python function, a schedule of its threads, and a seed::

        @given(python_interleavings(transfer, {"amount": st.integers(1, 5)}))
        def test_no_interleaving_loses_money(interleaving):
            interleaving.run(executions=200)

    ``arguments`` has a strategy for each argument. ``threads`` counts the function's own thread;
    the other options are those of :func:`schedules` and of :func:`pulsar_ml.harness.check`.
    """
    chosen = {name: draw(strategy) for name, strategy in (arguments or {}).items()}
    drawn = draw(
        schedules(
            threads=threads,
            mode="sc",
            faults=options.get("faults", ()),
            points=points,
            decisions=decisions,
        )
    )
    seed = draw(st.integers(0, 2**32 - 1))
    return PythonInterleaving(function, chosen, drawn, seed, semantics, tuple(also), options)
