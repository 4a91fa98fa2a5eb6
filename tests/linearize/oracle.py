"""Linearizability by its definition: every order of every choice of calls, for small histories.

An order is given up as soon as its beginning is wrong, and for no other reason.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from pulsar_ml.harness.histories.history import History

REAL_TIME, PROGRAM_ORDER, QUIESCENCE = range(3)


def oracle(history: History, model: Any, criterion: int = REAL_TIME) -> bool:
    """Whether some order of the calls that returned, and of some that did not, is one of the model's."""
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
    """[first][second]: first must come before second."""
    before = {REAL_TIME: in_time, PROGRAM_ORDER: in_program, QUIESCENCE: in_quiet}[criterion](
        history
    )
    everyone = range(len(history))
    return [[before(first, second) for second in everyone] for first in everyone]


def respects(order: Sequence[int], before: Sequence[Sequence[bool]]) -> bool:
    return not any(before[later][sooner] for sooner, later in itertools.combinations(order, 2))


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
    """Ordered when at some moment between the two nothing was under way."""
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
