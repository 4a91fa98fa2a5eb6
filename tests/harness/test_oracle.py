"""Judges are asked once for each history; their refusals are failures that replay and shrink."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import pytest

from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.judges import judge as judge_module
from pulsar_ml.harness.judges.judge import ModelJudge
from pulsar_ml.harness.judges.oracle import run_judged
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import WRONG_ANSWERS, Failure
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.specs import Answer, answer
from tests.harness.toys.build_toys import toys_path

History = tuple[tuple[tuple[int, int, int, tuple[int, ...]], ...], ...]


@pytest.fixture(scope="module")
def oracles() -> ModuleType:
    return load_checked(toys_path(checked=True, name="oracles"))


def program_of(subject: Subject, threads: int = 2, operations: int = 2) -> Program:
    return Program.generate(subject, 1, threads=threads, operations=operations, noise=False)


def tickets(explorer: Explorer) -> str:
    """Every caller gets a number of its own."""
    numbers = [
        call[3][0]
        for thread in range(len(explorer.program.threads))
        for call in explorer.calls(thread)
    ]
    return (
        ""
        if len(set(numbers)) == len(numbers)
        else f"two callers got one number: {sorted(numbers)}"
    )


class Recorder:
    """A judge that accepts everything and keeps the histories."""

    def __init__(self) -> None:
        self.histories: list[History] = []

    def __call__(self, explorer: Explorer) -> str:
        threads = range(len(explorer.program.threads))
        self.histories.append(tuple(tuple(explorer.calls(thread)) for thread in threads))
        return ""


@pytest.mark.parametrize("strategy", ["portfolio", "random", "preemptions"])
@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
def test_wrong_answers_are_a_failure_that_replays_and_shrinks(
    oracles: ModuleType, strategy: str, mode: str
) -> None:
    subject = oracles.SUBJECTS["tickets_twice"]
    program = program_of(subject, threads=3, operations=3)
    found = explore(
        subject, program, executions=5000, strategy=strategy, mode=mode, judge=tickets
    ).failure
    assert found is not None and found.kind == WRONG_ANSWERS
    assert Failure.from_text(found.short()) == found
    small = shrink(found, subject, judge=tickets)
    assert [len(lane) for lane in Program.from_json(small.program).threads] == [1, 1]
    for judge in (tickets, None):
        again = small.replay(subject, judge)
        assert again.exact and again.failure == small


class Tickets:
    """A sequential model of ``tickets``."""

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.numbers = 0

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        self.numbers += 1
        return answer(0, self.numbers - 1)


def test_what_is_wrong_is_said_once_of_a_failure_that_shrinks(
    oracles: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = oracles.SUBJECTS["tickets_twice"]
    judge = ModelJudge(Tickets)
    found = explore(subject, program_of(subject, 3, 3), executions=5000, judge=judge).failure
    assert found is not None and found.kind == WRONG_ANSWERS
    said = iter(("first", "second", "third"))
    monkeypatch.setattr(judge_module, "explanation", lambda *_: next(said))
    assert shrink(found, subject, judge=judge).message == "first"
    shrunk = shrink(found, subject, judge=judge, budget=30)
    assert shrunk.message == "second"
    assert shrunk.replay(subject, judge).exact


def test_other_failures_are_passed_over_where_only_answers_count(oracles: ModuleType) -> None:
    subject = oracles.SUBJECTS["tickets_seen"]
    program = program_of(subject, threads=3, operations=3)
    firsts = [
        (seed, explore(subject, program, executions=5000, seed=seed, judge=tickets))
        for seed in range(9)
    ]
    seed, other = next(
        (seed, done) for seed, done in firsts if done.failure and done.failure.rule == "SEEN"
    )
    options: dict[str, Any] = {"seed": seed, "judge": tickets, "answers_only": True}
    found = explore(subject, program, executions=5000, **options)
    assert found.failure is not None and found.failure.kind == WRONG_ANSWERS
    assert found.failure.execution == found.executions - 1 > other.executions - 1
    assert found.failure.replay(subject, tickets).exact
    alone = explore(subject, program, executions=1, first=found.failure.execution, **options)
    assert alone.failure == found.failure
    whole = explore(subject, program, executions=5000, judge=Recorder(), answers_only=True)
    assert whole.failure is None and whole.executions == 5000


def test_right_answers_are_not_blamed(oracles: ModuleType) -> None:
    subject = oracles.SUBJECTS["tickets"]
    done = explore(subject, program_of(subject, 3, 3), executions=20_000, judge=tickets)
    assert done.failure is None and done.executions == 20_000


def test_a_judge_is_asked_once_for_each_history(oracles: ModuleType) -> None:
    subject = oracles.SUBJECTS["tickets"]
    recorder = Recorder()
    explore(subject, program_of(subject), executions=5000, judge=recorder)
    answers = [
        tuple(tuple(call[3][0] for call in lane) for lane in each) for each in recorder.histories
    ]
    # Each thread takes two of four numbers, ascending: six ways, and some with calls that overlap
    # or not.
    assert len(set(answers)) == 6
    assert len(recorder.histories) <= 6 * 6


def test_an_exhaustive_search_with_a_judge_takes_every_path_once(oracles: ModuleType) -> None:
    subject = oracles.SUBJECTS["tickets"]
    program = program_of(subject)
    options = {"executions": 10_000, "strategy": "preemptions", "bound": 3, "mode": "sc"}
    plain = explore(subject, program, **options)  # type: ignore[arg-type]
    judged = explore(subject, program, judge=tickets, **options)  # type: ignore[arg-type]
    assert plain.exhausted == judged.exhausted == "completely"
    assert plain.executions == judged.executions
    assert plain.statistics["classes"] == judged.statistics["classes"]


def test_runs_with_a_judge_go_on_where_they_stopped(oracles: ModuleType) -> None:
    subject = oracles.SUBJECTS["tickets"]
    explorer = Explorer(subject, program_of(subject), judged=True, seed=3)
    assert run_judged(explorer, 0, 1000, tickets) == (1000, "")
    assert run_judged(explorer, 1000, 1000, tickets) == (1000, "")
    assert explorer.statistics()["executions"] == 2000


@pytest.mark.parametrize("collects", [True, False])
def test_no_garbage_is_searched_while_histories_are_judged(
    oracles: ModuleType, collects: bool
) -> None:
    subject = oracles.SUBJECTS["tickets"]
    seen: set[bool] = set()

    def judge(explorer: Explorer) -> str:
        seen.add(gc.isenabled())
        return ""

    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        explore(subject, program_of(subject), executions=100, judge=judge)
        after = gc.isenabled()
    finally:
        (gc.enable if before else gc.disable)()
    assert seen == {False}
    assert after is collects


def test_a_refusal_of_another_kind_of_failure_does_not_hide_it(oracles: ModuleType) -> None:
    subject = oracles.SUBJECTS["counter_race"]
    found = explore(
        subject, program_of(subject), executions=1000, judge=lambda explorer: ""
    ).failure
    assert found is not None and found.kind == "data race"
