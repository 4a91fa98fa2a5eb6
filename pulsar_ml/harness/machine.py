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
from pulsar_ml.harness.failure import Decision, Failure, capture
from pulsar_ml.harness.interleave import SHRINK_EXECUTIONS, InterleavingFailure, failure_text
from pulsar_ml.harness.program import CALL, Program
from pulsar_ml.harness.report import lane_table
from pulsar_ml.harness.shrink import delta_debug, shrink
from pulsar_ml.harness.subject import Instance, Result, Subject

NOT_LINEARIZABLE = "not linearizable"
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
        words = " ".join(map(str, self.result.words))
        return f"thread {self.thread}: {self.step.operation}({arguments}) -> {self.result.status} [{words}]"


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
        names = frame.f_code.co_varnames[1 : frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount]
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
    chosen = hypothesis_settings(settings or hypothesis_settings(), stateful_step_count=threads * operations)
    explored = {"mode": mode, "reuse": "mixed", **options}

    class Concurrent(machine):  # type: ignore[valid-type, misc]
        def teardown(self) -> None:
            super().teardown()
            self._instance = None
            if len(self.steps) > 1:
                Judge(machine, self.steps, threads, explored).search(executions)

    Concurrent.__name__ = Concurrent.__qualname__ = machine.__name__
    run_state_machine_as_test(Concurrent, settings=chosen)


class Judge:
    """The executions of some steps, dealt to threads, against the machine."""

    def __init__(
        self,
        machine: type[ConcurrentMachine],
        steps: Sequence[Step],
        threads: int,
        options: Mapping[str, Any],
    ) -> None:
        self.machine = machine
        self.subject = machine.subject
        self.lanes = dealt(self.subject, steps, threads)
        self.program = program_of(self.subject, self.lanes, machine.subject_settings)
        self.options = options
        self.legal: set[tuple[object, ...]] = set()

    def search(self, executions: int) -> None:
        """InterleavingFailure when one of ``executions`` fails or cannot be explained."""
        campaign = Campaign(self.subject, self.program, strategy="portfolio", **self.options)
        for number in range(executions):
            campaign.run(number, 1)
            if campaign.failed():
                failure = capture(campaign, number, self.options)
                failure = shrink(failure, self.subject, budget=SHRINK_EXECUTIONS)
                raise InterleavingFailure(failure, failure_text(failure, self.subject))
            if not self.explained(campaign):
                campaign.again(number)
                raise self.failure(campaign.decisions_made(), campaign.used()[2])

    def explained(self, campaign: Campaign) -> bool:
        history = self.history(campaign)
        key = canonical(history)
        if key not in self.legal and not has_order(history, self.fits):
            return False
        self.legal.add(key)
        return True

    def history(self, campaign: Campaign) -> list[Call]:
        found = []
        for thread, lane in enumerate(self.lanes):
            went = campaign.calls(thread)
            for number, (step, (invoked, returned, status, words)) in enumerate(zip(lane, went, strict=True)):
                found.append(
                    Call(
                        step,
                        thread,
                        number,
                        invoked,
                        returned,
                        Result(status, (words[0], words[1], words[2], words[3])),
                    )
                )
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

    def failure(self, decisions: Sequence[Decision], reuse: str) -> InterleavingFailure:
        """The execution with the fewest of its decisions that still cannot be explained."""
        options = {**self.options, "reuse": reuse}

        def unexplained(some: Sequence[Decision]) -> Campaign | None:
            campaign = Campaign(self.subject, self.program, strategy="replay", decisions=some, **options)
            campaign.again(0)
            return None if campaign.failed() or self.explained(campaign) else campaign

        fewest = delta_debug(list(decisions), lambda some: unexplained(some) is not None)
        campaign = unexplained(fewest)
        assert campaign is not None, "delta debugging keeps what fails"
        history = sorted(self.history(campaign), key=lambda call: call.invoked)
        message = "no order of the calls explains their answers: " + "; ".join(map(str, history))
        failure = Failure(
            subject=self.subject.name,
            build_id=str(self.subject.build_id),
            program=self.program.to_json(),
            mode=campaign.mode,
            reuse=campaign.used()[2],
            faults=tuple(self.options.get("faults", ())),
            step_limit=int(self.options.get("step_limit", 20000)),
            strategy="replay",
            seed=0,
            execution=0,
            decisions=tuple(fewest),
            kind=NOT_LINEARIZABLE,
            rule="",
            message=message,
            where=(),
            trace_hash=campaign.hashes()[0],
        )
        lanes = lane_table(failure, campaign.trace())
        answers = "\n".join(f"  {call}" for call in history)
        return InterleavingFailure(
            failure, f"no order of the calls explains their answers:\n{answers}\n{lanes}"
        )


def dealt(subject: Subject, steps: Sequence[Step], threads: int) -> list[list[Step]]:
    """The steps by thread, in turn; those of an exclusive role all go to one."""
    lanes: list[list[Step]] = [[] for _ in range(threads)]
    for number, step in enumerate(steps):
        role = subject.operation(step.operation).role
        lanes[role % threads if role else number % threads].append(step)
    return lanes


def program_of(subject: Subject, lanes: Sequence[Sequence[Step]], settings: Mapping[str, int]) -> Program:
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


def canonical(history: Sequence[Call]) -> tuple[object, ...]:
    """Answers, and which calls came before which: all that a verdict depends on."""
    before = tuple(tuple(other.returned < call.invoked for other in history) for call in history)
    return (tuple(call.result for call in history), before)


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
            if fits([*order, call]) and extend([*order, call], [each for each in left if each is not call]):
                return True
        return False

    return extend([], list(history))
