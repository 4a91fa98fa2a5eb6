"""Runs a rule-based state machine of Hypothesis by several threads under the engine.

The machine is written for one thread: each rule calls the structure once and asserts the answer.
:meth:`ConcurrentMachine.run_concurrently` first runs it that way. Then it distributes the same
calls to threads, runs many executions, and tries for each to find an order of the calls in which
the machine's assertions hold. Calls that did not overlap keep their order. This is linearizability,
with the machine as the specification.
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
from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import WRONG_ANSWERS
from pulsar_ml.harness.search.interleave import SHRINK_EXECUTIONS, InterleavingFailure
from pulsar_ml.harness.search.shrink import shrink, shrink_schedule
from pulsar_ml.harness.subjects.program import CALL, Program
from pulsar_ml.harness.subjects.subject import Instance, Result, Subject

MOST_CALLS = 12  # the number of orders grows with the factorial


@dataclass(frozen=True, slots=True)
class RuleStep:
    """One step of the machine: a rule with its arguments, and the call that the rule made."""

    rule: str
    rule_arguments: Mapping[str, Any]
    operation: str
    arguments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TimedStep:
    """A step in one execution: its interval [invoked, returned], and its result.

    ``number`` counts the calls of its thread.
    """

    step: RuleStep
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
    """Base class of a machine whose rules call a subject; :meth:`run_concurrently` tests it.

    Each rule calls ``self.call(operation, *arguments)`` once, in the rule itself and not in a
    helper, because the rule's arguments are read from its frame. Preconditions steer the generation
    only; they are not evaluated when orders are tried, so no assertion should rely on them.

    Attributes:
        subject: a subject of a checked build.
        subject_settings: creation settings of its instances; by default the low ends of the ranges.
    """

    subject: ClassVar[Subject]
    subject_settings: ClassVar[Mapping[str, int]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[RuleStep] = []
        self._instance: Instance | None = None
        self._answer: Result | None = None

    def call(self, operation: str, *arguments: int) -> Result:
        """Call an operation of the subject, and return its result in this execution."""
        if self._answer is not None:
            return self._answer
        frame = sys._getframe(1)
        names = frame.f_code.co_varnames[
            1 : frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount
        ]
        values = {name: frame.f_locals[name] for name in names}
        self.steps.append(RuleStep(frame.f_code.co_name, values, operation, arguments))
        if self._instance is None:
            self._instance = self.subject.create(threads=1, settings=dict(self.subject_settings))
        return self._instance.call(operation, *arguments)

    @classmethod
    def run_concurrently(
        cls,
        *,
        threads: int = 2,
        mode: str = "c11",
        executions: int = 200,
        operations: int = 4,
        settings: hypothesis_settings | None = None,
        **options: Any,
    ) -> None:
        """Run the machine as a test, with its calls distributed to ``threads`` threads.

        Each example has up to ``threads * operations`` calls, at most 12, and is run in
        ``executions`` executions. ``settings`` are those of Hypothesis; ``mode`` and the other
        options are those of :func:`explore`. Raises InterleavingFailure for the smallest failing
        example: a data race, a crash and the like, or results that no order of the calls explains.
        Raises UsageError for more calls, and for an unknown option.
        """
        if threads * operations > MOST_CALLS:
            raise UsageError(
                f"{threads} threads with {operations} operations are {threads * operations} calls; "
                f"every order of the calls is tried, so use at most {MOST_CALLS}"
            )
        with_length = hypothesis_settings(
            settings or hypothesis_settings(), stateful_step_count=threads * operations
        )
        explore_options = {"mode": mode, "reuse": "mixed", **options}

        class Concurrent(cls):  # type: ignore[valid-type, misc]
            def teardown(self) -> None:
                super().teardown()
                self._instance = None
                if len(self.steps) > 1:
                    ConcurrentRun(cls, self.steps, threads).search(executions, **explore_options)

        Concurrent.__name__ = Concurrent.__qualname__ = cls.__name__
        run_state_machine_as_test(Concurrent, settings=with_length)


class ConcurrentRun:
    """The steps of one example, distributed to threads, with the machine as their specification."""

    def __init__(
        self, machine: type[ConcurrentMachine], steps: Sequence[RuleStep], threads: int
    ) -> None:
        self.machine = machine
        self.lanes = distributed(machine.subject, steps, threads)
        self.program = program_of(machine.subject, self.lanes, machine.subject_settings)

    def search(self, executions: int, **options: Any) -> None:
        """Raise InterleavingFailure when an execution fails, or no order explains it."""
        subject = self.machine.subject
        done = explore(subject, self.program, executions=executions, judge=self.judge, **options)
        if done.failure is None:
            return
        if done.failure.kind != WRONG_ANSWERS:
            failure = shrink(done.failure, subject, budget=SHRINK_EXECUTIONS)
            raise InterleavingFailure(failure, failure.describe(subject))
        failure = shrink_schedule(done.failure, subject, budget=SHRINK_EXECUTIONS, judge=self.judge)
        raise InterleavingFailure(failure, failure.describe(subject, judge=self.judge))

    def judge(self, explorer: Explorer) -> str:
        history = self.history(explorer)
        if has_order(history, self.fits):
            return ""
        calls = sorted(history, key=lambda call: (call.invoked, call.thread))
        return "no order of the calls explains their answers: " + "; ".join(map(str, calls))

    def history(self, explorer: Explorer) -> list[TimedStep]:
        found = []
        for thread, lane in enumerate(self.lanes):
            went = explorer.calls(thread)
            for number, (step, (invoked, returned, status, words)) in enumerate(
                zip(lane, went, strict=True)
            ):
                result = Result(status, (words[0], words[1], words[2], words[3]))
                found.append(TimedStep(step, thread, number, invoked, returned, result))
        return found

    def fits(self, order: Sequence[TimedStep]) -> bool:
        """Return True if a new machine's assertions hold for these results in this order."""
        machine = self.machine()
        for call in order:
            machine._answer = call.result
            try:
                getattr(machine, call.step.rule)(**call.step.rule_arguments)
            except AssertionError:
                return False
        return True


def distributed(subject: Subject, steps: Sequence[RuleStep], threads: int) -> list[list[RuleStep]]:
    """Give the steps to the threads in turn; those of an exclusive role all go to one."""
    lanes: list[list[RuleStep]] = [[] for _ in range(threads)]
    for number, step in enumerate(steps):
        role = subject.operation(step.operation).role
        lanes[role % threads if role else number % threads].append(step)
    return lanes


def program_of(
    subject: Subject, lanes: Sequence[Sequence[RuleStep]], settings: Mapping[str, int]
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


def has_order(history: Sequence[TimedStep], fits: Callable[[Sequence[TimedStep]], bool]) -> bool:
    """Return True if an order of the calls ``fits``, prefix by prefix.

    Calls that do not overlap keep their order.
    """

    def extend(order: list[TimedStep], left: list[TimedStep]) -> bool:
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
