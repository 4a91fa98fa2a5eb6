"""Explanations in the user's words: states, strings, threads, lines, and the blocked operation."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_ml.harness.histories.generated import Cell, simulate
from pulsar_ml.harness.histories.history import Operation, history_of
from pulsar_ml.harness.linearize import ILLEGAL, Options, check
from pulsar_ml.harness.linearize.picture import describe_verdict
from pulsar_ml.harness.models import MODELS, KeyValueMap, Lock, Queue, Register
from pulsar_ml.harness.models.model import Keyed, describe_state
from tests.linearize.fuzz import monitors_first


@pytest.mark.parametrize(
    ("model", "calls", "text"),
    [
        ("map", [("put", ("k", "v"), None), ("get", ("k",), "w")], "{'k': 'v'}"),
        ("set", [("add", ("b",), True), ("read", (), ("c",))], "{'b'}"),
        ("multiset", [("add", (3,), None), ("count", (3,), 2)], "{3: 1}"),
        ("queue", [("enqueue", ("a",), None), ("dequeue", (), "b")], "['a']"),
        ("priority-queue", [("insert", (2,), None), ("delete_min", (), 1)], "[2]"),
        ("lock", [("acquire", (), None), ("acquire", (), None)], "taken"),
        ("counter", [("increment", (), None), ("read", (), 5)], "1"),
        ("register", [("write", ("1",), None), ("read", (), 1)], "'1'"),
    ],
)
def test_states_and_strings_are_shown_as_the_model_has_them(
    model: str, calls: list[tuple[str, tuple[Any, ...], Any]], text: str
) -> None:
    history = history_of(
        Operation(f"client {at}", *call, 2 * at, 2 * at + 1, number=10 + at)
        for at, call in enumerate(calls)
    )
    shown = describe_verdict(history, check(history, MODELS[model]()), MODELS[model]())
    assert f"\n  it leads to the state {text}\n" in shown
    assert "then nothing leads to operation 1 (line 11), " in shown
    assert "\nthread client 1  " in shown


def test_states_of_keys_and_of_other_models() -> None:
    model = Keyed(Queue())
    (state,) = model.step(model.init(), history_of(
        [Operation(0, "enqueue", ("k", "a"), None, 0, 1)]
    ).call(0))  # fmt: skip
    assert describe_state(model, state) == "{'k': ['a']}"
    assert describe_state(Lock(), -1) == "free"
    assert describe_state(KeyValueMap(), frozenset()) == "{}"
    assert describe_state(object(), ("as", 1)) == "('as', 1)"


def test_the_blocked_operation_is_the_same_for_every_search() -> None:
    """The one until just before whose return the history is legal, as its definition says."""
    for seed in range(6):
        history = simulate(Cell(1_000_000), seed=seed, clients=4, operations=60, stale_at=0.5)
        found = {
            check(history, Register(), options=Options(natively=natively, weaker=False)).blocked
            for natively in (True, False)
        }
        with monitors_first():
            verdict = check(history, Register(), options=Options(weaker=False))
        if verdict.answer != ILLEGAL:
            continue
        assert verdict.method == "monitor"
        assert {verdict.blocked} == found
        before = history.records["returned"] < history.records["returned"][verdict.blocked]
        assert set(before.nonzero()[0].tolist()) <= set(verdict.prefix)
        return
    raise AssertionError("no seed gives an illegal history")
