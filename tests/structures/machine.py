"""Drives any subject against its model on one real thread: every call is compared, then all is
checked.

Calls name one of several logical threads, so that what the subject keeps by thread is covered too.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import HealthCheck, settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions, TrialResult, run_trial
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Instance, Result, Subject, SubjectOperation
from pulsar_ml.operations import _native
from pulsar_ml.specs import Model

THREADS = 3

# Budgets of the tests of one structure.
EXAMPLES = 60
STEPS = 40
SEEDS = range(12)
CALLS = 1000  # per logical thread and seed
TRIAL_SEEDS = range(6)

Call = tuple[int, SubjectOperation, tuple[int, ...]]


class Pair:
    """An instance and its model, fed with the same calls."""

    def __init__(self, structure: str, settings: dict[str, int], threads: int = THREADS) -> None:
        self.subject: Subject = _native.SUBJECTS[structure]
        chosen = {
            setting.name: settings.get(setting.name, setting.low)
            for setting in self.subject.settings
        }
        self.instance: Instance = self.subject.create(threads=threads, settings=chosen)
        self.model = model_of(structure, chosen, threads)

    def call(self, operation: str, *arguments: int, thread: int = 0) -> Result:
        """Apply one call to both; AssertionError when the answers differ."""
        seen = self.instance.call(operation, *arguments, thread=thread)
        self.compare(seen, operation, arguments, thread)
        return seen

    def compare(self, seen: Result, operation: str, arguments: Sequence[int], thread: int) -> None:
        expected = self.model.step(operation, arguments, thread=thread)
        call = f"{operation}{tuple(arguments)} of thread {thread}"
        assert tuple(seen) == expected, f"{call}: {seen}, not {expected}"


def model_of(structure: str, settings: dict[str, int], threads: int) -> Model:
    model: Model = importlib.import_module(f"pulsar_ml.specs.{structure}").Model(settings, threads)
    return model


def model_after(structure: str, settings: dict[str, int], calls: Sequence[Call]) -> Model:
    """A new model after these calls."""
    model = model_of(structure, settings, THREADS)
    for thread, operation, arguments in calls:
        model.step(operation.name, arguments, thread=thread)
    return model


def machine(structure: str, *, also: Sequence[str] = ()) -> type[RuleBasedStateMachine]:
    """A state machine over the operations that occur in programs, and those named in ``also``."""
    subject = _native.SUBJECTS[structure]
    ranges = {
        setting.name: strategies.integers(setting.low, setting.high) for setting in subject.settings
    }

    class Machine(RuleBasedStateMachine):
        pair: Pair | None = None

        @initialize(chosen=strategies.fixed_dictionaries(ranges))
        def create(self, chosen: dict[str, int]) -> None:
            self.pair = Pair(structure, chosen)

        def teardown(self) -> None:
            if self.pair is not None:
                self.pair.instance.check()
            self.pair = None  # Hypothesis keeps machines for a while; an instance may be large

    for operation in subject.operations:
        if operation.weight or operation.name in also:
            setattr(Machine, f"call_{operation.name}", operation_rule(operation))
    Machine.__name__ = Machine.__qualname__ = f"{structure}_machine"
    return Machine


def operation_rule(operation: SubjectOperation) -> object:
    """A rule that draws a thread and the operation's arguments, and calls it."""
    drawn: dict[str, Any] = {
        argument.name: strategies.integers(argument.low, argument.high)
        for argument in operation.arguments
    }

    def call(self: Any, calling_thread: int, **arguments: int) -> None:
        # Hypothesis hands them over in an order of its own.
        ordered = [arguments[argument.name] for argument in operation.arguments]
        self.pair.call(operation.name, *ordered, thread=calling_thread)

    call.__name__ = f"call_{operation.name}"
    last = 0 if operation.role else THREADS - 1  # a role belongs to one thread
    decorate: Any = rule(calling_thread=strategies.integers(0, last), **drawn)
    return decorate(call)


def machine_test(structure: str, *, also: Sequence[str] = ()) -> type:
    """The machine as a test case with the budget of these tests."""
    case = machine(structure, also=also).TestCase
    case.settings = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    found: type = case  # whose own type Hypothesis says from 6.156 on
    return found


def calls_of(structure: str, seed: int, calls: int) -> tuple[dict[str, int], Iterator[Call]]:
    """The settings and calls of a seeded program; one call of each thread in turn."""
    subject = _native.SUBJECTS[structure]
    program = Program.generate(subject, seed, threads=THREADS, operations=calls)

    def in_turn() -> Iterator[Call]:
        for row in range(calls):
            for thread, lane in enumerate(program.threads):
                if row < len(lane):
                    operation = subject.operations[int(lane[row]["code"])]
                    drawn = lane[row]["arguments"][: len(operation.arguments)]
                    yield thread, operation, tuple(int(value) for value in drawn)

    return dict(program.settings), in_turn()


def compare_program(structure: str, seed: int, *, calls: int = CALLS) -> None:
    """A longer program than Hypothesis would draw, compared call by call."""
    chosen, program = calls_of(structure, seed, calls)
    pair = Pair(structure, chosen)
    for thread, operation, arguments in program:
        pair.call(operation.name, *arguments, thread=thread)
    pair.instance.check()


def fail_each_allocation(structure: str, refused: int, *, seed: int = 1, calls: int = 60) -> int:
    """Runs one program again and again, failing its first, second, ... native allocation.

    A failed creation must raise MemoryError. A failed call must answer the status ``refused`` and
    change nothing: called once more it answers what the model says. Returns how many failed.
    """
    failures = 0
    try:
        while run_failing(structure, refused, failures, seed, calls):
            failures += 1
    finally:
        _native.fail_allocation_after(-1)
    return failures


def run_failing(structure: str, refused: int, failing: int, seed: int, calls: int) -> bool:
    """One run with one failed allocation; False when there were not that many."""
    chosen, program = calls_of(structure, seed, calls)
    _native.fail_allocation_after(failing)
    try:
        pair = Pair(structure, chosen)
    except MemoryError:
        return True
    failed = False
    earlier: list[Call] = []
    for thread, operation, arguments in program:
        seen = pair.instance.call(operation.name, *arguments, thread=thread)
        expected = pair.model.step(operation.name, arguments, thread=thread)
        if tuple(seen) != expected and not failed:
            assert seen.status == refused, (
                f"{operation.name}{arguments}: {seen}, not {expected} or refused"
            )
            failed = True
            # A model may say what a call without memory changes all the same.
            before = model_after(structure, chosen, earlier)
            if (without_memory := getattr(before, "without_memory", None)) is not None:
                assert without_memory(operation.name, arguments, thread, tuple(seen))
                expected = before.step(operation.name, arguments, thread=thread)
                pair.model = before
            seen = pair.instance.call(operation.name, *arguments, thread=thread)
        assert tuple(seen) == expected, f"{operation.name}{arguments}: {seen}, not {expected}"
        earlier.append((thread, operation, arguments))
    # A failure that did not come about in the program shall not hit the check.
    _native.fail_allocation_after(-1)
    pair.instance.check()
    return failed


def run_threads(suite: Suite, seed: int, *, threads: int = 0) -> TrialResult:
    """The suite's program of a seed on real threads; 2 to 7 of them unless told."""
    result = run_trial(suite, seed, TrialOptions(threads=threads or 2 + seed, operations=2000))
    assert result.violations == (), result.replay.to_json()
    return result
