from __future__ import annotations

import pytest

from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.specs.delay import digest
from pulsar_ml.suites.delayed_tracker import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    fail_each_allocation,
    machine_test,
    run_threads,
)

TRACKED, DELIVER_NOW, REFUSED = 0, 1, 2
ALL = 40
MOST_DELAY = 64  # names the end of time

TestMachine = machine_test("delayed_tracker", also=("add_many",))


def started(**settings: int) -> Pair:
    chosen = {"tick": 10, "strict": 0, "lookahead": 0, "start": 0, "spread": 5}
    return Pair("delayed_tracker", chosen | settings)


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("delayed_tracker", seed, calls=300)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


def test_a_failed_allocation_changes_nothing() -> None:
    assert fail_each_allocation("delayed_tracker", REFUSED) > 10


def test_strict_messages_wait_for_their_time() -> None:
    """Buckets of 8: a message of 21 is in the one of 24 and not in that of 16."""
    pair = started(strict=1)
    pair.call("add", 5, 21)
    pair.call("pass_time", 21)
    assert pair.call("has_message").words[0] == 0
    pair.call("pass_time", 3)
    assert pair.call("scheduled", ALL).words == (1, digest([5]), 0, 0)
    assert pair.call("count").words[0] == 0
    pair.instance.check()


def test_messages_that_are_not_strict_come_at_most_a_tick_early() -> None:
    pair = started()
    pair.call("add", 5, 25)
    pair.call("pass_time", 12)
    assert pair.call("scheduled", ALL).words[0] == 0
    pair.call("pass_time", 9)
    assert pair.call("scheduled", ALL).words[0] == 1
    pair.instance.check()


def test_a_message_at_the_end_of_time_is_kept() -> None:
    """Rounding up saturates (#26012 rounds up)."""
    pair = started(strict=1)
    assert pair.call("add", 1, MOST_DELAY).status == TRACKED
    pair.call("pass_time", 12)
    assert pair.call("has_message").words[0] == 0
    assert pair.call("count").words[0] == 1
    pair.instance.check()


def test_a_message_that_comes_twice_counts_once() -> None:
    """The case in which count and map disagreed in #25617."""
    pair = started()
    pair.call("add", 1, 30)
    pair.call("add", 1, 30)
    assert pair.call("count").words[0] == 1
    pair.call("pass_time", 24)
    assert pair.call("scheduled", ALL).words[:1] == (1,)
    pair.instance.check()


def test_a_timer_that_was_cancelled_is_armed_again() -> None:
    """The case of #25996: the timer is cancelled, the first message is due, then one for later is
    added.
    """
    pair = started(strict=1, tick=1)
    pair.call("add", 1, 5)
    pair.call("add", 2, 7)
    assert pair.call("timer").words == (1, 5, 0, 0)
    pair.call("pass_time", 8)
    pair.call("scheduled", 1)
    assert pair.call("timer").words[0] == 0
    pair.call("scheduled", ALL)
    pair.call("add", 3, 9)
    assert pair.call("timer").words == (1, 17, 0, 0)
    pair.instance.check()


def test_a_fired_timer_is_disarmed_and_waits_for_a_tick() -> None:
    pair = started(strict=1, tick=8)
    pair.call("add", 1, 16)
    assert pair.call("fire").words[0] == 0
    pair.call("pass_time", 16)
    assert pair.call("fire").words[0] == 1
    assert pair.call("timer").words[0] == 0
    pair.call("scheduled", ALL)
    pair.call("add", 2, 1)
    assert pair.call("timer").words == (1, 24, 0, 0)
    pair.instance.check()


def test_a_fixed_delay_pauses_until_a_message_is_due() -> None:
    pair = started(tick=1, lookahead=2)
    pair.call("add", 1, 10)
    assert pair.call("should_pause").words[0] == 0
    pair.call("add", 2, 10)
    assert pair.call("should_pause").words[0] == 1
    pair.call("pass_time", 12)
    assert pair.call("should_pause").words[0] == 0
    pair.call("add", 3, -1)
    pair.call("add", 4, 40)
    pair.call("scheduled", 2)
    assert pair.call("should_pause").words[0] == 0
    pair.instance.check()


def test_a_changed_tick_leaves_buckets_as_they_are() -> None:
    pair = started(tick=1)
    pair.call("add", 1, 35)
    pair.call("set_tick", 32)
    pair.call("add", 1, 35)
    assert pair.call("count").words[0] == 1
    pair.instance.check()


@pytest.mark.parametrize("first", [0, 2, 3], ids=["runs", "arrays and bitmaps", "sparse"])
def test_thousands_of_messages_of_one_time_come_in_order(first: int) -> None:
    pair = started()
    pair.call("add_many", first, 6000, 60)
    pair.call("add_many", first + 4, 6000, 60)
    pair.call("count")
    pair.call("pass_time", 40)
    pair.call("pass_time", 20)
    pair.call("scheduled", 39)
    pair.call("count")
    pair.call("scheduled", ALL)
    pair.instance.check()


# Negative controls.


@pytest.mark.parametrize(
    "mistake, invariant",
    [
        ("miscount", "I91"),
        ("lose", "I94"),
        ("forget_target", "I96"),
        ("late_timer", "I95"),
        ("disown", "I98"),
    ],
)
def test_a_mistake_is_noticed_at_quiescence(mistake: str, invariant: str) -> None:
    pair = started()
    pair.call("add", 1, 30)
    pair.instance.call(mistake)
    with pytest.raises(InvariantViolation, match=invariant):
        pair.instance.check()


def test_a_message_that_comes_early_is_noticed() -> None:
    pair = started()
    pair.call("add", 1, 12)
    pair.call("pass_time", 6)
    pair.instance.call("early")
    with pytest.raises(InvariantViolation, match="I93"):
        pair.instance.call("scheduled", ALL)


def test_a_clear_forgets_that_delays_differed() -> None:
    """Messages of one delay pause deliveries again, as in 5.0.1."""
    pair = started(lookahead=1)
    pair.call("add", 1, 60)
    pair.call("add", 2, 30)
    assert pair.call("should_pause").words[0] == 0
    pair.call("clear")
    pair.call("add", 3, 50)
    assert pair.call("should_pause").words[0] == 1
    pair.instance.check()


def test_a_bucket_that_is_due_has_no_timer() -> None:
    """The dispatcher was told of the first message; the releases set no timer either."""
    pair = started(tick=3, strict=1)
    pair.call("add", 6, 8)
    pair.call("pass_time", 8)
    assert pair.call("fire").words[0] == 1
    pair.call("add", 1, 20)
    assert pair.call("timer").words[0] == 0
    pair.instance.check()
