"""Answers that stand: limits of an explanation, hard keys beside easy ones, and time."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.histories.history import Call, History, Operation, history_of
from pulsar_ml.harness.histories.published import key_value
from pulsar_ml.harness.linearize import (
    ILLEGAL,
    LEGAL,
    UNKNOWN,
    ModelChecker,
    Options,
    check,
    explain,
)
from pulsar_ml.harness.linearize.picture import describe_verdict
from pulsar_ml.harness.models import CasRegister, KeyValueMap, Queue, Register
from pulsar_ml.harness.models.model import Keyed
from tests.linearize.histories import hard_queue

HARD = history_of(hard_queue())
AT_ONCE = 1e-9  # seconds, which are over before the first look at the clock


def read_after_write(invoked: Any, returned: Any, later: Any, end: Any) -> History:
    """A write and, at ``later``, a read that does not see it."""
    return history_of(
        [
            Operation(0, "write", (1,), None, invoked, returned),
            Operation(1, "read", (), None, later, end),
        ]
    )


def keys(illegal: int) -> History:
    """Queues for ten keys: key 0 is hard to refute, key ``illegal`` easy, the others are legal."""
    operations = [one._replace(arguments=(0, *one.arguments)) for one in hard_queue()]
    for key in range(1, 10):
        operations.append(Operation(20 + key, "enqueue", (key, 5), None, 0, 1))
        answer = 6 if key == illegal else 5
        operations.append(Operation(20 + key, "dequeue", (key,), answer, 2, 3))
    return history_of(operations)


@pytest.mark.parametrize("key", range(1, 10))
def test_a_hard_key_hides_no_easy_one(key: int) -> None:
    options = Options(most_steps=20_000, explain=False)
    verdict = check(keys(key), Keyed(Queue()), options=options)
    assert (verdict.answer, verdict.key) == (ILLEGAL, key)
    assert verdict.steps < 2_000
    open_ = check(keys(0), Keyed(Queue()), options=options)
    assert (open_.answer, open_.key) == (UNKNOWN, 0)
    assert "1 of 10 keys have no answer" in open_.reason
    assert check(keys(0), Keyed(Queue()), options=Options(explain=False)).answer == ILLEGAL


def test_an_illegal_map_is_illegal_however_its_explanation_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model has more states here than fit the memory of an explanation."""
    history = key_value(1, clients=50, operations=1300, broken=True)
    quick = check(history, KeyValueMap(), options=Options(explain=False))
    monkeypatch.setattr(explain, "WEAKER_STEPS", 500)
    verdict = check(history, KeyValueMap(), options=Options(memory=1 << 20))
    assert (quick.answer, verdict.answer) == (ILLEGAL, ILLEGAL)
    assert (quick.steps, quick.key) == (verdict.steps, verdict.key)
    assert set(verdict.weaker.values()) == {UNKNOWN}
    text = describe_verdict(history, verdict, KeyValueMap())
    assert "not found within the limits of an explanation: whether the core is minimal" in text
    core = history.select(verdict.core)
    assert check(core, KeyValueMap(), options=Options(explain=False)).answer == ILLEGAL
    # The last order is legal, and the blocked call cannot follow it.
    before = history.select(verdict.prefix)
    assert check(before, KeyValueMap(), options=Options(explain=False)).answer == LEGAL
    assert verdict.blocked not in verdict.prefix


class Endless:
    """Each call leads to a state of a megabyte that was never seen before."""

    def init(self) -> tuple[int, ...]:
        return ()

    def step(self, state: tuple[int, ...], call: Call) -> Iterable[tuple[int, ...]]:
        if call.name == "stop":
            return []
        return [(*state, 1) * 1000] if len(state) < 1 << 20 else [(*state, 1)]


def test_states_that_fill_the_memory_leave_an_answer_that_was_found() -> None:
    history = history_of([Operation(0, "stop", (), None, 0, 1)])
    assert check(history, Endless(), options=Options(memory=4096)).answer == ILLEGAL
    growing = history_of([Operation(0, "go", (), None, at, at) for at in range(4)])
    verdict = check(growing, Endless(), options=Options(memory=4096))
    assert (verdict.answer, "states" in verdict.reason) == (UNKNOWN, True)


def hard_register() -> History:
    """Exchanges in any order, of which none can put the value that is read at the end."""
    return history_of(
        [
            *(Operation(at, "cas", (at % 5, (at * 7 + 1) % 5), True, 0, 100) for at in range(60)),
            Operation(0, "write", (0,), None, -2, -1),
            *(Operation(at, "write", (at % 5,), None, 0, 100) for at in range(60, 90)),
            Operation(0, "read", (), 7, 101, 102),
            Operation(0, "write", (7,), None, 103, 104),
        ]
    )


def test_time_ends_a_search_with_the_name_of_the_limit() -> None:
    late = Options(timeout=AT_ONCE, most_steps=10**9)
    verdict = check(HARD, Queue(), options=late)
    assert (verdict.answer, verdict.reason[:11]) == (UNKNOWN, "out of time")
    assert "a larger --timeout may help" in describe_verdict(HARD, verdict, Queue())
    # A kept checker has the deadline of one check only.
    history = HARD
    checker = ModelChecker(Queue(), history.signatures, history.values)
    assert check(history, Queue(), options=late, checker=checker).answer == UNKNOWN
    enough = Options(explain=False)
    assert check(history, Queue(), options=enough, checker=checker).answer == ILLEGAL


def test_time_that_is_over_leaves_an_answer_that_was_found() -> None:
    history = read_after_write(0, 1, 2, 3)
    verdict = check(history, Register(), options=Options(timeout=AT_ONCE))
    assert (verdict.answer, verdict.unexplained) == (ILLEGAL, "whether the core is minimal")
    assert check(history, Register()).unexplained == ""


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf"), "1"])
def test_a_timeout_is_a_number_of_seconds(timeout: Any) -> None:
    with pytest.raises(UsageError, match="should be a number of seconds > 0"):
        Options(timeout=timeout)


@pytest.mark.parametrize("name", ["most_steps", "memory", "workers"])
@pytest.mark.parametrize("limit", [0, -1, 1.5, "1"])
def test_a_limit_is_an_integer(name: str, limit: Any) -> None:
    limits: dict[str, Any] = {name: limit}
    with pytest.raises(UsageError, match=f"{name} is {limit!r}; it should be an integer >= 1"):
        Options(**limits)


def test_memory_for_no_state_is_an_answer() -> None:
    verdict = check(HARD, Queue(), options=Options(memory=1, monitors=False))
    assert (verdict.answer, verdict.reason) == (
        UNKNOWN,
        "the model's states take more than 1 bytes",
    )


@pytest.mark.parametrize(
    "stamps",
    [
        (0.1, 0.2, 0.3, 0.4),
        (1e18, 1e18 + 256, 1e18 + 512, 1e18 + 1024),
        (2**70, 2**70 + 1, 2**70 + 2, 2**70 + 3),
        (Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), 1),
        (Decimal("0.1"), Decimal("0.11"), Decimal("0.12"), Decimal("0.13")),
        (2**53, 2**53 + 1, 2**53 + 2, 2.0**54),
    ],
)
def test_stamps_of_any_numbers_keep_their_order(stamps: tuple[Any, ...]) -> None:
    """Truncated to integers, most of these operations would overlap, and be legal."""
    assert check(read_after_write(*stamps), Register()).answer == ILLEGAL
    one, two, three, four = stamps
    assert check(read_after_write(one, three, two, four), Register()).answer == LEGAL
    # At one stamp, operations overlap.
    assert check(read_after_write(one, two, two, four), Register()).answer == LEGAL


@pytest.mark.parametrize("stamp", ["noon", None, float("nan"), 1j])
def test_stamps_that_are_none_are_named(stamp: Any) -> None:
    with pytest.raises(UsageError, match="operation 0, write, was invoked at"):
        read_after_write(stamp, 1, 2, 3)


def test_threads_have_names() -> None:
    history = history_of(
        [
            Operation("writer", "write", (1,), None, 0, 1),
            Operation("reader 2", "read", (), None, 2, 3),
        ]
    )
    text = describe_verdict(history, check(history, Register()), Register())
    assert text.splitlines()[-2:] == [
        "thread writer    |- write(1) -|",
        "thread reader 2                *- read() -> None -*",
    ]
    large = [Operation(2**40, "write", (1,), None, 0, 1), Operation(-1, "read", (), 1, 2, 3)]
    assert [history_of(large).thread_name(at) for at in (0, 1)] == [str(2**40), "-1"]
    with pytest.raises(UsageError, match=r"the thread 1\.5; a thread is an integer or a name"):
        history_of([Operation(1.5, "read", (), None, 0, 1)])  # type: ignore[arg-type]


def test_operations_of_one_thread_follow_one_another() -> None:
    def two(end: int | None, later: int) -> History:
        return history_of(
            [Operation(3, "write", (1,), None, 0, end), Operation(3, "read", (), 1, later, 9)]
        )

    with pytest.raises(UsageError, match="operation 1, read, of thread 3 was invoked at 4, before"):
        two(5, 4)
    assert len(two(5, 5)) == 2
    assert len(two(None, 4)) == 2, "after a time-out the operation may still be under way"


def test_text_and_number_look_different() -> None:
    history = history_of(
        [
            Operation(0, "write", ("1",), None, 0, 1),
            Operation(1, "read", (), 1, 2, 3),
        ]
    )
    verdict = check(history, Register())
    assert verdict.answer == ILLEGAL
    text = describe_verdict(history, verdict, Register())
    assert "write('1')" in text and "read() -> 1" in text


def test_a_hard_register_ends_in_time() -> None:
    verdict = check(
        hard_register(), CasRegister(), options=Options(timeout=AT_ONCE, most_steps=10**9)
    )
    assert verdict.answer in (UNKNOWN, ILLEGAL)
    if verdict.answer == UNKNOWN:
        assert verdict.reason.startswith("out of time")
