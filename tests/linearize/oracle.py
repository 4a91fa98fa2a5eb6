"""Linearizability by its definition, for small histories: every order of every choice of calls.

An order is given up only when its beginning is illegal.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.linearize import Options, check

REAL_TIME, PROGRAM_ORDER, QUIESCENCE = range(3)
ASKING = Options(natively=False, monitors=False, explain=False)  # asks the model for each step


def oracle(history: History, model: Any, criterion: int = REAL_TIME) -> bool:
    """True when some order of the calls that returned, and of a choice of the others, is legal."""
    before = relation(history, criterion)
    calls = [history.call(index) for index in range(len(history))]
    ended = {index for index in range(len(history)) if not history.records["ending"][index]}

    def extend(order: list[int], states: list[Any]) -> bool:
        if not states:
            return False
        if ended <= set(order):
            return True
        for index in range(len(calls)):
            if index not in order and not any(before[index][earlier] for earlier in order):
                after = [next_ for state in states for next_ in model.step(state, calls[index])]
                if extend([*order, index], after):
                    return True
        return False

    return extend([], [model.init()])


def relation(history: History, criterion: int) -> list[list[bool]]:
    """A matrix: [first][second] is true when the first call must come before the second one."""
    before = {REAL_TIME: in_time, PROGRAM_ORDER: in_program, QUIESCENCE: in_quiet}[criterion](
        history
    )
    everyone = range(len(history))
    return [[before(first, second) for second in everyone] for first in everyone]


def respects(order: Sequence[int], before: Sequence[Sequence[bool]]) -> bool:
    return not any(before[later][sooner] for sooner, later in itertools.combinations(order, 2))


def answer_of_both(history: History, model: Any, native: Options) -> str:
    """The answer of the search in Python, which the native one gives, too, with a right order."""
    expected = check(history, model, options=ASKING).answer
    verdict = check(history, model, options=native)
    assert verdict.answer == expected
    if verdict.linearization is not None:
        assert respects(verdict.linearization, relation(history, REAL_TIME))
        assert allowed(history, model, verdict.linearization)
    return expected


def allowed(history: History, model: Any, order: Sequence[int]) -> bool:
    states = [model.init()]
    for index in order:
        states = [after for state in states for after in model.step(state, history.call(index))]
    return bool(states)


def in_time(history: History) -> Callable[[int, int], bool]:
    records = history.records

    def before(first: int, second: int) -> bool:
        return bool(records["returned"][first] < records["invoked"][second])

    return before


def in_program(history: History) -> Callable[[int, int], bool]:
    records = history.records

    def before(first: int, second: int) -> bool:
        same = records["thread"][first] == records["thread"][second]
        return bool(same and records["invoked"][first] < records["invoked"][second])

    return before


def in_quiet(history: History) -> Callable[[int, int], bool]:
    """True when no call was under way at some moment between the two calls."""
    records = history.records
    returns = records["returned"].tolist()

    def before(first: int, second: int) -> bool:
        low, high = records["returned"][first], records["invoked"][second]
        return any(
            all(
                not (begin <= moment <= end)
                for begin, end in zip(records["invoked"], returns, strict=True)
            )
            for moment in (end + 0.5 for end in returns)
            if low < moment < high
        )

    return before


class Disagreements(NamedTuple):
    """The number of wrong answers, and of legal and illegal histories by the definition."""

    wrong: int
    legal: int
    illegal: int


def disagreements(
    answer: Callable[[History], bool], model: Any, histories: Iterable[History]
) -> Disagreements:
    """Compares answers with the definition."""
    wrong = legal = illegal = 0
    for history in histories:
        expected = oracle(history, model)
        legal += expected
        illegal += not expected
        wrong += answer(history) != expected
    return Disagreements(wrong, legal, illegal)


def examples(strategy: SearchStrategy[History], count: int) -> list[History]:
    """The first ``count`` histories of a strategy, the same in each run."""
    found: list[History] = []

    @settings(max_examples=count, deadline=None, derandomize=True, database=None)
    @given(strategy)
    def run(history: History) -> None:
        found.append(history)

    run()
    return found
