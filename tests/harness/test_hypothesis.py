"""Hypothesis generates program and schedule together, finds what is wrong, and shrinks both."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.stateful import rule

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.histories.history import Call
from pulsar_ml.harness.judges.plain import PlainJudge
from pulsar_ml.harness.search.failure import WRONG_ANSWERS
from pulsar_ml.harness.search.interleave import InterleavingFailure
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.harness.testing.state_machine import ConcurrentMachine, has_order
from pulsar_ml.harness.testing.strategies import Interleaving, interleavings, programs
from tests.harness.toys.build_toys import toys_path

QUIET = settings(
    max_examples=60,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def oracles() -> ModuleType:
    return load_checked(toys_path(checked=True, name="oracles"))


@pytest.fixture(scope="module")
def toys() -> ModuleType:
    return load_checked(toys_path(checked=True))


def run_all(
    subject: Subject,
    executions: int,
    base: settings = QUIET,
    judge: PlainJudge | None = None,
    **options: object,
) -> list[Interleaving]:
    """Run a test over generated interleavings; what was tried."""
    tried: list[Interleaving] = []

    @base
    @given(interleavings(subject, **options))  # type: ignore[arg-type]
    def test(interleaving: Interleaving) -> None:
        tried.append(interleaving)
        interleaving.run(executions=executions, judge=judge)

    test()
    return tried


def test_generated_programs_keep_ranges_roles_and_sizes(toys: ModuleType) -> None:
    subject = toys.SUBJECTS["owned"]
    by_code = {operation.code: operation for operation in subject.operations}

    @QUIET
    @given(programs(subject, threads=3, operations=5))
    def test(program: Program) -> None:
        assert Program.from_json(program.to_json()) == program
        players = set()
        for thread, lane in enumerate(program.threads):
            assert len(lane) <= 5
            for call in lane:
                operation = by_code[int(call["code"])]
                assert operation.name != "rare", "its weight is 0"
                for argument, value in zip(operation.arguments, call["arguments"], strict=False):
                    assert argument.low <= int(value) <= argument.high
                if operation.role:
                    players.add(thread)
        assert len(players) <= 1

    test()


@pytest.mark.parametrize("executions", [0, 200])
def test_a_race_is_found_and_program_and_schedule_shrink_together(
    oracles: ModuleType, executions: int
) -> None:
    subject = oracles.SUBJECTS["counter_race"]
    with pytest.raises(InterleavingFailure) as caught:
        run_all(subject, executions, threads=3, operations=4)
    failure = caught.value.failure
    assert failure.kind == "data race"
    assert [len(lane) for lane in Program.from_json(failure.program).threads] == [1, 1]
    assert failure.replay(subject).exact
    assert "thread 0" in str(caught.value)


class Numbers:
    """The machine of both ticket subjects."""

    def init(self) -> int:
        return 0

    def step(self, state: int, call: Call) -> list[int]:
        result: Any = call.result
        return [state + 1] if call.pending or result[1][0] == state else []


def test_wrong_answers_are_found_and_shrink_too(oracles: ModuleType) -> None:
    judge = PlainJudge(Numbers)
    wrong, right = oracles.SUBJECTS["tickets_twice"], oracles.SUBJECTS["tickets"]
    with pytest.raises(InterleavingFailure) as caught:
        run_all(wrong, 200, judge=judge, threads=3, operations=3)
    failure = caught.value.failure
    assert failure.kind == WRONG_ANSWERS
    assert [len(lane) for lane in Program.from_json(failure.program).threads] == [1, 1]
    assert failure.replay(wrong, judge).exact
    assert "thread 0" in str(caught.value)
    run_all(wrong, 200, threads=3, operations=3)  # nothing but its answers is wrong
    before = judge.counts.judged
    run_all(right, 200, judge=judge, threads=3, operations=3)
    assert judge.counts.judged > before


def test_a_correct_subject_is_not_blamed(oracles: ModuleType, toys: ModuleType) -> None:
    for subject in (oracles.SUBJECTS["pair"], toys.SUBJECTS["counter"]):
        assert len(run_all(subject, 50, threads=3, operations=3)) >= 10


def test_a_failing_example_is_kept_in_the_database_and_tried_first(oracles: ModuleType) -> None:
    kept = settings(QUIET, database=InMemoryExampleDatabase(), derandomize=False)
    for phases in ([Phase.generate, Phase.shrink], [Phase.reuse]):
        with pytest.raises(InterleavingFailure):
            run_all(oracles.SUBJECTS["counter_race"], 50, settings(kept, phases=phases), threads=2)


class Tickets(ConcurrentMachine):
    """The specification of both ticket subjects."""

    def __init__(self) -> None:
        super().__init__()
        self.given_out = 0

    @rule()
    def take(self) -> None:
        assert self.call("next").words[0] == self.given_out
        self.given_out += 1


class Pair(ConcurrentMachine):
    """The specification of both pair subjects."""

    def __init__(self) -> None:
        super().__init__()
        self.value = 0

    @rule(value=st.integers(1, 9))
    def write(self, value: int) -> None:
        self.call("write", value)
        self.value = value

    @rule()
    def read(self) -> None:
        assert self.call("read").words[:2] == (self.value, self.value)


def machine_of(base: type[ConcurrentMachine], subject: Subject) -> type[ConcurrentMachine]:
    return type(base.__name__, (base,), {"subject": subject})


FEW = settings(QUIET, max_examples=15)


@pytest.mark.parametrize("mode", ["sc", "c11"])
@pytest.mark.parametrize(("base", "name"), [(Tickets, "tickets_twice"), (Pair, "pair_torn")])
def test_a_machine_run_concurrently_finds_answers_that_no_order_explains(
    oracles: ModuleType, base: type[ConcurrentMachine], name: str, mode: str
) -> None:
    machine = machine_of(base, oracles.SUBJECTS[name])
    with pytest.raises(InterleavingFailure, match="no order of the calls explains") as caught:
        machine.run_concurrently(threads=2, mode=mode, operations=3, settings=FEW)
    calls = sum(len(lane) for lane in Program.from_json(caught.value.failure.program).threads)
    assert calls == 2, str(caught.value)


@pytest.mark.parametrize(("base", "name"), [(Tickets, "tickets"), (Pair, "pair")])
def test_a_correct_structure_satisfies_its_machine(
    oracles: ModuleType, base: type[ConcurrentMachine], name: str
) -> None:
    machine = machine_of(base, oracles.SUBJECTS[name])
    machine.run_concurrently(threads=3, operations=2, settings=FEW)


def test_a_machine_also_finds_races(oracles: ModuleType) -> None:
    machine = machine_of(Tickets, oracles.SUBJECTS["counter_race"])
    with pytest.raises((InterleavingFailure, AssertionError)):
        machine.run_concurrently(settings=FEW)


def test_too_many_calls_for_every_order_are_refused(oracles: ModuleType) -> None:
    machine = machine_of(Tickets, oracles.SUBJECTS["tickets"])
    with pytest.raises(UsageError, match="at most"):
        machine.run_concurrently(threads=5, operations=5)


def test_an_empty_history_has_an_order() -> None:
    assert has_order([], lambda order: False)
