"""A rule-based state machine of Hypothesis, run by several threads under the engine.

The machine is written as for one thread: each rule calls the structure once and asserts what the answer
should be. :func:`run_concurrently` first runs it so, then deals the same calls to threads, makes many
executions of them, and asks of each: is there an order of the calls, with those that did not overlap in
theirs, in which the machine's own assertions hold? That is linearizability with the machine as the
specification.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from hypothesis import settings as hypothesis_settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.engine import Campaign
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import WRONG_ANSWERS
from pulsar_ml.harness.search.interleave import SHRINK_EXECUTIONS, InterleavingFailure, failure_text
from pulsar_ml.harness.search.shrink import shrink, shrink_schedule
from pulsar_ml.harness.subjects.program import CALL, Program
from pulsar_ml.harness.subjects.subject import Instance, Result, Subject

MOST_CALLS = 12  # orders are tried one by one


@dataclass(frozen=True, slots=True)
class Step:
    """One call: the rule that made it with its arguments, and what it called."""

    rule: str
    given: Mapping[str, Any]
    operation: str
    arguments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A step as it went in one execution: in [invoked, returned] it answered ``result``.

    ``number`` counts the calls of its thread.
    """

    step: Step
    thread: int
    number: int
    invoked: int
    returned: int
    result: Result

    def __str__(self) -> str:
        arguments = ", ".join(map(str, self.step.arguments))
        words = ", ".join(map(str, self.result.words))
        return (
            f"thread {self.thread}: {self.step.operation}({arguments}) -> status {self.result.status}, "
            f"words {words}"
        )


class ConcurrentMachine(RuleBasedStateMachine):
    """The base of a machine whose rules call ``subject`` through :meth:`call`.

    ``subject`` belongs to a checked build; ``subject_settings`` are those of its instances, the low end of
    their range by default. Make each rule's one call in the rule itself, not in a helper: its arguments are
    read there. Preconditions steer what is generated; they are not asked when orders are tried, so no
    assertion should rely on them.
    """

    subject: ClassVar[Subject]
    subject_settings: ClassVar[Mapping[str, int]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self._instance: Instance | None = None
        self._answer: Result | None = None

    def call(self, operation: str, *arguments: int) -> Result:
        """Call an operation of the structure; its answer is the one of this execution."""
        if self._answer is not None:
            return self._answer
        frame = sys._getframe(1)
        names = frame.f_code.co_varnames[
            1 : frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount
        ]
        given = {name: frame.f_locals[name] for name in names}
        self.steps.append(Step(frame.f_code.co_name, given, operation, arguments))
        if self._instance is None:
            self._instance = self.subject.create(threads=1, settings=dict(self.subject_settings))
        return self._instance.call(operation, *arguments)


def run_concurrently(
    machine: type[ConcurrentMachine],
    *,
    threads: int = 2,
    mode: str = "c11",
    executions: int = 200,
    operations: int = 4,
    settings: hypothesis_settings | None = None,
    **options: Any,
) -> None:
    """Run ``machine`` as a test, with its calls dealt to ``threads`` threads.

    Each example has up to ``threads * operations`` calls and ``executions`` executions. ``settings`` are
    those of Hypothesis; the rest are options of :class:`Campaign`. Raises InterleavingFailure for the
    smallest example that fails: a race, a crash and the like, or an execution that no order explains.
    """
    if threads * operations > MOST_CALLS:
        raise UsageError(
            f"{threads} threads with {operations} operations are {threads * operations} calls; at most "
            f"{MOST_CALLS} can be put into every order"
        )
    chosen = hypothesis_settings(
        settings or hypothesis_settings(), stateful_step_count=threads * operations
    )
    explored = {"mode": mode, "reuse": "mixed", **options}

    class Concurrent(machine):  # type: ignore[valid-type, misc]
        def teardown(self) -> None:
            super().teardown()
            self._instance = None
            if len(self.steps) > 1:
                Dealt(machine, self.steps, threads).search(executions, **explored)

    Concurrent.__name__ = Concurrent.__qualname__ = machine.__name__
    run_state_machine_as_test(Concurrent, settings=chosen)


class Dealt:
    """Some steps, dealt to threads, against the machine."""

    def __init__(
        self, machine: type[ConcurrentMachine], steps: Sequence[Step], threads: int
    ) -> None:
        self.machine = machine
        self.lanes = dealt(machine.subject, steps, threads)
        self.program = program_of(machine.subject, self.lanes, machine.subject_settings)

    def search(self, executions: int, **options: Any) -> None:
        """InterleavingFailure when one of ``executions`` fails or cannot be explained."""
        subject = self.machine.subject
        done = explore(subject, self.program, executions=executions, judge=self.judge, **options)
        if done.failure is None:
            return
        if done.failure.kind != WRONG_ANSWERS:
            failure = shrink(done.failure, subject, budget=SHRINK_EXECUTIONS)
            raise InterleavingFailure(failure, failure_text(failure, subject))
        failure = shrink_schedule(done.failure, subject, budget=SHRINK_EXECUTIONS, judge=self.judge)
        raise InterleavingFailure(failure, failure_text(failure, subject, judge=self.judge))

    def judge(self, campaign: Campaign) -> str:
        history = self.history(campaign)
        if has_order(history, self.fits):
            return ""
        told = sorted(history, key=lambda call: (call.invoked, call.thread))
        return "no order of the calls explains their answers: " + "; ".join(map(str, told))

    def history(self, campaign: Campaign) -> list[Call]:
        found = []
        for thread, lane in enumerate(self.lanes):
            went = campaign.calls(thread)
            for number, (step, (invoked, returned, status, words)) in enumerate(
                zip(lane, went, strict=True)
            ):
                result = Result(status, (words[0], words[1], words[2], words[3]))
                found.append(Call(step, thread, number, invoked, returned, result))
        return found

    def fits(self, order: Sequence[Call]) -> bool:
        """Whether a fresh machine's assertions hold when the calls answer so, in this order."""
        machine = self.machine()
        for call in order:
            machine._answer = call.result
            try:
                getattr(machine, call.step.rule)(**call.step.given)
            except AssertionError:
                return False
        return True


def dealt(subject: Subject, steps: Sequence[Step], threads: int) -> list[list[Step]]:
    """The steps by thread, in turn; those of an exclusive role all go to one."""
    lanes: list[list[Step]] = [[] for _ in range(threads)]
    for number, step in enumerate(steps):
        role = subject.operation(step.operation).role
        lanes[role % threads if role else number % threads].append(step)
    return lanes


def program_of(
    subject: Subject, lanes: Sequence[Sequence[Step]], settings: Mapping[str, int]
) -> Program:
    threads = []
    for lane in lanes:
        calls = np.zeros(len(lane), CALL)
        for number, step in enumerate(lane):
            calls[number]["code"] = subject.operation(step.operation).code
            calls[number]["arguments"][: len(step.arguments)] = step.arguments
        calls.flags.writeable = False
        threads.append(calls)
    return Program(
        subject=subject.name,
        seed=0,
        settings={each.name: settings.get(each.name, each.low) for each in subject.settings},
        operations=tuple(operation.name for operation in subject.operations),
        threads=tuple(threads),
    )


def has_order(history: Sequence[Call], fits: Callable[[Sequence[Call]], bool]) -> bool:
    """Whether some order that keeps the order of calls which do not overlap ``fits``, prefix by prefix."""

    def extend(order: list[Call], left: list[Call]) -> bool:
        if not left:
            return True
        ends = min(call.returned for call in left)
        for call in left:
            if call.invoked > ends or any(
                other.thread == call.thread and other.number < call.number for other in left
            ):
                continue
            if fits([*order, call]) and extend(
                [*order, call], [each for each in left if each is not call]
            ):
                return True
        return False

    return extend([], list(history))
