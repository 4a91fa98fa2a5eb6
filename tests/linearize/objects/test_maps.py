"""The native search for maps, compared with the definition and with the general search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from pulsar_ml.harness.histories.history import History, Operation, history_of
from pulsar_ml.harness.histories.published import key_value
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, UNKNOWN, Options, check
from pulsar_ml.harness.linearize.shipped import maps_for
from pulsar_ml.harness.models import KeyValueMap
from tests.linearize.histories import histories
from tests.linearize.oracle import (
    REAL_TIME,
    allowed,
    disagreements,
    examples,
    oracle,
    relation,
    respects,
)
from tests.linearize.test_ahead import strings

ASKING = Options(natively=False, explain=False)
QUICK = Options(explain=False)
MEMORY = 1 << 26


def searched(history: History, **more: Any) -> tuple[int, list[int]]:
    maps = maps_for(KeyValueMap(), history, MEMORY)
    assert maps is not None
    return maps.search(history.records, **more)[:2]


@st.composite
def answered(draw: Any, most: int = 8) -> History:
    """Calls on two keys with the results of an order, except perhaps one of them."""
    clock = [0, 0, 0]
    calls = []
    for _ in range(draw(st.integers(3, most))):
        thread = draw(st.integers(0, 2))
        name = draw(st.sampled_from(["get", "get", "append", "put", "put", "delete"]))
        inputs = (draw(st.sampled_from("kkkl")), draw(st.sampled_from("ab")))
        invoked = clock[thread] + draw(st.integers(1, 3))
        clock[thread] = invoked + draw(st.integers(0, 5))
        moment = draw(st.integers(invoked, clock[thread]))
        opened = draw(st.integers(0, 7)) == 0
        calls.append((moment, thread, name, inputs, invoked, clock[thread], opened))
    held: dict[str, str] = {}
    operations = []
    for number, (_, thread, name, (key, value), invoked, returned, opened) in enumerate(
        sorted(calls)
    ):
        result = held.get(key) if name == "get" else None
        if name == "delete":
            held.pop(key, None)
        elif name != "get":
            held[key] = (held.get(key, "") if name == "append" else "") + value
        if name == "get" and draw(st.integers(0, 5)) == 0:
            result = draw(st.sampled_from([None, "a", "b", "ab", "ba"]))
        operations.append(
            Operation(
                thread + (10 + number) * opened, name,
                (key, value) if name in ("append", "put") else (key,), result, invoked,
                None if opened else returned,
            )
        )  # fmt: skip
    return history_of(operations)


def small_histories() -> list[History]:
    return examples(st.one_of(answered(), answered(), histories(strings, most=5)), 500)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("together", [False, True])
def test_the_answer_is_that_of_the_definition(together: bool, ahead: bool) -> None:
    def answer(history: History) -> bool:
        found, way = searched(history, together=together, ahead=ahead)
        if found == 0:
            assert len(set(way)) == len(way)
            assert set(np.flatnonzero(history.records["ending"] == 0).tolist()) <= set(way)
            assert respects(way, relation(history, REAL_TIME))
            assert allowed(history, KeyValueMap(), way)
        return found == 0

    wrong, legal, illegal = disagreements(answer, KeyValueMap(), small_histories())
    assert wrong == 0
    assert min(legal, illegal) > 60


def test_the_part_of_a_read_that_is_probably_wrong_is_a_guess() -> None:
    """It is often the illegal one, and where all parts are legal they are found to be."""
    seen: Counter[tuple[bool, bool]] = Counter()
    for history in examples(answered(most=25), 400):
        maps = maps_for(KeyValueMap(), history, MEMORY)
        assert maps is not None
        legal = maps.search(history.records)[0] == 0
        assert legal == (check(history, KeyValueMap(), options=ASKING).answer == LEGAL)
        if maps.likely >= 0:
            suspects = maps.calls_of_part(history.records)
            likely = maps.pieces(history.records)[maps.likely].tolist()
            seen[legal, suspects is not None and suspects.tolist() == likely] += 1
    assert seen[False, True] > 40 and seen[True, False] > 5, seen
    assert seen[False, False] <= seen[False, True] / 10, seen


def texts_read(*calls: tuple[Any, ...]) -> History:
    """Make one call after the other, of which a read has its result behind its key."""
    return history_of(
        Operation(
            0, name, (key,) if name == "get" else (key, value), value if name == "get" else None,
            2 * at, 2 * at + 1,
        )
        for at, (name, key, value) in enumerate(calls)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("calls", "likely", "legal"),
    [
        ([("put", "l", "b"), ("put", "k", "a"), ("get", "k", "b")], 1, False),
        ([("put", "l", "b"), ("put", "k", "a"), ("get", "k", "a"), ("append", "k", "b"),
          ("get", "k", "ab"), ("get", "k", "a")], 1, False),
        ([("put", "l", "b"), ("put", "k", "a"), ("get", "k", "a"), ("put", "k", "ab"),
          ("get", "k", "ab"), ("put", "k", "a"), ("get", "k", "a")], 1, True),
        ([("put", "l", "b"), ("put", "k", "a"), ("get", "k", "a"), ("get", "l", "b")], -1, True),
        ([("put", "l", "b"), ("put", "l", "c"), ("put", "k", "a"), ("get", "l", "b")], -1, False),
    ],
    ids=["never put", "older", "put again", "legal", "overwritten"],
)  # fmt: skip
def test_which_part_is_searched_first(
    calls: list[tuple[Any, ...]], likely: int, legal: bool
) -> None:
    """A text that comes again looks older; one that was overwritten is not looked for."""
    history = texts_read(*calls)
    maps = maps_for(KeyValueMap(), history, MEMORY)
    assert maps is not None
    assert (maps.search(history.records)[0] == 0) == legal
    assert maps.likely == likely


def test_no_part_of_many_calls_is_guessed() -> None:
    """The look at the calls would take longer than it saves."""
    for puts, likely in ((4_000, 1), (4_200, -1)):
        calls = [("put", "l", "b")] * puts + [("put", "k", "a"), ("get", "k", "b")]
        history = texts_read(*calls)
        maps = maps_for(KeyValueMap(), history, MEMORY)
        assert maps is not None
        assert maps.search(history.records)[0] != 0
        assert maps.likely == likely


def with_other_steps(steps: dict[str, int]) -> Callable[[History], bool]:
    def answer(history: History) -> bool:
        from pulsar_ml.harness.linearize.cells._maps import Maps

        kinds = [steps[signature.name] for signature in history.signatures]
        return Maps(kinds, history.values).search(history.records)[0] == 0

    return answer


@pytest.mark.parametrize(
    "answer",
    [
        with_other_steps({"get": 0, "put": 1, "append": 1, "delete": 3}),
        with_other_steps({"get": 0, "put": 2, "append": 2, "delete": 3}),
    ],
    ids=["an append that puts", "a put that appends"],
)
def test_other_steps_are_found_out(answer: Callable[[History], bool]) -> None:
    assert disagreements(answer, KeyValueMap(), small_histories())[0] > 5


def test_native_steps_and_the_model_agree_where_the_definition_cannot_go() -> None:
    answers = []
    for seed in range(30):
        history = key_value(seed, clients=4, operations=80, keys=3, broken=seed % 2 > 0)
        for together in (False, True):
            options = Options(explain=False, natively=False, partition=not together)
            native = Options(explain=False, partition=not together)
            answer = check(history, KeyValueMap(), options=options).answer
            assert check(history, KeyValueMap(), options=native).answer == answer
            answers.append(answer)
    assert min(answers.count(LEGAL), answers.count(ILLEGAL)) > 5


@pytest.mark.parametrize("broken", [False, True])
def test_what_nobody_will_see_is_searched_once(broken: bool) -> None:
    for seed in (2, 8):
        history = key_value(seed, clients=50, operations=1_300, broken=broken)
        verdict = check(history, KeyValueMap(), options=QUICK)
        assert verdict.answer == (ILLEGAL if broken else LEGAL)
        assert verdict.steps < 20 * 1_300


def test_orders_of_appends_before_a_put_are_not_told_apart() -> None:
    """The orders of eight appends lead to a hundred thousand texts, which no call observes."""
    rows = [Operation(thread, "append", ("k", f"{thread}."), None, 0, 10) for thread in range(8)]
    rows += [
        Operation(20, "put", ("k", "new"), None, 5, 30),
        Operation(21, "get", ("k",), "new and more", 40, 50),
    ]
    verdict = check(history_of(rows), KeyValueMap(), options=QUICK)
    assert verdict.answer == ILLEGAL
    assert verdict.steps < 5_000


def get(value: str, invoked: int, returned: int) -> Operation:
    return Operation(invoked * 100 + returned, "get", ("k",), value, invoked, returned)


def put(value: str, invoked: int, returned: int) -> Operation:
    return Operation(invoked * 100 + returned, "put", ("k", value), None, invoked, returned)


@pytest.mark.parametrize(
    ("reads", "answer"),
    [
        ([get("a", 20, 30)], LEGAL),
        ([get("a", 21, 30)], ILLEGAL),
        ([get("b", 25, 28), get("a", 15, 30)], LEGAL),
        ([get("b", 25, 28), get("b", 26, 29), get("a", 20, 30)], LEGAL),
        ([get("b", 25, 28), get("a", 26, 30)], ILLEGAL),
    ],
)
def test_a_state_is_not_lost_while_a_get_that_began_may_still_answer_it(
    reads: list[Operation], answer: str
) -> None:
    """The put of b must come before its get returns at 20; calls begun by then may precede it."""
    history = history_of([put("a", 0, 5), get("b", 10, 20), put("b", 12, 40), *reads])
    assert oracle(history, KeyValueMap()) == (answer == LEGAL)
    assert check(history, KeyValueMap(), options=QUICK).answer == answer


@pytest.mark.parametrize(("begins", "answer"), [(20, LEGAL), (21, ILLEGAL)])
def test_a_put_that_begins_as_a_get_returns_may_come_before_it(begins: int, answer: str) -> None:
    history = history_of([put("a", 0, 5), get("b", 10, 20), put("b", begins, 40)])
    assert check(history, KeyValueMap(), options=QUICK).answer == answer


def test_steps_are_those_of_all_keys() -> None:
    rows = []
    for at in range(0, 200, 2):
        key = str(at // 20)
        rows += [row("put", (key, "v"), None, at), row("get", (key,), "v", at + 1)]
    for most, answer in ((100, UNKNOWN), (1_000, LEGAL)):
        verdict = check(
            history_of(rows), KeyValueMap(), options=Options(explain=False, most_steps=most)
        )
        assert verdict.answer == answer


def row(name: str, arguments: tuple[Any, ...], result: Any, at: int) -> Operation:
    return Operation(0, name, arguments, result, 10 * at, 10 * at + 5)


def test_the_illegal_key_is_named_and_explained() -> None:
    history = history_of(
        [
            row("put", ("a", "x"), None, 0),
            row("put", (1, "y"), None, 1),
            row("append", (True, "é"), None, 2),
            row("get", (1.0,), "yé", 3),
            row("get", (1,), "y", 4),
        ]
    )
    quick = check(history, KeyValueMap(), options=QUICK)
    assert (quick.answer, quick.key) == (ILLEGAL, 1)
    explained = check(history, KeyValueMap())
    assert (explained.answer, explained.key, explained.blocked) == (ILLEGAL, 1, 4)
    assert set(explained.core) <= {1, 2, 4}


@pytest.mark.parametrize(
    "values",
    [("a", ""), ("", "b"), ("\ud800", "b"), ((1,), (2,)), (3, 4), ("é", "ß")],
    ids=["empty", "to empty", "no text", "lists", "numbers", "beyond ASCII"],
)
def test_every_kind_of_value_has_an_answer(values: tuple[Any, Any]) -> None:
    first, second = values
    rows = [
        row("put", ("k", first), None, 0), row("append", ("k", second), None, 1),
        row("get", ("k",), first + second, 2),
        row("delete", ("k",), None, 3), row("get", ("k",), None, 4),
        row("append", ("k", second), None, 5),
        row("get", ("k",), second, 6),
    ]  # fmt: skip
    wrong = [*rows[:-1], row("get", ("k",), first + first, 6)]
    for calls, expected in ((rows, LEGAL), (wrong, ILLEGAL)):
        history = history_of(calls)
        assert check(history, KeyValueMap(), options=QUICK).answer == expected
        assert check(history, KeyValueMap(), options=ASKING).answer == expected


def test_steps_and_memory_are_bounded() -> None:
    history = key_value(3, clients=50, operations=650)
    few = Options(explain=False, most_steps=200)
    assert check(history, KeyValueMap(), options=few).answer == UNKNOWN
    maps = maps_for(KeyValueMap(), history, 20_000)
    assert maps is not None
    assert maps.search(history.records)[0] == 3
