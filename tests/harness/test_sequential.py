"""Sequential models as models for the checker: equal states, and steps that no answer tells of."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from functools import cache
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.histories.history import Call, History, frozen
from pulsar_ml.harness.histories.recording import history_of_execution
from pulsar_ml.harness.judges.judge import ModelJudge, as_checked
from pulsar_ml.harness.linearize import ANSWERS, ModelChecker
from pulsar_ml.harness.models.copies import freeze
from pulsar_ml.harness.models.model import ModelError
from pulsar_ml.harness.models.sequential import ENDS, ModelState, Sequential
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.operations import _checked
from pulsar_ml.specs import answer
from pulsar_ml.suites.registry import SUITES
from tests.answers import Row
from tests.harness.test_judge import refused
from tests.harness.toys.build_toys import toys_path


@cache
def toys() -> ModuleType:
    return load_checked(toys_path(checked=True, name="oracles"))


class Pair:
    def __init__(self, first: list[int], second: list[int]) -> None:
        self.first, self.second = first, second


def test_equal_states_are_one_and_shared_things_are_told_apart() -> None:
    shared = [1]
    states = Sequential(lambda settings, threads: Pair([1], [1]), {}, 1)
    assert states.state(Pair([1], [1])) is states.start
    assert states.state(Pair(shared, shared)) is not states.start


class Counter:
    """``add`` puts a number off until the end of its call or earlier; ``get`` answers the sum."""

    weak: ClassVar[dict[str, str]] = {"add": "The number is there at some moment of the call."}
    spans = frozenset(weak)

    def __init__(self, settings: dict[str, int], threads: int) -> None:
        self.sum = 0
        self.coming: tuple[int, ...] = (-1,) * threads  # 0: it came; -1: nothing is under way

    def put(self, thread: int, number: int) -> None:
        self.coming = (*self.coming[:thread], number, *self.coming[thread + 1 :])

    def begins(self, operation: str, arguments: Sequence[int], *, thread: int) -> None:
        self.put(thread, arguments[0])

    def hidden(self) -> list[int]:
        return [thread for thread, number in enumerate(self.coming) if number > 0]

    def happens(self, thread: int) -> None:
        self.sum += self.coming[thread]
        self.put(thread, 0)

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int, result: Any
    ) -> bool:
        begun = self.coming[thread] == 0
        self.put(thread, -1)
        return begun and bool(result == answer(0))

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Any:
        return answer(0, self.sum)


@pytest.mark.parametrize(
    ("first", "second", "legal"),
    [(0, 0, True), (0, 5, True), (0, 3, True), (5, 8, True), (8, 8, True), (5, 3, False), (8, 0, False),
     (4, 8, False)],
)  # fmt: skip
def test_hidden_steps_happen_in_any_order_before_their_calls_end(
    first: int, second: int, legal: bool
) -> None:
    rows: list[Row] = [
        (0, "add", (5,), answer(0), 1, 20),
        (1, "add", (3,), answer(0), 2, 21),
        (2, "get", (), answer(0, first), 5, 6),
        (2, "get", (), answer(0, second), 7, 8),
        (2, "get", (), answer(0, 8), 30, 31),
    ]
    assert (refused(Counter, {}, *rows) == "") is legal
    assert refused(Counter, {}, *rows[:4], (2, "get", (), answer(0, 5), 30, 31)) != ""


def test_where_hidden_steps_lead_from_another_state_is_left_out() -> None:
    states = Sequential(Counter, {}, 3)

    def after(
        state: ModelState, name: str, *arguments: int, value: int = 0, thread: int = 0
    ) -> list[ModelState]:
        return list(states.step(state, Call(name, arguments, answer(0, value), thread)))

    (both,) = [
        two for one in after(states.start, "add", 5) for two in after(one, "add", 3, thread=1)
    ]
    assert len(states.reached(both)) == 4
    (read,) = after(both, "get", value=5, thread=2)
    assert read.whole.coming == (0, 3, -1)
    assert after(both, "add ends", thread=1)[0].whole.sum == 3
    assert len(after(both, "add ends", thread=1)) == 1


class Unpruned(Sequential):
    """Tells of every state to which any hidden steps and the call lead."""

    def after_hidden(self, state: ModelState, call: Call) -> Iterable[ModelState]:
        ends = not call.pending and call.name.endswith(ENDS)
        return dict.fromkeys(
            after
            for before, _ in self.reached(state)
            if not ends or call.thread not in before.busy
            for after in self.after(before, call)
        )


def histories_of(name: str, seed: int, executions: int, mode: str = "c11") -> list[History]:
    """Those of some executions, and each again with one word of an answer changed."""
    suite = SUITES[name]
    subject = _checked.SUBJECTS[suite.subject]
    mix = suite.controlled.mix if suite.controlled else None
    program = Program.generate(
        subject, seed, threads=3, operations=3, mix=mix, settings=suite.settings, noise=False
    )
    found: list[History] = []

    def collect(explorer: Explorer) -> str:
        found.append(history_of_execution(explorer))
        return ""

    explore(subject, program, executions=executions, judge=collect, mode=mode)
    rng = np.random.default_rng(seed)
    for true in list(found):
        records = true.records.copy()
        records["result"][rng.integers(len(records))][rng.integers(4)] += rng.choice([-1, 1])
        found.append(true.with_records(frozen(records)))
    return found


def spanning() -> list[str]:
    """Suites whose model has operations that span."""
    models = {
        name: importlib.import_module(suite.model).Model
        for name, suite in SUITES.items()
        if suite.model
    }
    return sorted(name for name, model in models.items() if getattr(model, "spans", ()))


class Loose(Sequential):
    """Says of no call that it is the end of another one."""

    def ends(self, call: Call) -> bool:
        return False


@pytest.mark.parametrize("name", spanning())
def test_ends_behind_their_beginnings_and_idle_ones_left_out_make_no_difference(name: str) -> None:
    verdicts = []
    for seed in range(2):
        histories = histories_of(name, seed, 12)
        judge = ModelJudge(importlib.import_module(SUITES[name].model).Model)
        checker = judge.checker(histories[0], 3, False)
        loose = ModelChecker(Loose(judge.factory, histories[0].settings, 3), checker.signatures)
        for one in histories:
            records = as_checked(checker, one)[0].records
            verdicts.append(judge.searched(checker, records, False))
            answer, *_ = loose.native.search(
                records, state=loose.start, most_steps=judge.most_steps
            )
            assert verdicts[-1] == ANSWERS[answer]
    assert verdicts.count("legal") > 10
    assert "illegal" in verdicts


def told_apart(model: Any) -> Any:
    """Return a model whose states are equal only when all their attributes are."""
    return type("Whole", (model,), {"canonical": lambda self: freeze(vars(self))})


@pytest.mark.parametrize(
    "name", ["active_cursors", "cursor_heap", "inflight_limiter", "mpsc_queue", "pending_reads"]
)
@pytest.mark.parametrize("fresh", [False, True])
def test_states_that_are_equal_for_a_model_are_equal_for_every_history(
    name: str, fresh: bool
) -> None:
    verdicts = []
    model = importlib.import_module(SUITES[name].model).Model
    for seed in range(3):
        histories = histories_of(name, seed, 16, mode="sc" if fresh else "c11")
        judges = ModelJudge(model), ModelJudge(told_apart(model))
        for one in histories:
            found = []
            for judge in judges:
                checker = judge.checker(one, 3, fresh)
                found.append(judge.searched(checker, as_checked(checker, one)[0].records, False))
            assert found[0] == found[1]
            verdicts.append(found[0])
        few, many = [[len(each.states) for each in judge.checkers.values()] for judge in judges]
        assert few <= many
    assert min(verdicts.count("legal"), verdicts.count("illegal")) > 10


@pytest.mark.parametrize("name", ["inflight_limiter", "pending_reads", "cursor_heap"])
def test_what_hidden_steps_reach_anyway_makes_no_difference(name: str) -> None:
    verdicts = []
    for seed in range(4):
        histories = histories_of(name, seed, 30)
        judge = ModelJudge(importlib.import_module(SUITES[name].model).Model)
        checker = judge.checker(histories[0], 3, False)
        every = Unpruned(judge.factory, histories[0].settings, 3)
        unpruned = ModelChecker(every, checker.signatures)
        for one in histories:
            records = as_checked(checker, one)[0].records
            verdicts.append(judge.searched(checker, records, False))
            assert verdicts[-1] == judge.searched(unpruned, records, False)
    assert min(verdicts.count("legal"), verdicts.count("illegal")) > 20


class Quick(Counter):
    """Ends that do not fit are refused before anything is changed, and those of nothing at once."""

    ended = 0

    def fits(self, operation: str, *, thread: int, result: Any) -> bool:
        return self.coming[thread] == 0

    @staticmethod
    def idle(operation: str, result: Any) -> bool:
        return bool(result == answer(1))

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int, result: Any
    ) -> bool:
        Quick.ended += 1
        return super().concurrent(operation, arguments, thread=thread, result=result)


def test_ends_that_do_not_fit_and_those_of_nothing_are_not_tried() -> None:
    states = Sequential(Quick, {}, 2)
    end = Call("add ends", (5,), answer(0), 0)
    Quick.ended = 0
    assert list(states.step(states.start, end)) == []
    assert Quick.ended == 0
    (begun,) = states.step(states.start, Call("add", (5,), answer(0), 0))
    assert [state.whole.sum for state in states.step(begun, end)] == [5]
    assert Quick.ended == 1
    nothing = end._replace(result=answer(1))
    assert states.pure(nothing)
    assert not states.pure(end)
    assert list(states.step(begun, nothing)) == [begun]
    assert Quick.ended == 1


class Silent:
    """Has nothing to say of operations that are not weak."""

    weak: ClassVar[dict[str, str]] = {"add": "Anything."}

    def __init__(self, settings: dict[str, int], threads: int) -> None:
        pass


def test_a_model_that_says_nothing_of_an_operation_is_told_apart_from_a_wrong_answer() -> None:
    with pytest.raises(ModelError, match=r"Silent has no step\(\) and does not declare get"):
        refused(Silent, {}, (0, "get", (0,), answer(0), 1, 2))


def test_an_end_is_tried_where_its_call_was_last_seen() -> None:
    subject = _checked.SUBJECTS["pending_reads"]
    program = Program.generate(
        subject, 1, threads=3, operations=4, settings=SUITES["pending_reads"].settings, noise=False
    )
    judge = ModelJudge(importlib.import_module(SUITES["pending_reads"].model).Model)
    assert explore(subject, program, executions=200, judge=judge).failure is None
    assert judge.prepared is not None
    records = judge.prepared.records
    begun, ended = records[: len(records) // 2], records[len(records) // 2 :]
    assert (begun["invoked"] == ended["invoked"]).all()
    seen = begun["moment"] > 0
    assert seen.any()
    assert (begun["moment"] <= ended["moment"]).all()
    assert (begun["moment"] < ended["moment"])[seen].any()
    assert (ended["moment"] <= ended["returned"]).all()


class Broken(Counter):
    """Stops answering after a while."""

    weak: ClassVar[dict[str, str]] = {}
    spans = frozenset(weak)
    patience = 0
    raised: ClassVar[BaseException] = ValueError("no more")

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Any:
        Broken.patience -= 1
        if Broken.patience < 0:
            raise self.raised
        self.sum += 1
        return answer(0, self.sum - 1)

    def hidden(self) -> list[int]:
        return []


@pytest.mark.parametrize("error", [ValueError("no more"), KeyboardInterrupt()])
@pytest.mark.parametrize("patience", [0, 3, 20])
def test_what_a_model_raises_ends_the_run_that_asked_it(
    error: BaseException, patience: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = toys().SUBJECTS["tickets"]
    program = Program.generate(subject, 1, threads=3, operations=4, noise=False)
    monkeypatch.setattr(Broken, "raised", error)
    monkeypatch.setattr(Broken, "patience", patience)
    with pytest.raises(type(error)):
        explore(subject, program, executions=5_000, judge=ModelJudge(Broken))
