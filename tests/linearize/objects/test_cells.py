"""The native search for registers, compared with the definition and with the general search."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pulsar_ml.harness.histories.generated import Cell, simulate
from pulsar_ml.harness.histories.history import (
    FLAG,
    NEVER,
    NONE,
    PENDING,
    WORD,
    History,
    Operation,
    Signature,
    history_of,
)
from pulsar_ml.harness.histories.published import etcd_register
from pulsar_ml.harness.linearize import ANSWERS, ILLEGAL, LEGAL, UNKNOWN, Options, check
from pulsar_ml.harness.linearize.shipped import blocked_call, cells_for
from pulsar_ml.harness.models import CasRegister, Register
from pulsar_ml.harness.models.model import Keyed
from tests.linearize.histories import MAYBE, NOTHING, SMALL, TRUTH, one
from tests.linearize.oracle import (
    ASKING,
    REAL_TIME,
    allowed,
    answer_of_both,
    disagreements,
    examples,
    oracle,
    relation,
    respects,
)

QUICK = Options(explain=False, most_steps=1_000_000)


@st.composite
def crowded(draw: Any, *, most: int = 7) -> History:
    """A hard history: few values, long intervals, and up to a third of the calls open."""
    clock = [0, 0, 0, 0]
    operations = []
    lasts = draw(st.sampled_from([2, 6, 12]))
    crashes = draw(st.sampled_from([0, 1, 3]))
    for number in range(draw(st.integers(1, most))):
        thread = draw(st.integers(0, 3))
        name, arguments, result = one(
            draw, ("read", (), MAYBE), ("write", (SMALL,), NOTHING), ("cas", (SMALL, SMALL), TRUTH)
        )
        invoked = clock[thread] + draw(st.integers(1, 4))
        clock[thread] = invoked + draw(st.integers(0, lasts))
        returned: int | None = clock[thread]
        if draw(st.integers(0, 9)) < crashes:
            returned, thread = None, 4 + number
        operations.append(Operation(thread, name, arguments, result, invoked, returned))
    return history_of(operations)


def searched(history: History, **more: Any) -> tuple[int, list[int]]:
    cells = cells_for(CasRegister(), history)
    assert cells is not None
    return cells.search(history.records, **more)[:2]


def test_the_answer_is_that_of_the_definition() -> None:
    def answer(history: History) -> bool:
        found, way = searched(history)
        if found == 0:
            assert len(set(way)) == len(way)
            assert set(np.flatnonzero(history.records["ending"] == 0).tolist()) <= set(way)
            assert respects(way, relation(history, REAL_TIME))
            assert allowed(history, CasRegister(), way)
        return found == 0

    wrong, legal, illegal = disagreements(answer, CasRegister(), examples(crowded(), 800))
    assert wrong == 0
    assert min(legal, illegal) > 60


def without_open_calls(history: History) -> bool:
    ended = np.flatnonzero(history.records["ending"] == 0).astype(np.int32)
    return searched(history, chosen=ended)[0] == 0


def with_every_call_open(history: History) -> bool:
    records = history.records.copy()
    records["ending"], records["returned"] = PENDING, NEVER
    return searched(history.with_records(records))[0] == 0


def with_any_write_at_any_time(history: History) -> bool:
    names = [signature.name for signature in history.signatures]
    writes = np.flatnonzero([names[at] == "write" for at in history.records["operation"]])
    return searched(history, unconstrained=writes.astype(np.int32))[0] == 0


@pytest.mark.parametrize(
    "answer", [without_open_calls, with_every_call_open, with_any_write_at_any_time]
)
def test_a_search_with_other_rules_is_found_out(answer: Callable[[History], bool]) -> None:
    assert disagreements(answer, CasRegister(), examples(crowded(), 800))[0] > 5


def answered(draw: random.Random) -> History:
    """Up to sixteen calls on few values with the results of an order; one is often changed."""
    threads, values = draw.choice((3, 4, 5)), draw.choice((2, 3, 4))
    lasts, crashes = draw.choice((3, 8, 16)), draw.choice((0.0, 0.1, 0.3))
    names = draw.choice(
        (("read", "write"), ("read", "write", "cas"), ("read", "read", "write", "cas", "cas"))
    )
    clock = [0] * threads
    calls = []
    for number in range(draw.randint(6, 16)):
        thread = draw.randrange(threads)
        invoked = clock[thread] + draw.randint(1, 3)
        clock[thread] = invoked + draw.randint(0, lasts)
        name = draw.choice(names)
        count = {"read": 0, "write": 1, "cas": 2}[name]
        arguments = tuple(draw.randrange(values) for _ in range(count))
        opened = draw.random() < crashes
        moment = invoked + draw.random() * (40 if opened else clock[thread] - invoked)
        who = 100 + number if opened else thread
        calls.append((moment, who, name, arguments, invoked, None if opened else clock[thread]))
    held: int | None = None
    lie = draw.randrange(2 * len(calls))
    operations = []
    for number, (_, thread, name, arguments, invoked, returned) in enumerate(sorted(calls)):
        result: Any = None
        if name == "read":
            result = draw.choice((None, *range(values))) if number == lie else held
        elif name == "write":
            held = arguments[0]
        else:
            result = (held == arguments[0]) != (number == lie)
            held = arguments[1] if held == arguments[0] else held
        operations.append(Operation(thread, name, arguments, result, invoked, returned))
    return history_of(operations)


def test_both_searches_agree_where_the_definition_cannot_go() -> None:
    draw = random.Random(3)
    histories = (answered(draw) for _ in range(3_000))
    answers = [answer_of_both(history, CasRegister(), QUICK) for history in histories]
    assert min(answers.count(LEGAL), answers.count(ILLEGAL)) > 400
    for seed in range(40):
        history = etcd_register(seed, operations=40, broken=seed % 3 > 0)
        answer_of_both(history, CasRegister(), QUICK)


def test_a_write_of_what_is_there_may_have_to_come_before_an_exchange() -> None:
    """Behind the exchange a call would see it, and before the last write it had not begun."""
    history = history_of(
        [
            Operation(0, "write", (1,), None, 11, 12),
            Operation(0, "read", (), 1, 18, 22),
            Operation(1, "cas", (1, 2), True, 21, 25),
            Operation(0, "write", (1,), None, 23, 29),
            Operation(1, "cas", (2, 1), True, 31, 38),
        ]
    )
    assert check(history, CasRegister(), options=QUICK).linearization == (0, 1, 3, 2, 4)


def test_it_answers_what_the_search_that_asks_does_not() -> None:
    open_calls = etcd_register(38, operations=170, broken=True)
    clients = simulate(Cell(100), seed=2, clients=50, operations=170, busy=1.0)
    few = Options(explain=False, monitors=False, natively=False, most_steps=100_000)
    for history, model in ((open_calls, CasRegister()), (clients, Register())):
        assert check(history, model, options=QUICK).answer in (LEGAL, ILLEGAL)
        assert check(history, model, options=few).answer == UNKNOWN


@st.composite
def illegal_ones(draw: Any) -> History:
    history: History = draw(crowded().filter(lambda one: not oracle(one, CasRegister())))
    return history


def test_the_blocked_call_and_the_longest_order_are_what_they_say() -> None:
    @settings(max_examples=120, deadline=None, derandomize=True, database=None)
    @given(illegal_ones())
    def run(history: History) -> None:
        cells = cells_for(CasRegister(), history)
        assert cells is not None

        def search(records: NDArray[np.void]) -> tuple[str, list[int]]:
            answer, way, _, _ = cells.search(records, most_steps=10_000)
            return ANSWERS[answer], way

        blocked, way = blocked_call(search, history.records)
        returned, invoked = history.records["returned"], history.records["invoked"]
        ended = history.records["ending"] == 0
        earlier = np.flatnonzero(ended & (returned < returned[blocked]))
        assert set(earlier.tolist()) <= set(way)
        assert blocked not in way
        assert respects(way, relation(history, REAL_TIME))
        assert allowed(history, CasRegister(), way)
        # The calls that began before the return of the blocked call are illegal by themselves.
        assert not oracle(
            history.select(np.flatnonzero(invoked <= returned[blocked])), CasRegister()
        )

    run()


@pytest.mark.parametrize("name", ["write", "cas"])
def test_loose_calls_may_happen_at_any_time_and_again(name: str) -> None:
    """Like as many open copies as there are calls, begun before all other calls."""
    seen = set()

    @settings(max_examples=100, deadline=None, derandomize=True, database=None)
    @given(crowded(most=4), st.integers(0, 2), st.integers(0, 2))
    def run(history: History, old: int, new: int) -> None:
        arguments = (old,) if name == "write" else (old, new)
        operations = [
            Operation(
                int(record["thread"]), str(call.name), call.arguments, call.result,
                int(record["invoked"]), None if record["ending"] else int(record["returned"]),
            )
            for record, call in zip(
                history.records, map(history.call, range(len(history))), strict=True
            )
        ]  # fmt: skip
        copies = [
            Operation(100 + copy, name, arguments, True, -1, None)
            for copy in range(len(operations))
        ]
        expected = oracle(history_of([*operations, *copies]), CasRegister())
        with_one = history_of([*operations, Operation(100, name, arguments, True, -1, 0)])
        last = np.array([len(operations)], np.int32)
        chosen = np.arange(len(operations), dtype=np.int32)
        assert (searched(with_one, chosen=chosen, unconstrained=last)[0] == 0) == expected
        seen.add(expected)

    run()
    assert seen == {True, False}


def test_words_of_native_subjects_are_read_as_values_are() -> None:
    signatures = (
        Signature("read", 0, WORD),
        Signature("write", 1, NONE),
        Signature("cas", 2, FLAG),
    )
    for seed in range(20):
        sample = etcd_register(seed, operations=60, broken=seed % 2 > 0)
        records = sample.records.copy()
        codes = {"read": 0, "write": 1, "cas": 2}
        records["operation"] = [codes[sample.call(index).name] for index in range(len(sample))]
        for column in ("arguments", "result"):
            for row, place in np.ndindex(records[column].shape):
                word = int(records[column][row, place])
                value = sample.values[word] if word >= 0 else 0
                value = int(value) if isinstance(value, bool) else value
                word = -(2**63) if value is None else int(str(value))
                records[column][row, place] = word
        native = History(signatures, records, source="threads")
        expected = check(sample, CasRegister(), options=QUICK)
        assert check(native, CasRegister(), options=QUICK).answer == expected.answer
        assert check(native, CasRegister(), options=ASKING).answer == expected.answer


def keyed(draw: random.Random) -> History:
    """Two registers, with the key as the first argument, and their calls side by side."""
    operations = []
    for key in ("k", 1):
        sample = answered(draw)
        for record, call in zip(sample.records, map(sample.call, range(len(sample))), strict=True):
            returned = None if record["ending"] else int(record["returned"])
            thread = int(record["thread"]) + (1000 if key == 1 else 0)
            arguments = (key, *call.arguments)
            operations.append(
                Operation(
                    thread, call.name, arguments, call.result, int(record["invoked"]), returned
                )
            )
    return history_of(operations)


def test_a_register_for_each_key_is_searched_so_too() -> None:
    draw = random.Random(2)
    seen = set()
    for _ in range(300):
        history = keyed(draw)
        model = Keyed(CasRegister())
        expected = check(history, model, options=ASKING)
        verdict = check(history, model, options=QUICK)
        together = check(history, model, options=Options(explain=False, partition=False))
        assert verdict.answer == expected.answer == together.answer
        for found in (verdict, expected):  # two keys may be illegal: the cheapest is named
            if found.answer == ILLEGAL:
                calls = [
                    i for i in range(len(history)) if history.call(i).arguments[0] == found.key
                ]
                alone = check(history.select(calls), model, options=ASKING)
                assert alone.answer == ILLEGAL
        if verdict.linearization is not None:
            assert respects(verdict.linearization, relation(history, REAL_TIME))
            assert allowed(history, model, verdict.linearization)
        seen.add((verdict.answer, verdict.key))
    assert seen >= {(LEGAL, None), (ILLEGAL, "k"), (ILLEGAL, 1)}


def test_the_blocked_call_is_one_of_the_illegal_key() -> None:
    history = history_of(
        [
            Operation(0, "write", ("a", 1), None, 0, 5),
            Operation(0, "write", ("b", 1), None, 10, 15),
            Operation(0, "read", ("a",), 1, 20, 25),
            Operation(0, "read", ("b",), 2, 30, 35),
        ]
    )
    verdict = check(history, Keyed(Register()))
    assert (verdict.answer, verdict.key, verdict.blocked, verdict.prefix) == (
        ILLEGAL,
        "b",
        3,
        (1,),
    )
    assert verdict.core == (3,)


def row(name: str, arguments: tuple[Any, ...], result: Any, at: int) -> Operation:
    return Operation(0, name, arguments, result, 10 * at, 10 * at + 5)


def test_equal_values_are_one_value() -> None:
    history = history_of(
        [row("write", (1,), None, 0), row("read", (), True, 1), row("read", (), 1.0, 2)]
    )
    assert cells_for(Register(), history) is not None
    assert check(history, Register()).answer == LEGAL
    assert check(history, Register(), options=ASKING).answer == LEGAL


class Inherited(Register):
    """A register whose reads return any value."""

    def step(self, state: Any, call: Any) -> Any:
        return (state,)


def test_only_the_models_themselves_are_not_asked() -> None:
    history = history_of([row("write", (1,), None, 0), row("read", (), 2, 1)])
    assert check(history, Register()).answer == ILLEGAL
    assert cells_for(Inherited(), history) is None
    assert check(history, Inherited()).answer == LEGAL
    assert cells_for(Register(initial=[]), history) is None
    assert cells_for(Register(), history_of([row("cas", (1, 2), True, 0)])) is None


def test_a_bound_on_memory_or_steps_makes_the_answer_unknown() -> None:
    history = etcd_register(53, operations=1000, broken=True)
    assert (
        check(history, CasRegister(), options=Options(explain=False, most_steps=2_000)).answer
        == UNKNOWN
    )
    cells = cells_for(CasRegister(), history)
    assert cells is not None
    assert cells.search(history.records, memory=100_000, most_steps=100_000)[0] == 3
