"""Registers whose histories need calls that never returned, so often that they may run out."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from pulsar_ml.harness.histories.history import History, Operation, history_of
from pulsar_ml.harness.histories.published import etcd_register
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, Options, check
from pulsar_ml.harness.linearize.shipped import cells_for
from pulsar_ml.harness.models import CasRegister
from tests.linearize.oracle import answer_of_both, disagreements, oracle

NATIVE = Options(explain=False)

Call = tuple[str, tuple[int, ...]]


def drawn(draw: random.Random, most: int) -> History:
    """Nearly sequential calls; up to half of the changes never return, and some results are wrong.

    A change that never returns may take effect later, or not at all.
    """
    values, crashes, overlap = (
        draw.choice((2, 3, 4)),
        draw.choice((0.2, 0.4, 0.5)),
        draw.choice((0, 2, 6)),
    )
    count = draw.randint(4, most)
    wrong = {draw.randrange(count) for _ in range(draw.choice((0, 1, 2, 3)))}
    held: int | None = None
    late: list[Call] = []
    now = 0
    operations = []

    def change(name: str, arguments: tuple[int, ...]) -> bool:
        nonlocal held
        if name == "cas" and held != arguments[0]:
            return False
        held = arguments[-1]
        return True

    for number in range(count):
        now += draw.randint(1, 6)
        name = draw.choice(("read", "read", "write", "cas"))
        arguments = tuple(
            draw.randrange(values) for _ in range({"read": 0, "write": 1, "cas": 2}[name])
        )
        if late and draw.random() < 0.4:
            change(*late.pop(draw.randrange(len(late))))
        if name != "read" and draw.random() < crashes:
            operations.append(Operation(100 + number, name, arguments, None, now, None))
            late.append((name, arguments))
            continue
        result: int | bool | None = draw.randrange(values) if number in wrong else held
        if name != "read":
            done = change(name, arguments)
            result = None if name == "write" else done != (number in wrong)
        invoked, returned = now - draw.randint(0, overlap), now + draw.randint(0, overlap)
        operations.append(Operation(number, name, arguments, result, invoked, returned))
    return history_of(operations)


def searched(history: History, chosen: np.ndarray | None = None) -> bool:
    cells = cells_for(CasRegister(), history)
    assert cells is not None
    return bool(cells.search(history.records, chosen=chosen)[0] == 0)


def without_one_open_call(history: History) -> bool:
    """A wrong search: it has one open call too few for the occurrences that need one."""
    opened = np.flatnonzero(history.records["ending"] != 0)
    return searched(history, np.setdiff1d(np.arange(len(history)), opened[:1]).astype(np.int32))


def as_if_open_calls_came_later(history: History) -> bool:
    records = history.records.copy()
    records["invoked"] += np.where(records["ending"] != 0, 6, 0)
    return searched(History(history.signatures, records, history.values, source=history.source))


def small_histories() -> list[History]:
    draw = random.Random(11)
    return [drawn(draw, 8) for _ in range(1_500)]


def test_the_answer_is_that_of_the_definition() -> None:
    wrong, legal, illegal = disagreements(searched, CasRegister(), small_histories())
    assert wrong == 0
    assert min(legal, illegal) > 500


@pytest.mark.parametrize("answer", [without_one_open_call, as_if_open_calls_came_later])
def test_a_search_with_other_rules_is_found_out(answer: Callable[[History], bool]) -> None:
    assert disagreements(answer, CasRegister(), small_histories())[0] > 20


def test_both_searches_agree_where_the_definition_cannot_go() -> None:
    draw = random.Random(12)
    histories = (drawn(draw, 22) for _ in range(4_000))
    answers = [answer_of_both(history, CasRegister(), NATIVE) for history in histories]
    assert min(answers.count(LEGAL), answers.count(ILLEGAL)) > 1_000


def row(name: str, arguments: tuple[int, ...], result: int | bool | None, at: int) -> Operation:
    return Operation(0, name, arguments, result, 10 * at, 10 * at + 5)


@pytest.mark.parametrize(("opened", "answer"), [(2, ILLEGAL), (3, LEGAL)])
def test_a_value_that_comes_three_times_takes_three_open_calls(opened: int, answer: str) -> None:
    rows = [row("write", (1,), None, 0)]
    for turn in range(3):
        rows += [row("read", (), 2, 3 * turn + 1), row("read", (), 2, 3 * turn + 2)]
        rows += [row("write", (1,), None, 3 * turn + 3)]
    rows += [Operation(10 + number, "write", (2,), None, 1, None) for number in range(opened)]
    verdict = check(history_of(rows), CasRegister(), options=NATIVE)
    assert verdict.answer == answer
    assert (verdict.steps == 0) == (answer == ILLEGAL)


def test_an_open_call_that_began_too_late_is_none() -> None:
    rows = [row("write", (1,), None, 0), row("read", (), 2, 1), row("write", (1,), None, 2)]
    late = [
        Operation(10, "write", (2,), None, 16, None),
        Operation(11, "write", (2,), None, 40, None),
    ]
    in_time = [
        Operation(10, "write", (2,), None, 15, None),
        Operation(11, "write", (2,), None, 40, None),
    ]
    assert check(history_of([*rows, *late]), CasRegister(), options=NATIVE).answer == ILLEGAL
    assert check(history_of([*rows, *in_time]), CasRegister(), options=NATIVE).answer == LEGAL


def test_a_call_at_any_time_is_as_many_as_it_takes() -> None:
    rows = [row("write", (1,), None, 0)]
    for turn in range(3):
        rows += [row("read", (), 2, 2 * turn + 1), row("write", (1,), None, 2 * turn + 2)]
    history = history_of([*rows, row("write", (2,), None, 50)])
    cells = cells_for(CasRegister(), history)
    assert cells is not None
    chosen = np.arange(len(rows), dtype=np.int32)
    at_any_time = np.array([len(rows)], np.int32)
    assert cells.search(history.records, chosen=chosen, unconstrained=at_any_time)[0] == 0
    assert cells.search(history.records, chosen=chosen)[0] == 1


def test_a_write_of_what_is_there_may_have_to_come_before_an_open_exchange() -> None:
    """Later it would put 1 where 2 must be, and before the first write it had not begun."""
    history = history_of(
        [
            Operation(0, "write", (1,), None, 11, 12),
            Operation(0, "read", (), 1, 18, 22),
            Operation(1, "cas", (1, 2), None, 21, None),
            Operation(2, "write", (1,), None, 23, 35),
            Operation(0, "read", (), 2, 26, 30),
            Operation(0, "cas", (2, 1), True, 36, 38),
        ]
    )
    assert check(history, CasRegister(), options=NATIVE).linearization == (0, 1, 3, 2, 4, 5)


def test_only_a_write_of_the_same_value_stands_for_an_exchange() -> None:
    """An exchange and a write of 3 have equal effects, but only the exchange can turn 1 into 2."""
    history = history_of(
        [
            row("write", (1,), None, 0),
            Operation(10, "cas", (1, 2), None, 1, None),
            Operation(11, "write", (3,), None, 1, None),
            Operation(12, "cas", (4, 2), None, 1, None),
            row("cas", (1, 5), False, 1), row("write", (1,), None, 2), row("read", (), 1, 3),
            row("read", (), 2, 4),
            Operation(13, "write", (2,), None, 1_000, None),
        ]
    )  # fmt: skip
    assert oracle(history, CasRegister())
    assert check(history, CasRegister(), options=NATIVE).answer == LEGAL


def test_histories_of_a_thousand_operations_are_answered() -> None:
    """Half of them had no answer after millions of steps when open calls were not counted."""
    answers = []
    for seed in range(20):
        history = etcd_register(seed, operations=1_000, broken=True)
        verdict = check(history, CasRegister(), options=Options(explain=False, most_steps=20_000))
        answers.append(verdict.answer)
    assert set(answers) == {LEGAL, ILLEGAL}


def test_two_ways_to_one_place_differ_in_when_the_last_write_came() -> None:
    """7 comes before 1 if 1 is put as late as possible: then 7 has just begun."""
    history = history_of(
        [
            Operation(0, "read", (), 1, 0, 20), Operation(1, "write", (1,), None, 1, 100),
            Operation(2, "write", (5,), None, 2, 10), Operation(3, "write", (6,), None, 3, 20),
            Operation(4, "write", (7,), None, 20, 30), Operation(5, "read", (), 1, 40, 50),
            Operation(6, "cas", (8, 9), False, 70, 71),
        ]
    )  # fmt: skip
    assert oracle(history, CasRegister())
    assert check(history, CasRegister(), options=NATIVE).answer == LEGAL
