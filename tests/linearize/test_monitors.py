"""The monitors, compared with the definition on small histories and with searches on large ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from benchmarks.peers.porcupine.histories import CasCell
from pulsar_ml.harness.histories.generated import Cell, Line, Members, simulate
from pulsar_ml.harness.histories.history import Call, History, Operation, history_of
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, UNKNOWN, Options, check
from pulsar_ml.harness.linearize.monitors import judge
from pulsar_ml.harness.models import MODELS, CasRegister
from tests.linearize.fuzz import monitors_first
from tests.linearize.histories import (
    distinct,
    distinct_cell,
    distinct_exchanges,
    distinct_members,
)
from tests.linearize.oracle import oracle

STRATEGIES = {
    "register": distinct_cell(),
    "cas-register": distinct_exchanges(),
    "queue": distinct("enqueue", "dequeue"),
    "stack": distinct("push", "pop"),
    "set": distinct_members(),
    "priority-queue": distinct("insert", "delete_min"),
    "multiset": distinct_members(),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_judgement_is_that_of_the_definition(name: str) -> None:
    seen: set[bool] = set()

    @settings(max_examples=500, deadline=None, derandomize=True, database=None)
    @given(STRATEGIES[name])
    def run(history: History) -> None:
        model = MODELS[name]()
        judgement = judge(model.monitor, history, model)
        if judgement is None:
            return
        assert judgement.legal == oracle(history, model)
        if not judgement.legal:
            assert not oracle(history.select(judgement.witness), model)
        seen.add(judgement.legal)

    run()
    assert seen == {True, False}


SYSTEMS: dict[str, Any] = {
    "register": lambda: Cell(distinct=True),
    "cas-register": lambda: CasCell(distinct=True),
    "queue": Line,
    "stack": lambda: Line(stack=True),
    "set": lambda: Members(400),
}


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize(("clients", "operations"), [(2, 200), (4, 40)])
def test_monitor_and_search_agree_on_long_histories(
    name: str, clients: int, operations: int
) -> None:
    seen = set()
    for seed in range(16):
        history = simulate(
            SYSTEMS[name](), seed=seed, clients=clients, operations=operations,
            stale_at=0.4 if seed % 2 else None,
        )  # fmt: skip
        judgement = judge(MODELS[name]().monitor, history, MODELS[name]())
        if judgement is None:
            assert name in ("set", "cas-register")  # repeated values; an exchange failed
            continue
        verdict = check(
            history,
            MODELS[name](),
            options=Options(monitors=False, explain=False, most_steps=200_000),
        )
        if verdict.answer == UNKNOWN:
            continue
        assert verdict.answer == (LEGAL if judgement.legal else ILLEGAL), seed
        seen.add(verdict.answer)
    assert seen == {LEGAL, ILLEGAL} or name == "set"


@pytest.mark.parametrize("name", ["queue", "stack"])
def test_a_long_history_with_one_lie_is_illegal_and_its_core_small(name: str) -> None:
    history = simulate(
        Line(stack=name == "stack"), seed=3, clients=4, operations=20_000, stale_at=0.5
    )
    verdict = check(history, MODELS[name]())
    assert (verdict.answer, verdict.method) == (ILLEGAL, "monitor")
    assert 2 <= len(verdict.core) <= 8
    assert not oracle(history.select(verdict.core), MODELS[name]())
    honest = simulate(Line(stack=name == "stack"), seed=3, clients=4, operations=20_000)
    assert check(honest, MODELS[name]()).answer == LEGAL


@pytest.mark.parametrize(
    ("name", "operations"),
    [
        ("queue", [("enqueue", (1,), None), ("enqueue", (1,), None)]),
        ("queue", [("dequeue", (), "open")]),
        ("register", [("write", (1,), None), ("write", (1,), None)]),
        ("set", [("add", (1,), True), ("remove", (1,), True), ("add", (1,), True)]),
        ("set", [("read", (), (1,))]),
        ("register", [("write", (1,), None), ("write", (1.0,), None)]),
    ],
)
def test_histories_that_do_not_qualify_are_left_to_the_search(
    name: str, operations: list[Any]
) -> None:
    calls = [
        Operation(0, call, arguments, result, 10 * at, None if result == "open" else 10 * at + 5)
        for at, (call, arguments, result) in enumerate(operations)
    ]
    assert judge(name, history_of(calls), MODELS[name]()) is None


def test_the_witness_of_an_overtaking_is_two_values() -> None:
    history = simulate(Line(), seed=1, clients=1, operations=2_000)
    records = history.records.copy()
    takes = np.flatnonzero((records["operation"] == 1) & (records["result"][:, 0] >= 0))
    first, second = takes[10], takes[11]
    records["result"][[first, second]] = records["result"][[second, first]]
    judgement = judge("queue", history.with_records(records), MODELS["queue"]())
    assert judgement is not None and not judgement.legal
    assert len(judgement.witness) == 4 and {first, second} <= set(judgement.witness)


class Renamed(CasRegister):
    """A compare-and-set register under another name."""


class Forgetful(CasRegister):
    """A register that no call can read."""

    def step(self, state: Any, call: Call) -> Iterable[Any]:
        return () if call.name == "read" else super().step(state, call)


def test_a_subclass_with_other_steps_has_no_monitor() -> None:
    history = history_of(
        [
            Operation(0, "cas", (None, 5), True, 0, 1),
            Operation(0, "read", (), 5, 2, 3),
        ]
    )
    with monitors_first():
        verdict = check(history, Renamed())
        assert (verdict.answer, verdict.method) == (LEGAL, "monitor")
        verdict = check(history, Forgetful())
        assert (verdict.answer, verdict.method) == (ILLEGAL, "search")
