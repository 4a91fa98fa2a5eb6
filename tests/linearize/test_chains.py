"""Histories in which any few values are in order, while all of them together are not."""

from __future__ import annotations

import itertools

import pytest

from pulsar_ml.harness.histories.history import Operation
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, Options, check
from pulsar_ml.harness.linearize.monitors import Judgement, judge
from pulsar_ml.harness.models import MODELS
from tests.linearize import chains
from tests.linearize.chains import chain, covered, whole
from tests.linearize.oracle import oracle

Values = list[list[Operation]]
LENGTHS = (2, 3, 4, 6, 9)
QUICK = Options(explain=False)


def shapes(length: int, *, legal: bool) -> dict[str, tuple[str, Values]]:
    """Every shape by its name, with the name of its model."""
    found = {f"{name}, empty": (name, covered(name, length, legal=legal)) for name in
             chains.CONTAINERS}  # fmt: skip
    return {**found, "stack, circle": ("stack", chain(length, legal=legal))}


def answers(name: str, values: Values) -> set[str]:
    """The answers of the monitor, of the search of the kind, and of the search of states."""
    history, model = whole(values), MODELS[name]()
    judgement = judge(name, history, model)
    assert judgement is not None
    compared = chains.compare(name, history)
    assert compared.wrong == []
    found = check(history, model, options=QUICK).answer
    return {LEGAL if judgement.legal else ILLEGAL, compared.answer, found}


@pytest.mark.parametrize("length", LENGTHS)
def test_a_chain_is_illegal_as_a_whole_and_legal_without_any_value(length: int) -> None:
    for name, values in shapes(length, legal=False).values():
        assert answers(name, values) == {ILLEGAL}
        for at in range(len(values)):
            assert answers(name, values[:at] + values[at + 1 :]) == {LEGAL}
    for name, values in shapes(length, legal=True).values():
        assert answers(name, values) == {LEGAL}


def test_a_check_of_pairs_and_triples_does_not_see_them() -> None:
    """The negative control: a monitor of any three values is fooled by chains of four."""
    for name, values in shapes(4, legal=False).values():
        few = itertools.combinations(values, 3)
        assert all(oracle(whole(list(some)), MODELS[name]()) for some in few)
        assert check(whole(values), MODELS[name]()).answer == ILLEGAL


def test_the_core_of_a_chain_has_calls_of_each_value() -> None:
    for title, (name, values) in shapes(4, legal=False).items():
        if title == "stack, empty":
            continue  # without its last pop the chain is illegal by itself
        history = whole(values)
        core = check(history, MODELS[name]()).core
        threads = {int(history.records["thread"][at]) for at in core}
        assert all(threads & {one.thread for one in calls} for calls in values)


def test_searches_and_monitors_agree_on_random_histories() -> None:
    failures, counts = chains.run(900, seed=5)
    assert failures == []
    for name, distinct in itertools.product(chains.CONTAINERS, (True, False)):
        assert counts[name, distinct, LEGAL] and counts[name, distinct, ILLEGAL]


def test_a_monitor_that_finds_everything_legal_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "judge", lambda *_: Judgement(True))
    failures, _ = chains.run(60, seed=5)
    assert any("by the monitor" in one for one in failures)
