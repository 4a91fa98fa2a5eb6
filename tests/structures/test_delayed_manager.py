from __future__ import annotations

import pytest

from pulsar_ml.harness.judges.judge import ModelJudge
from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.specs import answer, delayed_answers
from pulsar_ml.specs.delay import digest
from pulsar_ml.suites.delayed_manager import SUITE
from tests.answers import Row, history
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    fail_each_allocation,
    machine_test,
    run_threads,
)

TRACKED, DELIVER_NOW, REFUSED, CLOSED = range(4)
ALL = 40
MINE, ELSEWHERE, OTHER = 0, 1, 2  # two views of one topic, and one of another

TestMachine = machine_test("delayed_manager", also=("add_many",))


def started(**settings: int) -> Pair:
    chosen = {
        "tick": 10,
        "strict": 0,
        "lookahead": 0,
        "start": 0,
        "prune_interval": 0,
        "spread": 5,
        "era": 0,
    }
    chosen |= {"ledger_bits": 17, "clocks_apart": 0}
    return Pair("delayed_manager", chosen | settings)


def passed(pair: Pair, milliseconds: int) -> None:
    for _ in range(milliseconds // 40):
        pair.call("pass_time", 40)
    pair.call("pass_time", milliseconds % 40)


def kept(pair: Pair, view: int) -> int:
    """Messages that the topic of a view keeps."""
    return pair.call("topic", view).words[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("delayed_manager", seed, calls=300)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


def test_a_failed_allocation_changes_nothing() -> None:
    assert fail_each_allocation("delayed_manager", REFUSED) > 10


def test_a_message_is_kept_once_and_comes_to_each_view_of_its_topic_once() -> None:
    pair = started()
    pair.call("add", MINE, 5, 30)
    pair.call("add", OTHER, 5, 30)
    assert kept(pair, OTHER) == 1
    passed(pair, 30)
    for view, count in ((MINE, 1), (OTHER, 1), (ELSEWHERE, 0), (MINE, 0)):
        assert pair.call("scheduled", view, ALL).words[0] == count
    pair.instance.check()


def test_strict_messages_wait_for_their_time() -> None:
    """The proposal's branch rounds down, and so is early by up to a tick."""
    pair = started(strict=1)
    pair.call("add", MINE, 5, 21)
    passed(pair, 21)
    assert pair.call("has_message", MINE).words[0] == 0
    passed(pair, 3)
    assert pair.call("scheduled", MINE, ALL).words[:2] == (1, digest([5]))
    pair.instance.check()


@pytest.mark.parametrize("start", [-40, 0, 40])
def test_pruning_begins_with_the_first_chance_whatever_the_clock_says(start: int) -> None:
    pair = started(start=start, prune_interval=20)
    pair.call("add", MINE, 5, 60)
    pair.call("mark_delete", OTHER, 9)
    assert kept(pair, MINE) == (start + 60 > 0)
    passed(pair, 20)
    assert pair.call("mark_delete", MINE, 9).words == (1, 0, 0, 0)
    assert kept(pair, MINE) == 0
    pair.instance.check()


def test_nothing_is_pruned_while_a_view_has_marked_nothing() -> None:
    pair = started()
    pair.call("add", MINE, 5, 30)
    for view, message, left in ((MINE, 9, 1), (OTHER, 4, 1), (OTHER, 5, 0)):
        pair.call("mark_delete", view, message)
        assert kept(pair, MINE) == left
    pair.instance.check()


def test_pruning_is_throttled() -> None:
    pair = started(prune_interval=20)
    pair.call("scheduled", MINE, ALL)
    pair.call("add", MINE, 5, 60)
    pair.call("mark_delete", MINE, 9)
    passed(pair, 19)
    pair.call("mark_delete", OTHER, 9)
    assert kept(pair, MINE) == 1
    passed(pair, 1)
    pair.call("mark_delete", OTHER, 9)
    assert kept(pair, MINE) == 0
    pair.instance.check()


def test_the_timer_tells_only_views_with_a_message() -> None:
    pair = started()
    pair.call("mark_delete", OTHER, 9)
    pair.call("add", MINE, 5, 30)
    passed(pair, 24)
    assert pair.call("fire", MINE).words[0] == 1
    assert pair.call("fire", MINE).words[0] == -1
    pair.instance.check()


def test_the_last_close_forgets_and_the_next_view_begins_anew() -> None:
    pair = started()
    pair.call("add", MINE, 5, 30)
    pair.call("close", MINE)
    assert kept(pair, OTHER) == 1
    pair.call("close", OTHER)
    assert pair.call("add", MINE, 6, 30).status == CLOSED
    assert pair.call("scheduled", OTHER, ALL).status == CLOSED
    pair.call("open", MINE)
    assert pair.call("topic", MINE).words == (0, 0, 0, 0)
    assert pair.call("timer", MINE).words[0] == 0
    pair.instance.check()


def test_a_seek_back_returns_messages_once_more() -> None:
    pair = started()
    pair.call("mark_delete", MINE, 4)
    pair.call("add", MINE, 5, 30)
    passed(pair, 30)
    pair.call("scheduled", MINE, ALL)
    pair.call("mark_delete", MINE, 5)
    pair.call("mark_delete", MINE, 3)
    assert pair.call("scheduled", MINE, ALL).words[0] == 1
    pair.call("clear", MINE)
    assert pair.call("scheduled", MINE, ALL).words[0] == 1
    pair.instance.check()


def test_a_full_answer_goes_on_where_it_ended() -> None:
    pair = started()
    pair.call("add_many", MINE, 200, 60)
    passed(pair, 60)
    assert pair.call("scheduled", MINE, 30).words[:2] == (30, digest(range(30)))
    assert pair.call("count", MINE, 40).words[0] >= 40
    assert pair.call("scheduled", MINE, ALL).words[:2] == (170, digest(range(30, 200)))
    pair.instance.check()


def test_a_subscription_that_comes_back_gets_its_view_with_its_position() -> None:
    pair = started()
    for view in (MINE, OTHER):
        pair.call("mark_delete", view, 4)
    assert pair.call("open", MINE).words[0] == 0
    pair.call("add", MINE, 3, 30)
    pair.call("mark_delete", OTHER, 4)
    assert kept(pair, MINE) == 0  # the view has marked it: a second view would keep it for ever
    pair.instance.check()


def test_a_fire_prunes_when_all_views_have_a_message() -> None:
    pair = started(prune_interval=0)
    pair.call("add", MINE, 5, 30)
    pair.call("add", MINE, 9, 30)
    passed(pair, 30)
    pair.call("mark_delete", MINE, 9)
    pair.call("mark_delete", OTHER, 5)
    assert kept(pair, MINE) == 1
    assert pair.call("fire", MINE).words[0] == 1
    pair.instance.check()


# Negative controls.


@pytest.mark.parametrize(
    "mistake, invariant",
    [
        ("miscount", "I91"),
        ("disarm", "I95"),
        ("prune", "I97"),
        ("hide", "I94"),
        ("twin", "DM-10"),
    ],
)
def test_a_mistake_is_noticed_at_quiescence(mistake: str, invariant: str) -> None:
    pair = started()
    for view in (MINE, ELSEWHERE, OTHER):
        pair.call("scheduled", view, ALL)
    pair.call("add", MINE, 1, 30)
    pair.instance.call(mistake)
    with pytest.raises(InvariantViolation, match=invariant):
        pair.instance.check()


def test_an_array_that_should_have_become_runs_is_noticed() -> None:
    pair = started()
    for message in (*range(4), *range(10, 16), *range(4, 7)):
        pair.call("add", MINE, message, 30)
    assert pair.call("topic", MINE).words[:2] == (13, 1)
    pair.instance.call("loose")
    with pytest.raises(InvariantViolation, match="ES-4"):
        pair.instance.check()


def test_a_message_that_comes_early_is_noticed() -> None:
    pair = started()
    pair.call("add", MINE, 1, 12)
    passed(pair, 6)
    pair.instance.call("early")
    with pytest.raises(InvariantViolation, match="I93"):
        pair.instance.call("scheduled", MINE, ALL)


def test_a_trigger_after_the_close_is_noticed() -> None:
    pair = started()
    with pytest.raises(InvariantViolation, match="I100"):
        pair.instance.call("trigger_closed")


# The judge of concurrent answers: what it accepts and refuses.

SETTINGS = {
    "tick": 1,
    "strict": 1,
    "lookahead": 0,
    "start": 0,
    "prune_interval": 0,
    "spread": 5,
    "era": 0,
}
SETTINGS |= {"ledger_bits": 17, "clocks_apart": 0}


def refused(*rows: Row) -> str:
    return ModelJudge(delayed_answers.Model).message(history(rows, SETTINGS), 2)


def add(message: int, start: int, end: int, *, thread: int = 0, status: int = TRACKED) -> Row:
    return thread, "add", (MINE, message, 1), answer(status), start, end


def wait(milliseconds: int, at: int, *, thread: int = 1) -> Row:
    return thread, "pass_time", (milliseconds,), answer(TRACKED), at, at + 1


def came(messages: list[int], start: int, end: int, *, view: int = MINE) -> Row:
    return 1, "scheduled", (view, ALL), answer(TRACKED, len(messages), digest(messages)), start, end


def call(operation: str, at: int, *words: int, status: int = TRACKED, thread: int = 1) -> Row:
    arguments = {"count": (MINE, 40), "open": (OTHER,), "mark_delete": (MINE, 5)}.get(
        operation, (MINE,)
    )
    return thread, operation, arguments, answer(status, *words), at, at + 1


@pytest.mark.parametrize(
    ("rows", "legal"),
    [
        ([add(1, 1, 2), wait(5, 3), came([1], 5, 6)], True),
        ([add(1, 1, 2), wait(5, 3), came([], 5, 6)], False),  # lost
        ([add(1, 1, 2), came([1], 5, 6)], False),  # early
        ([wait(5, 3), came([1], 5, 6)], False),  # never added
        ([add(1, 1, 2), wait(5, 3), came([1], 5, 6), came([1], 7, 8)], False),  # twice
        ([add(1, 1, 2), wait(5, 3), came([1], 5, 6), call("clear", 7, 1), came([1], 9, 10)], True),
        (
            [add(1, 1, 2), wait(5, 3), came([1], 5, 6), add(2, 7, 8), came([1, 2], 9, 10)],
            True,
        ),  # behind
        ([add(1, 1, 2), add(2, 3, 4), wait(5, 5), came([2, 1], 7, 8)], False),  # out of order
        ([add(1, 1, 9), wait(5, 3), came([1], 5, 6)], True),  # on its way
        ([add(1, 1, 9), wait(5, 3), came([], 5, 6)], True),
        ([add(1, 1, 9, status=CLOSED), call("close", 3), wait(5, 5)], True),
        ([add(1, 1, 9, status=CLOSED), wait(5, 3), came([1], 5, 6), call("close", 7)], False),
        ([add(1, 1, 2), call("count", 3, 1)], True),
        ([add(1, 1, 2), call("count", 3, 2)], False),
        ([add(1, 1, 2), call("count", 3, 0)], False),
        ([add(1, 1, 2), call("mark_delete", 3, 1), call("count", 5, 0)], True),
        ([call("close", 1), call("count", 3, -1)], True),
        ([call("close", 1), call("count", 3, 0)], False),  # a closed view answers
        ([call("count", 1, -1)], False),  # nobody closed it
        ([call("close", 1), call("close", 3)], False),  # closed twice
        ([call("close", 1), call("close", 3, status=CLOSED)], True),
        ([call("open", 1, 1)], False),  # it is open
    ],
)
def test_answers_are_judged_by_what_others_may_do_meanwhile(rows: list[Row], legal: bool) -> None:
    assert (refused(*rows) == "") is legal


@pytest.mark.parametrize(
    ("setters", "ordered", "legal"),
    [
        ((0, 1), False, True),  # nothing orders the stores: the first one may stay
        ((0, 1), True, False),  # sequentially consistent: the second one stays
        ((1, 1), False, False),  # its own older one
        ((1,), False, False),  # the first tick of all
    ],
)
def test_a_tick_may_stay_that_another_thread_set_earlier(
    setters: tuple[int, ...], ordered: bool, legal: bool
) -> None:
    """A message due in one millisecond is delivered with a tick of 1 and kept with one of 0."""
    rows: list[Row] = [
        (thread, "set_tick", (MINE, tick), answer(TRACKED), 2 * at, 2 * at + 1)
        for at, (thread, tick) in enumerate(zip(setters, (1, 0)[-len(setters) :], strict=True))
    ]
    rows.append(add(1, 8, 9, thread=1, status=DELIVER_NOW))
    settings = {**SETTINGS, "tick": 15, "strict": 0}
    judge = ModelJudge(delayed_answers.Model)
    message = judge.message(history(rows, settings), 2, fresh=ordered)
    assert (message == "") is legal
