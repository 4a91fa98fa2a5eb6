"""The searches, compared with the definition and with each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, ModelChecker, Options, Watch, check
from pulsar_ml.harness.models import MODELS
from tests.linearize.histories import SHAPES, histories
from tests.linearize.oracle import (
    PROGRAM_ORDER,
    QUIESCENCE,
    REAL_TIME,
    allowed,
    oracle,
    relation,
    respects,
)

NAMES = sorted(SHAPES)
PLAIN = Options(monitors=False, partition=False, natively=False)


def answer(legal: bool) -> str:
    return LEGAL if legal else ILLEGAL


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_that_of_the_definition(name: str) -> None:
    seen: set[str] = set()

    @settings(max_examples=150, deadline=None, derandomize=True, database=None)
    @given(histories(SHAPES[name]))
    def run(history: History) -> None:
        model = MODELS[name]()
        expected = answer(oracle(history, model))
        for options in (Options(), PLAIN):
            verdict = check(history, model, options=options)
            assert verdict.answer == expected
            if verdict.linearization is not None:
                explains(history, model, verdict.linearization)
        assert watched(history, model) == expected
        seen.add(expected)

    run()
    assert seen == {LEGAL, ILLEGAL}


def explains(history: History, model: Any, order: tuple[int, ...]) -> None:
    assert len(set(order)) == len(order)
    assert set(np.flatnonzero(history.records["ending"] == 0).tolist()) <= set(order)
    assert respects(order, relation(history, REAL_TIME))
    assert allowed(history, model, order)


def watched(history: History, model: Any) -> str:
    checker = ModelChecker(model, history.signatures, history.values)
    watch = Watch(checker.native, state=checker.start)
    records = history.records[np.argsort(history.records["invoked"], kind="stable")]
    half = len(records) // 2
    watch.feed(np.ascontiguousarray(records[:half]))
    watch.feed(np.ascontiguousarray(records[half:]))
    return (LEGAL, ILLEGAL)[watch.finish()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("criterion", [PROGRAM_ORDER, QUIESCENCE])
def test_the_weaker_criteria_are_those_of_the_definition(name: str, criterion: int) -> None:
    seen: set[bool] = set()

    @settings(max_examples=80, deadline=None, derandomize=True, database=None)
    @given(histories(SHAPES[name], most=5))
    def run(history: History) -> None:
        model = MODELS[name]()
        checker = ModelChecker(model, history.signatures, history.values)
        found = (
            checker.native.search(history.records, state=checker.start, criterion=criterion)[0] == 0
        )
        assert found == oracle(history, model, criterion)
        if oracle(history, model, REAL_TIME):
            assert found
        seen.add(found)

    run()
    assert seen == {True, False}
