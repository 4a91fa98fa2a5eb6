"""Negative controls of the fuzz: a verdict that claims something wrong is noticed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pulsar_ml.harness.histories.history import Operation, history_of
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, QUIESCENT, Options, Verdict, check
from pulsar_ml.harness.linearize.check import Check
from pulsar_ml.harness.models import Queue, Register
from tests.linearize import fuzz
from tests.linearize.fuzzing.draws import rows_of
from tests.linearize.fuzzing.specifications import Judge
from tests.linearize.fuzzing.verdicts import Claims

STALE = history_of(
    [
        Operation(0, "write", (1,), None, 0, 1),
        Operation(0, "write", (2,), None, 2, 3),
        Operation(1, "read", (), 2, 4, 5),
        Operation(1, "read", (), 1, 6, 7),
        Operation(2, "read", (), 2, 8, 9),
    ]
)
QUEUED = history_of(
    [
        Operation(0, "enqueue", (1,), None, 0, 1),
        Operation(0, "enqueue", (2,), None, 2, 3),
        Operation(1, "dequeue", (), 2, 4, 5),
        Operation(1, "enqueue", (3,), None, 6, 7),
    ]
)


def claims(history: object = STALE) -> Claims:
    queue = history is QUEUED
    rows = rows_of(QUEUED if queue else STALE)
    name, model = ("queue", Queue()) if queue else ("register", Register())
    return Claims(Judge(name, rows), QUEUED if queue else STALE, model)


def verdict() -> Verdict:
    found = check(STALE, Register())
    assert (found.answer, found.core, found.blocked) == (ILLEGAL, (0, 1, 3), 3)
    return replace(found)  # with its explanation


def test_what_is_right_is_not_reported() -> None:
    assert list(claims().wrong(verdict())) == []
    assert list(claims(QUEUED).wrong(check(QUEUED, Queue()))) == []


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"answer": LEGAL}, "legal (), should be illegal"),
        ({"core": (0, 1, 2, 3)}, "core (0, 1, 2, 3) is illegal without 2, too"),
        ({"core": (0, 1)}, "core (0, 1) is legal"),
        ({"blocked": 2}, "blocked 2: legal until its return"),
        ({"blocked": 4}, "blocked 4: illegal before its return"),
        ({"prefix": (0, 1)}, "prefix (0, 1) lacks {2} before 3"),
        ({"prefix": (1, 0, 2)}, "order (1, 0, 2)"),
        ({"weaker": {QUIESCENT: LEGAL}}, "quiescently consistent: legal, should be False"),
    ],
)
def test_a_wrong_claim_is_noticed(changed: dict[str, object], sentence: str) -> None:
    wrong = replace(verdict(), **{"weaker": verdict().weaker, **changed})  # type: ignore[arg-type]
    if "weaker" in changed:
        wrong = replace(wrong, weaker={**verdict().weaker, QUIESCENT: LEGAL})
    assert sentence in list(claims().wrong(wrong))


def test_a_core_of_a_queue_that_is_too_large_is_noticed() -> None:
    found = check(QUEUED, Queue())
    assert set(found.core) == {0, 1, 2}
    wrong = list(claims(QUEUED).wrong(replace(found, core=(0, 1, 2, 3))))
    assert any(one.startswith("core (0, 1, 2, 3) is illegal without") for one in wrong)


def test_a_core_that_is_called_unexplained_is_counted_and_still_illegal() -> None:
    found = replace(check(QUEUED, Queue()), core=(0, 1, 2, 3), unexplained="core: out of steps")
    own = claims(QUEUED)
    assert (list(own.wrong(found)), own.unexplained) == ([], 1)
    assert list(own.wrong(replace(found, core=(0, 1)))) == ["core (0, 1) is legal"]
    assert own.unexplained == 2


def test_a_configuration_that_is_wrong_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison notices a monitor that takes everything for legal."""
    monkeypatch.setattr(Check, "by_monitor", lambda self, monitor: self.legal(None))
    failures = fuzz.run(110, seed=3).failures
    assert failures and all(" by monitors" in failure for failure in failures)


def test_orders_of_calls_are_tried_with_the_times_of_the_calls() -> None:
    judge = Judge("register", rows_of(STALE))
    assert not judge.legal() and judge.legal(chosen=(0, 1, 2, 4))
    assert judge.replays((0, 3, 1, 2, 4), judge.program) is False
    assert judge.replays((0, 1, 2), judge.real_time)
    assert not judge.replays((1, 0, 2), judge.real_time)
    assert judge.legal(chosen=(3,), spare=(0,)) and not judge.legal(chosen=(3,), spare=(1,))


def test_a_spare_call_has_the_effect_of_another_unless_each_counts_once() -> None:
    """A value is read, replaced and read again; one write of it was left out, and another call."""
    rows = rows_of(
        history_of(
            [
                Operation(0, "write", (0,), None, 1, 5),
                Operation(2, "read", (), 0, 1, 3),
                Operation(0, "read", (), 0, 8, 9),
                Operation(1, "write", (3,), None, 1, 6),
                Operation(1, "write", (4,), None, 7, 7),
            ]
        )
    )
    judge = Judge("register", rows)
    assert judge.legal(chosen=(1, 2, 4), spare=(0, 3))
    assert not judge.legal(chosen=(1, 2, 4), spare=(0, 3), each_once=True)


def test_without_an_explanation_the_answer_is_compared() -> None:
    quick = check(STALE, Register(), options=Options(explain=False))
    assert list(claims().wrong(quick, explained=False)) == []


# Histories of the comparison on which it found something: a core of a register that was too large,
# because calls that were left out counted as ones of any number; and a core in program order
# without the call that a crashed one comes behind.
FOUND: dict[str, list[tuple[int, str, tuple[int, ...], Any, int, int | None]]] = {
    "cas-register": [
        (0, "read", (), 0, 1, 5),
        (2, "write", (2,), None, 3, 3),
        (1, "cas", (2, 0), None, 2, None),
        (0, "cas", (0, 0), False, 6, 9),
        (0, "cas", (0, 0), True, 12, 14),
        (0, "cas", (0, 1), False, 15, 20),
    ],
    "lock": [
        (2, "try_acquire", (), None, 2, None),
        (0, "acquire", (), None, 2, 10),
        (2, "acquire", (), None, 9, 10),
        (0, "acquire", (), None, 12, 12),
        (2, "release", (), None, 12, None),
        (2, "try_acquire", (), True, 22, 24),
    ],
}


@pytest.mark.parametrize("name", FOUND)
def test_what_the_comparison_found_stays_mended(name: str) -> None:
    history = history_of(Operation(*row) for row in FOUND[name])
    assert fuzz.wrong_in(history, name, False)[:2] == ([], False)
