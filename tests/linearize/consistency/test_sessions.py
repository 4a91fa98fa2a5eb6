"""The guarantees of sessions against all orders of the writes, with their contradictions."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.histories.history import History, Operation, history_of
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, UNKNOWN
from pulsar_ml.harness.linearize.consistency import sessions
from pulsar_ml.harness.linearize.consistency.criteria import check_criterion
from pulsar_ml.harness.linearize.consistency.names import GUARANTEES
from pulsar_ml.harness.linearize.consistency.text import describe_consistency
from pulsar_ml.harness.models import CasRegister, KeyValueMap, Register
from pulsar_ml.harness.models.model import Keyed
from tests.linearize.consistency.definitions import choices, fits, holds

MODELS: list[tuple[Any, str, str, int]] = [
    (Register(0), "read", "write", 0),
    (Keyed(Register()), "read", "write", 1),
    (KeyValueMap(), "get", "put", 1),
]


def drawn(draw: random.Random) -> tuple[History, Any]:
    """Draw a history of few writes, most of them of distinct values, and its model."""
    model, read, write, keyed = draw.choice(MODELS)
    first = getattr(model, "initial", None)
    operations, writes = [], 0
    for moment in range(draw.randrange(1, 8)):
        key = (draw.randrange(2),) * keyed
        open_ = draw.random() < 0.1
        stamps = (moment, None if open_ else moment + 0.5)
        thread = draw.randrange(3)
        if draw.random() < 0.45 and writes < 4:
            writes += 1
            value = writes if draw.random() < 0.9 else 1
            if write == "put" and draw.random() < 0.1:
                operations.append(Operation(thread, "delete", key, None, *stamps))
                continue
            operations.append(Operation(thread, write, (*key, value), None, *stamps))
        else:
            result = draw.choice([first, 1, 2, 3][: writes + 2])
            operations.append(Operation(thread, read, key, result, *stamps))
    return history_of(operations), model


def compared(guarantee: str, count: int) -> tuple[Counter[str], int]:
    """Compare answers with the definition; the counts, and the number of wrong answers."""
    counts: Counter[str] = Counter()
    wrong = 0
    for seed in range(count):
        history, model = drawn(random.Random(seed))
        found = check_criterion(history, model, guarantee)
        expected = holds(history, model, guarantee)
        counts[found.answer] += 1
        wrong += found.answer != UNKNOWN and (found.answer == LEGAL) != expected
        if found.answer == ILLEGAL and not expected:
            core = history.select(found.core)
            assert not holds(core, model, guarantee)
            wrong += is_too_large(core, model, guarantee)
        if found.answer == LEGAL and expected:
            wrong += not any_sources(history, model, guarantee, list(found.order))
    return counts, wrong


def is_too_large(core: History, model: Any, guarantee: str) -> bool:
    """True when a call can be left out whose value no other call of the core returns."""
    calls = [core.call(index) for index in range(len(core))]
    for index, call in enumerate(calls):
        rest = [other for other in range(len(core)) if other != index]
        read = [one.result for one in calls if one.name in ("read", "get")]
        if (
            call.name in ("write", "put", "delete")
            and (None if call.name == "delete" else call.arguments[-1]) in read
        ):
            continue
        if not holds(core.select(rest), model, guarantee):
            return True
    return False


def any_sources(history: History, model: Any, guarantee: str, order: list[int]) -> bool:
    return any(
        fits(history, guarantee, source, order) for source, other in choices(history, model)
        if sorted(other) == sorted(order)
    )  # fmt: skip


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_guarantee_is_that_of_all_orders(guarantee: str) -> None:
    counts, wrong = compared(guarantee, 150)
    assert wrong == 0
    assert counts[LEGAL] >= 30 and counts[ILLEGAL] >= 30 and counts[UNKNOWN] >= 1, counts


def test_a_forgotten_condition_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: without the condition of the reads before, some answers are wrong."""
    monkeypatch.setattr(sessions, "READS", "no guarantee")
    assert compared("monotonic-reads", 250)[1] > 0


def one(*rows: tuple[int, str, tuple[object, ...], object]) -> History:
    """Return a history of operations one after the other, as lines of a file."""
    return history_of(
        Operation(*row, 2 * at, 2 * at + 1, number=at + 1) for at, row in enumerate(rows)
    )


def test_reads_that_go_back_are_told_with_their_lines() -> None:
    history = one(
        (0, "write", ("a",), None),
        (1, "write", ("b",), None),
        (2, "read", (), "a"),
        (2, "read", (), "b"),
        (3, "read", (), "b"),
        (2, "read", (), "a"),
    )
    found = check_criterion(history, Register(), "monotonic-reads")
    assert (found.answer, found.core) == (ILLEGAL, (0, 1, 2, 3, 5))
    text = describe_consistency(history, found, Register())
    assert text.startswith("illegal: without monotonic reads (6 operations)\n")
    assert (
        "thread 2: read() -> 'b' (operation 3, line 4), then read() -> 'a' (operation 5, line 6); "
        "so write('b') (operation 1, line 2) comes before write('a') (operation 0, line 1)"
    ) in text
    assert check_criterion(history, Register(), "read-your-writes").answer == LEGAL


def test_a_write_that_its_thread_does_not_read() -> None:
    history = one((0, "write", (1,), None), (0, "read", (), None))
    found = check_criterion(history, Register(), "read-your-writes")
    assert (found.answer, found.core) == (ILLEGAL, (0, 1))
    assert "so write(1) (operation 0, line 1) comes before the first value" in " ".join(
        found.contradiction
    )
    assert check_criterion(history, Register(), "monotonic-reads").answer == LEGAL


def test_writes_of_a_thread_are_seen_in_its_order_with_all_guarantees_only() -> None:
    history = one(
        (0, "write", (1,), None),
        (0, "write", (2,), None),
        (1, "read", (), 2),
        (1, "read", (), 1),
    )
    for guarantee in GUARANTEES[:-1]:
        assert check_criterion(history, Register(), guarantee).answer == LEGAL
    found = check_criterion(history, Register(), "session")
    assert (found.answer, found.core) == (ILLEGAL, (0, 1, 2, 3))


def test_a_value_that_is_written_before_it_was_read() -> None:
    history = one((0, "read", (), 1), (0, "write", (1,), None))
    assert check_criterion(history, Register(), "writes-follow-reads").answer == ILLEGAL
    assert check_criterion(history, Register(), "read-your-writes").answer == LEGAL


def test_a_value_that_nobody_wrote() -> None:
    found = check_criterion(one((0, "read", (), 7)), Register(), "read-your-writes")
    assert (found.answer, found.core) == (ILLEGAL, (0,))
    assert found.contradiction == (
        "read() -> 7 (operation 0, line 1): no operation writes that value",
    )


def test_a_crashed_write_need_not_be_seen() -> None:
    operations = [Operation(0, "write", (1,), None, 0, None), Operation(0, "read", (), None, 1, 2)]
    history = history_of(operations)
    assert check_criterion(history, Register(), "session").answer == LEGAL
    # It may be seen by others, and then by its own thread late.
    operations += [Operation(1, "read", (), 1, 3, 4), Operation(1, "read", (), None, 5, 6)]
    found = check_criterion(history_of(operations), Register(), "session")
    assert (found.answer, found.core) == (ILLEGAL, (0, 2, 3))


def test_values_that_are_written_twice_leave_it_open() -> None:
    history = one((0, "write", (1,), None), (1, "write", (1,), None), (0, "read", (), 1))
    found = check_criterion(history, Register(), "session")
    assert (found.answer, found.reason) == (
        UNKNOWN,
        "read() -> 1 (operation 2, line 3) may return the value of write(1) (operation 0, line 1) "
        "or of write(1) (operation 1, line 2); a guarantee can be decided where the values that "
        "are read are written once",
    )
    # What the other operations contradict stays illegal.
    history = one(
        (0, "write", (1,), None), (1, "write", (1,), None), (0, "read", (), 1),
        (2, "write", (2,), None), (2, "read", (), None),
    )  # fmt: skip
    assert check_criterion(history, Register(), "session").answer == ILLEGAL
    # Values that nobody reads may be written twice.
    history = one((0, "write", (1,), None), (1, "write", (1,), None))
    assert check_criterion(history, Register(), "session").answer == LEGAL


def test_compare_and_set_reads_and_writes() -> None:
    history = one(
        (0, "write", (1,), None),
        (1, "cas", (1, 2), True),
        (1, "read", (), 1),
    )
    assert check_criterion(history, CasRegister(), "read-your-writes").answer == LEGAL
    found = check_criterion(history, CasRegister(), "session")
    assert (found.answer, found.core) == (ILLEGAL, (0, 1, 2))
    failed = one((0, "write", (1,), None), (0, "cas", (1, 2), False))
    found = check_criterion(failed, CasRegister(), "session")
    assert found.answer == UNKNOWN and "the value that it found is not known" in found.reason


def test_calls_that_are_neither_reads_nor_writes_are_refused() -> None:
    history = one((0, "append", ("k", "v"), None))
    with pytest.raises(UsageError, match="is neither a read nor a write of a whole value"):
        check_criterion(history, KeyValueMap(), "session")


def test_a_long_history_takes_no_more_than_its_length() -> None:
    count = 3_000
    history = one(
        *(
            (at % 5, "write", (at,), None) if at % 10 < 5 else (at % 5, "read", (), at - 5)
            for at in range(count)
        )
    )
    assert check_criterion(history, Register(), "session").answer == LEGAL
