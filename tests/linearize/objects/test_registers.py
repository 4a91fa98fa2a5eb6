"""Registers with reads and writes only, compared with the definition and the general search."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_ml.harness.histories.generated import Cell, simulate
from pulsar_ml.harness.histories.history import RECORD, History, Operation, history_of
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, Options, check
from pulsar_ml.harness.linearize.shipped import cells_for
from pulsar_ml.harness.models import CasRegister, Register
from tests.linearize.histories import SMALL
from tests.linearize.oracle import (
    REAL_TIME,
    allowed,
    answer_of_both,
    disagreements,
    oracle,
    relation,
    respects,
)

NATIVE = Options(monitors=False, explain=False)
OUT_OF_MEMORY = 3
MOST_VALUES = 0x7FF0


def placed(draw: random.Random, most: int) -> History:
    """Calls with the results of an order within their intervals; one read is often changed."""
    threads, values = draw.choice((3, 4, 5, 6)), draw.choice((2, 3, 4, 6))
    lasts, crashes = draw.choice((3, 8, 16, 30)), draw.choice((0.0, 0.0, 0.1, 0.3))
    reads = draw.choice((0.3, 0.5, 0.7))
    clock = [draw.randrange(4) for _ in range(threads)]
    calls = []
    for number in range(draw.randint(3, most)):
        thread = draw.randrange(threads)
        invoked = clock[thread] + draw.randint(1, 3)
        clock[thread] = invoked + draw.randint(0, lasts)
        inputs = () if draw.random() < reads else (draw.randrange(values),)
        opened = draw.random() < crashes
        moment = invoked + draw.random() * (40 if opened else clock[thread] - invoked)
        who = 100 + number if opened else thread
        calls.append((moment, who, inputs, invoked, None if opened else clock[thread]))
    held: int | None = None
    lie = draw.randrange(2 * len(calls))
    operations = []
    for number, (_, thread, inputs, invoked, returned) in enumerate(sorted(calls)):
        result = None
        if inputs:
            held = inputs[0]
        else:
            result = draw.choice((None, *range(values))) if number == lie else held
        name = "write" if inputs else "read"
        operations.append(Operation(thread, name, inputs, result, invoked, returned))
    return history_of(operations)


def searched(history: History, **more: Any) -> bool:
    cells = cells_for(Register(), history)
    assert cells is not None
    answer, way = cells.search(history.records, **more)[:2]
    if answer == 0 and not more:
        assert respects(way, relation(history, REAL_TIME))
        assert allowed(history, Register(), way)
        assert set(np.flatnonzero(history.records["ending"] == 0).tolist()) <= set(way)
    return bool(answer == 0)


def small_histories() -> list[History]:
    draw = random.Random(5)
    return [placed(draw, 8) for _ in range(1_500)]


def test_the_answer_is_that_of_the_definition() -> None:
    wrong, _, illegal = disagreements(searched, Register(), small_histories())
    assert wrong == 0
    assert illegal > 200


def without_open_calls(history: History) -> bool:
    return searched(history, chosen=np.flatnonzero(history.records["ending"] == 0).astype(np.int32))


def as_if_calls_began_later(history: History) -> bool:
    """A wrong search: calls begin later, so that more calls lie entirely behind others."""
    records = history.records.copy()
    records["invoked"] = np.minimum(records["invoked"] + 2, records["returned"])
    return searched(History(history.signatures, records, history.values, source=history.source))


@pytest.mark.parametrize("answer", [without_open_calls, as_if_calls_began_later])
def test_a_search_with_other_rules_is_found_out(answer: Callable[[History], bool]) -> None:
    assert disagreements(answer, Register(), small_histories())[0] > 20


def test_both_searches_agree_where_the_definition_cannot_go() -> None:
    draw = random.Random(7)
    histories = (placed(draw, 24) for _ in range(4_000))
    answers = [answer_of_both(history, Register(), NATIVE) for history in histories]
    assert min(answers.count(LEGAL), answers.count(ILLEGAL)) > 400


def test_writes_at_any_time_and_again_are_as_many_open_copies() -> None:
    seen = set()

    @settings(max_examples=80, deadline=None, derandomize=True, database=None)
    @given(st.integers(0, 10**6), SMALL)
    def run(seed: int, value: int) -> None:
        sample = placed(random.Random(seed), 5)
        operations = [
            Operation(
                int(record["thread"]), call.name, call.arguments, call.result,
                int(record["invoked"]), None if record["ending"] else int(record["returned"]),
            )
            for record, call in zip(
                sample.records, map(sample.call, range(len(sample))), strict=True
            )
        ]  # fmt: skip
        copies = [
            Operation(200 + copy, "write", (value,), None, -1, None)
            for copy in range(len(operations))
        ]
        expected = oracle(history_of([*operations, *copies]), Register())
        with_one = history_of([*operations, Operation(200, "write", (value,), None, -1, 0)])
        last = np.array([len(operations)], np.int32)
        chosen = np.arange(len(operations), dtype=np.int32)
        assert searched(with_one, chosen=chosen, unconstrained=last) == expected
        seen.add(expected)

    run()
    assert seen == {True, False}


@pytest.mark.parametrize("values", [5, 100])
@pytest.mark.parametrize("clients", [10, 50])
def test_long_histories_take_some_steps_for_each_operation(clients: int, values: int) -> None:
    """Without writes that are taken at once, fifty clients and a hundred values take 100 steps."""
    for seed in range(2):
        history = simulate(Cell(values), seed=seed, clients=clients, operations=2_000, busy=1.0)
        verdict = check(history, Register(), options=NATIVE)
        assert verdict.answer == LEGAL
        assert verdict.steps < 4 * 2_000


def test_a_stale_read_is_found_though_values_come_again() -> None:
    """A search without writes that are taken at once runs out of steps."""
    history = simulate(Cell(100), seed=2, clients=50, operations=10_000, busy=1.0, stale_at=0.5)
    verdict = check(
        history, Register(), options=Options(monitors=False, explain=False, most_steps=400_000)
    )
    assert verdict.answer == ILLEGAL


def interval(name: str, value: int, invoked: int, returned: int | None) -> Operation:
    inputs, result = ((value,), None) if name == "write" else ((), value)
    return Operation(invoked * 100 + (returned or 99), name, inputs, result, invoked, returned)


@pytest.mark.parametrize("begins", [0, 2, 3])
def test_reads_of_what_is_there_do_not_mean_that_it_is_left(begins: int) -> None:
    """4 and 5 are seen now and never later; 1 must stay, though reads of it are behind its write.

    The first write of 4 comes before the write of 1, if it had begun when that one returned.
    """
    history = history_of(
        [
            interval("write", 1, 0, 2), interval("write", 4, begins, 20),
            interval("write", 5, 0, 50), interval("read", 5, 1, 50),
            interval("read", 1, 1, 3), interval("read", 1, 5, 6),
            interval("read", 1, 7, 8), interval("read", 4, 10, 60), interval("write", 4, 22, 60),
            interval("read", 1, 25, 30),
        ]
    )  # fmt: skip
    assert oracle(history, Register()) == (begins <= 2)
    assert searched(history) == (begins <= 2)


@pytest.mark.parametrize("begins", [20, 21])
def test_a_read_that_begins_as_another_call_returns_may_come_before_it(begins: int) -> None:
    """1 may stay until it is read again, though 4 is written behind it, if 2 comes before 4."""
    history = history_of(
        [
            interval("write", 1, 0, 10), interval("read", 1, 1, 10), interval("write", 2, 2, 50),
            interval("read", 2, 3, 9), interval("write", 4, 12, 20),
            interval("read", 1, begins, 30),
        ]
    )  # fmt: skip
    assert oracle(history, Register()) == (begins == 20)
    assert searched(history) == (begins == 20)


@pytest.mark.parametrize("begins", [20, 21])
def test_a_write_that_only_such_a_read_can_see_is_not_hidden(begins: int) -> None:
    history = history_of(
        [
            interval("write", 1, 0, 3), interval("read", 1, 1, 3), interval("write", 2, 2, 10),
            interval("write", 4, 12, 20), interval("read", 2, begins, 30),
        ]
    )  # fmt: skip
    assert oracle(history, Register()) == (begins == 20)
    assert searched(history) == (begins == 20)


def test_an_open_exchange_sees_what_is_there() -> None:
    """1 may be read at once, but it must be there again for the call that exchanges it for 3."""
    history = history_of(
        [
            interval("write", 1, 0, 51), interval("read", 1, 0, 50), interval("read", 2, 1, 9),
            Operation(98, "write", (2,), None, 1, 9), interval("read", 3, 30, 60),
            Operation(99, "cas", (1, 3), None, 2, None),
        ]
    )  # fmt: skip
    assert oracle(history, CasRegister())
    assert check(history, CasRegister(), options=NATIVE).answer == LEGAL


def test_more_calls_in_a_row_than_a_lane_may_have() -> None:
    """Their number would not fit, and positions with equal numbers would be confused."""
    for count, native in ((65_534, True), (65_535, False), (66_000, False)):
        records = np.zeros(count, RECORD)
        records["operation"] = 1 - np.arange(count) % 2  # a write, a read, ...
        records["invoked"] = 2 * np.arange(count)
        records["returned"] = records["invoked"] + 1
        history = History(Cell().signatures, records, source="simulated")
        cells = cells_for(Register(), history)
        assert cells is not None
        assert cells.search(history.records)[0] == (0 if native else OUT_OF_MEMORY)
        assert check(history, Register(), options=NATIVE).answer == LEGAL


@pytest.mark.parametrize(("values", "answer"), [(MOST_VALUES, 0), (MOST_VALUES + 1, OUT_OF_MEMORY)])
def test_more_values_than_a_configuration_can_tell_apart(values: int, answer: int) -> None:
    """The missing initial value counts as a value, too."""
    records = np.zeros(values, RECORD)
    records["operation"] = 1
    records["arguments"][:, 0] = np.arange(values)
    records["invoked"] = 2 * np.arange(values)
    records["returned"] = records["invoked"] + 1
    records["operation"][-1] = 0  # a read of the last write
    records["arguments"][-1, 0] = 0
    records["result"][-1, 0] = values - 2
    history = History(Cell().signatures, records, source="simulated")
    cells = cells_for(Register(), history)
    assert cells is not None
    assert cells.search(history.records)[0] == answer


def test_what_numbers_for_values_take_is_bounded_too() -> None:
    history = simulate(Cell(5), seed=1, clients=5, operations=1_000)
    cells = cells_for(Register(), history)
    assert cells is not None
    assert cells.search(history.records, memory=90_000)[0] == OUT_OF_MEMORY
    assert cells.search(history.records, memory=100_000)[0] == 0


def test_a_call_that_begins_as_two_return_may_help_them() -> None:
    history = history_of(
        [
            interval("write", 1, 0, 5), interval("read", 2, 10, 20), interval("write", 3, 11, 20),
            interval("write", 2, 20, 30), interval("read", 9, 40, 50),
        ]
    )  # fmt: skip
    verdict = check(history, Register(), options=Options(monitors=False, weaker=False))
    assert (verdict.answer, verdict.blocked, set(verdict.prefix)) == (ILLEGAL, 4, {0, 1, 2, 3})


@pytest.mark.parametrize(("missing", "answer"), [(None, LEGAL), (201, ILLEGAL)])
@pytest.mark.parametrize("reads", [400, 401, 402])
def test_open_writes_in_any_order_are_used_in_that_of_their_invocations(
    reads: int, missing: int | None, answer: str
) -> None:
    """Alternating reads of 0 and 1. Writes of 0 began early; a write of 1 begins at its read."""
    early = [interval("write", 0, step, None) for step in range(0, 400, 2)]
    late = [interval("write", 1, 10 * step, None) for step in range(1, 400, 2) if step != missing]
    rows = [*early, *random.Random(1).sample(late, len(late))]
    rows += [
        interval("read", min(step, 399) % 2, 10 * step, 10 * step + 1) for step in range(reads)
    ]
    assert check(history_of(rows), Register(), options=NATIVE).answer == answer
