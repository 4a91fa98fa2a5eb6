"""Looking ahead to the next reads changes the duration of a search, and never its answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_ml.harness.histories.history import Call, History
from pulsar_ml.harness.histories.published import key_value
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, UNKNOWN, Options, check
from pulsar_ml.harness.models import KeyValueMap
from tests.linearize.histories import NOTHING, histories, one
from tests.linearize.oracle import oracle

KEYS = st.sampled_from(["k", "l"])
ADDED = st.sampled_from(["a", "b"])
READ = st.sampled_from([None, "a", "b", "aa", "ab", "ba", "bb", "aba"])
QUICK = Options(explain=False, most_steps=20_000, natively=False)


class Blind:
    """A key-value map without leads()."""

    def __init__(self) -> None:
        self.map = KeyValueMap()
        self.init = self.map.init
        self.partition = self.map.partition
        self.pure = self.map.pure

    def step(self, state: Any, call: Call) -> Iterable[Any]:
        return self.map.step(state, call)


def strings(draw: Any) -> tuple[str, tuple[Any, ...], Any]:
    return one(
        draw,
        ("get", (KEYS,), READ),
        ("put", (KEYS, ADDED), NOTHING),
        ("append", (KEYS, ADDED), NOTHING),
        ("delete", (KEYS,), NOTHING),
    )


@pytest.mark.parametrize("partition", [True, False])
def test_the_answer_stays_that_of_the_definition(partition: bool) -> None:
    seen: set[str] = set()
    options = Options(partition=partition, explain=False, natively=False)

    @settings(max_examples=120, deadline=None, derandomize=True, database=None)
    @given(histories(strings, most=6))
    def run(history: History) -> None:
        expected = LEGAL if oracle(history, KeyValueMap()) else ILLEGAL
        assert check(history, KeyValueMap(), options=options).answer == expected
        assert check(history, Blind(), options=options).answer == expected
        seen.add(expected)

    run()
    assert seen == {LEGAL, ILLEGAL}


def test_a_search_that_looks_ahead_answers_what_one_without_cannot() -> None:
    history = key_value(3, clients=50, operations=650)
    assert check(history, KeyValueMap(), options=QUICK).answer == LEGAL
    assert check(history, Blind(), options=QUICK).answer == UNKNOWN


@pytest.mark.parametrize("together", [False, True])
def test_illegal_histories_stay_illegal(together: bool) -> None:
    options = Options(explain=False, partition=not together, most_steps=500_000, natively=False)
    answers = [
        check(
            key_value(seed, clients=5, operations=120, broken=broken),
            KeyValueMap(),
            options=options,
        ).answer
        for broken in (False, True)
        for seed in range(6)
    ]
    assert answers[:6] == [LEGAL] * 6
    assert ILLEGAL in answers[6:]


class Liar(KeyValueMap):
    """A map whose leads() says that no call ever becomes legal."""

    def leads(self, state: Any, call: Call) -> bool:
        return False


def test_what_the_model_says_of_the_future_is_believed() -> None:
    history = key_value(3, clients=2, operations=30)
    assert check(history, KeyValueMap(), options=QUICK).answer == LEGAL
    assert check(history, Liar(), options=QUICK).answer == ILLEGAL
