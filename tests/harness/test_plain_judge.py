"""A judge from a plain model: what it accepts and refuses, of histories and under the engine."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from pulsar_ml.harness.histories.history import Call
from pulsar_ml.harness.judges import judge as judge_module
from pulsar_ml.harness.judges.plain import PlainJudge
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import WRONG_ANSWERS
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.operations import _checked
from pulsar_ml.specs import answer
from tests.answers import Row, history


class Numbers:
    """take() -> the next number in the first word."""

    steps = 0

    def init(self) -> int:
        return 0

    def step(self, state: int, call: Call) -> Iterable[int]:
        Numbers.steps += 1
        return [state + 1] if call.pending or call.result == answer(0, state) else []

    def describe(self, call: Call) -> str:
        return f"number {call.result[1][0]}"  # type: ignore[index]


def take(thread: int, number: int, start: int, end: int) -> Row:
    return (thread, "take", (), answer(0, number), start, end)


def test_answers_of_some_order_are_accepted_and_others_refused() -> None:
    judge = PlainJudge(Numbers)
    assert judge.message(history([take(0, 1, 1, 9), take(1, 0, 2, 3)], {}), 2) == ""
    assert judge.message(history([take(0, 1, 1, 2), take(1, 0, 3, 4)], {}), 2) == (
        "number 1 of thread 0 cannot follow any legal order of 0 other calls; "
        "illegal by themselves: number 1 of thread 0"
    )
    assert (judge.counts.judged, judge.counts.unknown) == (2, 0)


def test_what_the_model_said_is_remembered_whatever_the_settings_and_threads() -> None:
    judge = PlainJudge(Numbers)
    rows = [take(0, 1, 1, 9), take(1, 0, 2, 3)]
    assert judge.message(history(rows, {"size": 1}), 2) == ""
    before = Numbers.steps
    assert judge.message(history(rows, {"size": 2}), 3, fresh=True) == ""
    assert Numbers.steps == before


def test_a_model_that_needs_too_much_memory_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = PlainJudge(Numbers)
    rows = [take(0, number, 2 * number, 2 * number + 1) for number in range(60)]
    with monkeypatch.context() as small:
        small.setattr(judge_module, "MEMORY", 2_000)
        judge.checker(history(rows, {}), 1, False)
    assert len(judge.checkers) == 1
    assert judge.message(history(rows, {}), 1) == ""
    assert (judge.counts.unknown, dict(judge.checkers)) == (0, {})


class Counts:
    """A reference count that is always there: what the refcount suite's publish must not answer."""

    def init(self) -> int:
        return 0

    def step(self, state: int, call: Call) -> Iterable[int]:
        return [state] if call.name != "publish" or call.pending or call.result == answer(1) else []


class Anything(Counts):
    def step(self, state: int, call: Call) -> Iterable[int]:
        return [state]


def test_executions_are_judged() -> None:
    subject = _checked.SUBJECTS["refcount"]
    program = Program.generate(subject, 3, threads=2, operations=4, mix={"publish": 1}, noise=False)
    refused = explore(subject, program, executions=50, judge=PlainJudge(Counts))
    assert refused.failure is not None and refused.failure.kind == WRONG_ANSWERS
    accepting = PlainJudge(Anything)
    assert explore(subject, program, executions=50, judge=accepting).failure is None
    assert accepting.counts.judged > 0
