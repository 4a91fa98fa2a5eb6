"""The models of this package keep their contract; models that break it are refused."""

from __future__ import annotations

import json
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.histories.history import UNKNOWN, Call, History, Operation, history_of
from pulsar_ml.harness.linearize import LEGAL, check
from pulsar_ml.harness.models import MODELS, EvictingMap, Queue, Register, model_named
from pulsar_ml.harness.models.conformance import check_model
from pulsar_ml.harness.models.model import Keyed, ModelError
from tests.linearize.histories import SHAPES, histories

SOME = history_of([Operation(0, "write", (1,), None, 0, 1), Operation(0, "read", (), 1, 2, 3)])


@pytest.mark.parametrize("name", MODELS)
def test_the_models_that_ship_keep_the_contract(name: str) -> None:
    @settings(max_examples=30, deadline=None, derandomize=True, database=None)
    @given(histories(SHAPES[name]))
    def run(history: History) -> None:
        check_model(MODELS[name](), history)

    run()


class Mutable(Register):
    def init(self) -> Any:
        return [None]

    def step(self, state: Any, call: Call) -> Any:
        if call.name == "write":
            state[0] = call.arguments[0]
        return [state]

    def equal(self, first: Any, second: Any) -> bool:
        return bool(first == second)

    def hash(self, state: Any) -> int:
        return hash(tuple(state))


class Unhashable(Register):
    def init(self) -> Any:
        return [None]


class WrongHash(Register):
    def equal(self, first: Any, second: Any) -> bool:
        return bool(first == second)

    def hash(self, state: Any) -> int:
        self.calls = getattr(self, "calls", 0) + 1
        return self.calls


class NotIterable(Register):
    def step(self, state: Any, call: Call) -> Any:
        return state is None


class Fickle(Register):
    times = 0

    def step(self, state: Any, call: Call) -> Any:
        self.times += 1
        return (self.times,)


class FalselyPure(Register):
    def pure(self, call: Call) -> bool:
        return True


class NoPending(Register):
    def step(self, state: Any, call: Call) -> Any:
        return () if call.pending else super().step(state, call)


class Half(Register):
    def equal(self, first: Any, second: Any) -> bool:
        return bool(first == second)


class Raising(Register):
    def step(self, state: Any, call: Call) -> Any:
        raise KeyError(call.name)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (Mutable(), "step() changed its argument, the state"),
        (Unhashable(), "cannot be hashed"),
        (WrongHash(), "have different hashes"),
        (NotIterable(), "step() should return an iterable of the next states"),
        (Fickle(), "the second time"),
        (FalselyPure(), "and yet step() leads from"),
        (NoPending(), "without a result it does not"),
        (Half(), "a model with equal() also has hash()"),
        (object(), "a model has a method init()"),
        (Raising(), "step(), for write(1) from None, raised KeyError: 'write' ("),
    ],
)
def test_a_model_that_breaks_its_contract_is_refused(model: Any, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        check_model(model, SOME)
    assert sentence in str(caught.value)


def test_a_pure_call_that_changes_the_state_is_noticed_in_the_search_too() -> None:
    with pytest.raises(ModelError, match="pure, yet it leads from"):
        check(SOME, FalselyPure())


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_ships_says_what_each_operation_takes(name: str) -> None:
    model = MODELS[name]()
    with pytest.raises(UsageError) as caught:
        model.step(model.init(), Call("heat", (1,)))
    assert set(re.findall(r"\w+", str(caught.value).partition("it has: ")[2])) == set(
        model.operations
    )
    for operation, count in model.operations.items():
        assert model.step(model.init(), Call(operation, (1,) * count, UNKNOWN)) is not None
        for wrong in {0, 1, 2, 3} - {count}:
            wrong_call = Operation(0, operation, (1,) * wrong, None, 0, None)
            with pytest.raises(UsageError, match=f"has {wrong} argument.*takes {count}"):
                check_model(model, history_of([wrong_call]))


def test_a_key_that_is_not_said_to_be_one_is_no_argument() -> None:
    keyed = history_of(
        [Operation(0, "write", ("x", 1), None, 0, 1), Operation(0, "read", ("x",), 1, 2, 3)]
    )
    check_model(Keyed(Register()), keyed)
    with pytest.raises(UsageError, match=r"if the first one is the key.*--keyed"):
        check_model(Register(), keyed)
    with pytest.raises(
        UsageError, match=r"write\(1\), has 1 argument; .* one for each key takes 2$"
    ):
        check_model(Keyed(Register()), SOME)


class Modulo:
    """A model whose states are lists that are equal modulo ten."""

    def init(self) -> list[int]:
        return [0]

    def step(self, state: list[int], call: Call) -> list[list[int]]:
        if call.name == "add":
            return [[state[0] + int(str(call.arguments[0]))]]
        return [state] if call.pending or call.result == state[0] % 10 else []

    def equal(self, first: list[int], second: list[int]) -> bool:
        return first[0] % 10 == second[0] % 10

    def hash(self, state: list[int]) -> int:
        return state[0] % 10


def test_a_model_may_bring_its_own_equality() -> None:
    history = history_of(
        [
            Operation(0, "add", (7,), None, 0, 1),
            Operation(0, "add", (8,), None, 2, 3),
            Operation(1, "read", (), 5, 4, 5),
        ]
    )
    check_model(Modulo(), history)
    assert check(history, Modulo()).answer == LEGAL


def test_a_scan_may_have_holes_and_a_miss_is_final() -> None:
    def answer(*rows: tuple[str, tuple[object, ...], object]) -> str:
        operations = [Operation(0, *row, 10 * at, 10 * at + 5) for at, row in enumerate(rows)]
        return check(history_of(operations), EvictingMap()).answer

    puts = (("put", (1, "a"), True), ("put", (2, "b"), True))
    assert answer(*puts, ("scan", (0, 9), ("a", "b"))) == LEGAL
    assert answer(*puts, ("scan", (0, 9), ("b",)), ("get", (1,), None)) == LEGAL
    assert answer(*puts, ("scan", (0, 9), ("b", "a"))) != LEGAL
    assert answer(*puts, ("scan", (0, 9), ("b",)), ("get", (1,), "a")) != LEGAL
    assert answer(*puts, ("get", (1,), None), ("get", (1,), "a")) != LEGAL


def test_models_by_name() -> None:
    assert isinstance(model_named("queue"), Queue)
    assert isinstance(model_named("pulsar_ml.harness.models:Queue"), Queue)
    for name, sentence in (
        ("heap", "there is no model 'heap'; use one of register"),
        ("no_such_module:Model", "cannot be imported"),
        ("json:Model", "has no 'Model'"),
        ("json:JSONEncoder", "is no model: a model has init"),
    ):
        with pytest.raises(UsageError, match=sentence):
            model_named(name)


MINE = """
from beside import START


class Mine:
    def init(self):
        return START

    def step(self, state, call):
        return [state]


def create():
    return Mine()


def broken():
    raise ValueError("not today")
"""


def test_a_model_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "json.py").write_text(MINE)  # the name of a standard module
    (tmp_path / "beside.py").write_text("START = 7\n")
    (tmp_path / "wrong.py").write_text("def f(:\n")
    for name in ("Mine", "create"):
        assert model_named(f"{tmp_path}/json.py:{name}").init() == 7
    for name, sentence in (
        ("absent.py:Mine", "there is no file .*absent.py to have a model"),
        ("wrong.py:Mine", r"cannot be imported: SyntaxError: .*\(wrong.py, line 1\)$"),
        ("json.py:None_", "has no 'None_' to be a model"),
        ("json.py:broken", r"makes no model: it raised ValueError: not today \(.*json.py:\d+\)$"),
    ):
        with pytest.raises(UsageError, match=sentence):
            model_named(f"{tmp_path}/{name}")
    found = PathFinder.find_spec("json")
    assert found is not None and found.origin == json.__file__


@pytest.mark.parametrize(
    "model, rows, message",
    [
        ("counter", [("add", ("a",))], "add('a'): a counter takes a number, not 'a'"),
        (
            "priority-queue",
            [("insert", ("a",)), ("insert", (1,))],
            "insert(1): the values of a priority queue can be compared with one another; 'a'",
        ),
        (
            "map",
            [("put", ("key", 1)), ("append", ("key", "x"))],
            "append() of 'x' to 1: a text takes a text, and a list a list",
        ),
    ],
)
def test_a_value_that_a_model_cannot_have_is_named(
    model: str, rows: list[tuple[str, tuple[object, ...]]], message: str
) -> None:
    history = history_of(
        [Operation(0, *row, None, 2 * at, 2 * at + 1) for at, row in enumerate(rows)]
    )
    for judge in (check, lambda history, model: check_model(model, history)):
        with pytest.raises(UsageError, match=re.escape(message)):
            judge(history, MODELS[model]())


def test_what_is_no_model_and_no_history_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"a model is an object; Register is a class: Register\(\)"
    ):
        check(SOME, Register)
    with pytest.raises(ModelError, match=r"a model has a method init\(\); str has none"):
        check(SOME, "register")
    other: Any = [Operation(0, "write", (1,), None, 0, 1)]
    with pytest.raises(
        UsageError, match=r"takes a History, which history_of\(\) and .*, not a list"
    ):
        check(other, Register())
