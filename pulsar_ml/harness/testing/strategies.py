"""Strategies of Hypothesis for programs, schedules, both together, and Python functions.

Hypothesis draws program, arguments, decisions and seed from one tape, so that it shrinks them
together, keeps a failing example in its database, and tries it first the next time. Needs the
package ``hypothesis``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.judges.oracle import Judge, run_judged
from pulsar_ml.harness.search.failure import Decision, capture
from pulsar_ml.harness.search.interleave import SHRINK_EXECUTIONS, InterleavingFailure
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.subjects.program import CALL, Program, call_text, resolve_mix
from pulsar_ml.harness.subjects.subject import Subject, SubjectOperation
from pulsar_ml.harness.testing.python_strategies import PythonInterleaving, python_interleavings
from pulsar_ml.harness.testing.schedules import schedules

__all__ = [
    "Interleaving",
    "PythonInterleaving",
    "interleavings",
    "programs",
    "python_interleavings",
    "schedules",
]


@dataclass(frozen=True, slots=True)
class Interleaving:
    """A program with a schedule, drawn by :func:`interleavings`.

    Attributes:
        subject, program: the subject and the drawn program.
        decisions: the departures from the default policy; those that do not fit are skipped.
        seed: the seed of the random executions.
        options: mode, faults and reuse, as :func:`explore` takes them.
    """

    subject: Subject
    program: Program
    decisions: tuple[Decision, ...]
    seed: int
    options: Mapping[str, Any]

    def run(
        self, *, executions: int = 100, strategy: str = "portfolio", judge: Judge | None = None
    ) -> None:
        """Run the drawn execution, then ``executions`` random ones, of the program.

        ``judge`` is called once for each history. Raises InterleavingFailure when an execution
        fails; it shows the failure, shrunk, with a column for each thread.
        """
        __tracebackhide__ = True
        self._explore("replay", 1, judge, decisions=self.decisions)
        if executions:
            self._explore(strategy, executions, judge, seed=self.seed)

    def _explore(self, strategy: str, executions: int, judge: Judge | None, **more: Any) -> None:
        __tracebackhide__ = True
        options = {**self.options, **more}
        judge = judge or self.subject.judge
        explorer = Explorer(
            self.subject, self.program, strategy=strategy, judged=judge is not None, **options
        )
        count, refused = run_judged(explorer, 0, executions, judge)
        if explorer.failed() or refused:
            failure = capture(explorer, count - 1, options, refused)
            failure = shrink(failure, self.subject, budget=SHRINK_EXECUTIONS, judge=judge)
            raise InterleavingFailure(failure, failure.describe(self.subject, judge=judge))

    def __repr__(self) -> str:
        numbers = range(len(self.program.threads))
        lanes = " || ".join(calls_text(self.program, number, self.subject) for number in numbers)
        settings = f", settings={dict(self.program.settings)}" if self.program.settings else ""
        return (
            f"Interleaving({lanes!r}{settings}, decisions={list(self.decisions)}, seed={self.seed})"
        )

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # Hypothesis shows the fields of a dataclass otherwise, arrays and all.
        printer.text(repr(self))


def calls_text(program: Program, thread: int, subject: Subject) -> str:
    """Return the calls of one thread as text."""
    numbers = range(len(program.threads[thread]))
    return " ".join(call_text(program, thread, number, subject) for number in numbers) or "-"


def calls(
    subject: Subject, operations: Sequence[SubjectOperation]
) -> SearchStrategy[tuple[int, tuple[int, ...]]]:
    """Draw one call: a code, and its arguments within their ranges."""

    def call(operation: SubjectOperation) -> SearchStrategy[tuple[int, tuple[int, ...]]]:
        arguments = [st.integers(argument.low, argument.high) for argument in operation.arguments]
        return st.tuples(st.just(operation.code), st.tuples(*arguments))

    return st.one_of([call(operation) for operation in operations])


@st.composite
def programs(
    draw: DrawFn,
    subject: Subject,
    *,
    threads: int = 2,
    operations: int = 4,
    mix: Mapping[str, int] | None = None,
    settings: Mapping[str, tuple[int, int]] | None = None,
) -> Program:
    """Draw programs of ``threads`` threads with up to ``operations`` calls each.

    The operations are those with a weight above 0 in ``mix``, by default the subject's own; their
    weights do not matter. ``settings`` narrows the ranges of creation settings. All operations of
    an exclusive role go to one thread. Raises UsageError for an operation that the subject lacks.
    """
    weights = resolve_mix(subject, mix)
    used = [operation for operation in subject.operations if weights[operation.code]]
    owners = {
        role: draw(st.integers(0, threads - 1))
        for role in sorted({operation.role for operation in used if operation.role})
    }
    lanes = []
    for thread in range(threads):
        own = [op for op in used if op.role == 0 or owners[op.role] == thread]
        drawn = draw(st.lists(calls(subject, own), max_size=operations)) if own else []
        lane = np.zeros(len(drawn), CALL)
        for number, (code, arguments) in enumerate(drawn):
            lane[number]["code"] = code
            lane[number]["arguments"][: len(arguments)] = arguments
        lane.flags.writeable = False
        lanes.append(lane)
    narrowed = settings or {}
    return Program(
        subject=subject.name,
        seed=0,
        settings={
            each.name: draw(st.integers(*narrowed.get(each.name, (each.low, each.high))))
            for each in subject.settings
        },
        operations=tuple(operation.name for operation in subject.operations),
        threads=tuple(lanes),
    )


@st.composite
def interleavings(
    draw: DrawFn,
    subject: Subject,
    *,
    threads: int = 2,
    operations: int = 4,
    mix: Mapping[str, int] | None = None,
    settings: Mapping[str, tuple[int, int]] | None = None,
    mode: str = "c11",
    faults: Sequence[str] = (),
    reuse: str = "mixed",
    points: int = 64,
    decisions: int = 5,
) -> Interleaving:
    """Draw a program, a schedule for it, and a seed. The test calls ``run`` on them::

        @given(interleavings(SUBJECT, threads=3))
        def test_no_interleaving_breaks_it(interleaving):
            interleaving.run(executions=200)

    ``subject`` belongs to a checked build. The options are those of :func:`programs`,
    :func:`schedules` and :func:`explore`.
    """
    program = draw(
        programs(subject, threads=threads, operations=operations, mix=mix, settings=settings)
    )
    drawn = draw(
        schedules(threads=threads, mode=mode, faults=faults, points=points, decisions=decisions)
    )
    seed = draw(st.integers(0, 2**32 - 1))
    return Interleaving(
        subject, program, drawn, seed, {"mode": mode, "faults": tuple(faults), "reuse": reuse}
    )
