"""Each monitor answers as the definition does, in every arrangement of a few calls.

Monitors that look at pairs or triples of values are wrong on circles of many, which
``tests/linearize/test_chains.py`` has.
"""

from __future__ import annotations

import pytest

from pulsar_ml.harness.linearize.monitors import Judgement
from tests.linearize.chains import CONTAINERS
from tests.linearize.intervals import every
from tests.linearize.intervals.every import Called, arrangements, compared, values_of

# 1 and True are equal in Python, and such values have no monitor.
CALLS: dict[str, list[list[Called]]] = {
    **{name: [values_of(name, 2), [*values_of(name, 1), (take, (), None)]]
       for name, (_, take) in CONTAINERS.items()},
    "register": [
        [("write", (5,), None), ("write", (6,), None), ("read", (), 5), ("read", (), 6)],
        [("write", (5,), None), ("read", (), None), ("read", (), 5), ("read", (), 5)],
    ],
    "cas-register": [
        [("write", (5,), None), ("cas", (5, 6), True), ("read", (), 5), ("read", (), 6)],
        [("cas", (None, 5), True), ("cas", (5, 6), True), ("cas", (6, 7), True), ("read", (), 6)],
    ],
    "set": [
        [("add", (5,), True), ("remove", (5,), True), ("contains", (5,), seen), ("add", (5,), False)]
        for seen in (True, False)
    ],
    "multiset": [
        [("add", (5,), None), ("remove", (5,), True), ("contains", (5,), seen),
         ("remove", (5,), False)]
        for seen in (True, False)
    ],
}  # fmt: skip


def test_arrangements_are_the_interval_orders() -> None:
    counts = [sum(1 for _ in arrangements(count)) for count in range(1, 5)]
    assert counts == [1, 3, 19, 207]


@pytest.mark.parametrize("name", CALLS)
def test_every_arrangement_is_judged_as_the_definition_says(name: str) -> None:
    for calls in CALLS[name]:
        found = compared(name, calls)
        assert found.wrong == []
        assert found.legal and found.illegal


@pytest.mark.parametrize("answer", [True, False])
def test_a_monitor_with_one_answer_is_noticed(
    answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(every, "judge", lambda *_: Judgement(answer))
    assert compared("queue", values_of("queue", 2)).wrong
