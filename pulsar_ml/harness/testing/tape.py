"""Hypothesis: program, arguments, schedule decisions and search seed on one tape.

Hypothesis then generates and shrinks them together, and a failing example lands in its database and is tried
first the next time. Needs the package ``hypothesis``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from pulsar_ml.harness.engine import CHOICES, FAULTS, Campaign
from pulsar_ml.harness.judges.oracle import Judge, run_judged
from pulsar_ml.harness.search.failure import Decision, capture
from pulsar_ml.harness.search.interleave import SHRINK_EXECUTIONS, InterleavingFailure, failure_text
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.subjects.program import CALL, Program, call_text, resolve_mix
from pulsar_ml.harness.subjects.subject import Operation, Subject

THREAD = CHOICES.index("thread")
READ = CHOICES.index("read")
INSERT = CHOICES.index("insert")
FLUSH = CHOICES.index("flush")

# The decisions that each mode offers beside those of faults.
OFFERED: Mapping[str, tuple[int, ...]] = {
    "sc": (THREAD,),
    "tso": (THREAD, FLUSH),
    "c11": (THREAD, READ, INSERT),
}


@dataclass(frozen=True, slots=True)
class Interleaving:
    """A program with a schedule: what :func:`interleavings` generates and a test runs.

    Attributes:
        subject, program: what to run.
        decisions: where the schedule departs from the default policy; one that does not fit is passed over.
        seed: of the random executions that are made beside it.
        options: mode, faults and the like, as :class:`Campaign` takes them.
    """

    subject: Subject
    program: Program
    decisions: tuple[Decision, ...]
    seed: int
    options: Mapping[str, Any]

    def run(
        self, *, executions: int = 100, strategy: str = "portfolio", judge: Judge | None = None
    ) -> None:
        """Make the drawn execution and then ``executions`` random ones; InterleavingFailure when one fails.

        ``judge`` is asked about the answers, once for each history. The exception shows the failure after the
        harness's own shrinking, one column for each thread.
        """
        __tracebackhide__ = True
        self._make("replay", 1, judge, decisions=self.decisions)
        if executions:
            self._make(strategy, executions, judge, seed=self.seed)

    def _make(self, strategy: str, executions: int, judge: Judge | None, **chosen: Any) -> None:
        __tracebackhide__ = True
        options = {**self.options, **chosen}
        campaign = Campaign(
            self.subject, self.program, strategy=strategy, judged=judge is not None, **options
        )
        made, refused = run_judged(campaign, 0, executions, judge)
        if campaign.failed() or refused:
            failure = capture(campaign, made - 1, options, refused)
            failure = shrink(failure, self.subject, budget=SHRINK_EXECUTIONS, judge=judge)
            raise InterleavingFailure(failure, failure_text(failure, self.subject, judge=judge))

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
    """The calls of one thread in words."""
    numbers = range(len(program.threads[thread]))
    return " ".join(call_text(program, thread, number, subject) for number in numbers) or "-"


def calls(
    subject: Subject, operations: Sequence[Operation]
) -> SearchStrategy[tuple[int, tuple[int, ...]]]:
    """One call: a code and its arguments within their ranges."""

    def call(operation: Operation) -> SearchStrategy[tuple[int, tuple[int, ...]]]:
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
    """Programs of ``threads`` threads with up to ``operations`` calls each.

    ``mix`` names the operations that occur (weights above 0; all count the same), by default those of the
    subject's own weights; ``settings`` narrows their ranges. Exclusive roles are kept.
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


def schedules(
    *,
    threads: int,
    mode: str = "c11",
    faults: Sequence[str] = (),
    points: int = 64,
    decisions: int = 5,
) -> SearchStrategy[tuple[Decision, ...]]:
    """Up to ``decisions`` departures from the default policy within each thread's first ``points`` points."""
    kinds = OFFERED[mode] + tuple(CHOICES.index(fault) for fault in FAULTS if fault in faults)

    def value(kind: int) -> SearchStrategy[int]:
        return st.integers(1, threads) if kind == THREAD else st.integers(1, 3)

    def decision(kind: int) -> SearchStrategy[Decision]:
        return st.tuples(
            st.integers(0, points), st.integers(0, threads - 1), st.just(kind), value(kind)
        )

    drawn = st.lists(
        st.one_of([decision(kind) for kind in kinds]),
        max_size=decisions,
        unique_by=lambda each: each[:3],
    )
    return drawn.map(lambda found: tuple(sorted(found)))


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
    """Draw a program, a schedule for it and a seed; the test calls ``run`` on the result."""
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
