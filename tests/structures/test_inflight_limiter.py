from __future__ import annotations

import pytest

from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.suites.inflight_limiter import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    fail_each_allocation,
    machine_test,
    run_threads,
)

GRANTED, WAITING, REFUSED, NOTHING, FULL = range(5)

TestMachine = machine_test("inflight_limiter")


def started(**settings: int) -> Pair:
    return Pair("inflight_limiter", {"maximum": 40, "timeout": 10, "queue_size": 4, **settings})


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("inflight_limiter", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


@pytest.mark.parametrize("seed", [1, 2])
def test_each_failed_allocation_changes_nothing(seed: int) -> None:
    assert fail_each_allocation("inflight_limiter", REFUSED, seed=seed) >= 3


def test_permits_are_taken_and_come_back() -> None:
    pair = started()
    assert pair.call("acquire", 30, 0) == (GRANTED, (10, 0, 0, 0))
    assert pair.call("release", 0) == (GRANTED, (40, 0, 0, 0))


def test_a_request_that_does_not_fit_waits_and_is_served_in_order() -> None:
    pair = started()
    pair.call("acquire", 40, 0)
    assert pair.call("acquire", 30, 0, thread=1) == (WAITING, (0, 1, 0, 0))
    assert pair.call("acquire", 20, 0, thread=2) == (WAITING, (0, 2, 0, 0))
    # The first one fits, the second does not.
    assert pair.call("release", 0) == (GRANTED, (10, 1, 1, 0))
    assert pair.call("release", 0, thread=1) == (GRANTED, (20, 0, 2, 0))


def test_one_release_serves_everything_that_fits() -> None:
    pair = started()
    pair.call("acquire", 40, 0)
    for thread in (1, 2):
        pair.call("acquire", 20, 0, thread=thread)
    assert pair.call("release", 0) == (GRANTED, (0, 0, 2, 0))


def test_a_request_that_fits_does_not_wait_behind_others() -> None:
    pair = started()
    pair.call("acquire", 30, 0)
    pair.call("acquire", 20, 0, thread=1)
    assert pair.call("acquire", 10, 0, thread=2).status == GRANTED


def test_a_full_queue_refuses_with_nothing_to_give_back() -> None:
    pair = started(queue_size=1)
    pair.call("acquire", 40, 0)
    pair.call("acquire", 1, 0, thread=1)
    assert pair.call("acquire", 1, 0, thread=2) == (REFUSED, (0, 1, 0, 0))
    assert pair.call("release", 0, thread=2).status == NOTHING
    pair.instance.check()


def test_a_request_fails_at_its_timeout() -> None:
    pair = started()
    pair.call("acquire", 40, 0)
    pair.call("acquire", 1, 0, thread=1)
    assert pair.call("expire", 9).words == (0, 1, 0, 1)
    assert pair.call("expire", 1).words == (0, 0, 1, -1)
    assert pair.call("release", 0, thread=1).words[0] == 0
    assert pair.call("release", 0).words[0] == 40


def test_what_fits_behind_a_request_that_failed_is_granted_at_once() -> None:
    pair = started()
    pair.call("acquire", 15, 0)
    pair.call("acquire", 15, 0)
    pair.call("acquire", 40, 0, thread=1)
    pair.call("expire", 5)
    pair.call("acquire", 20, 0, thread=2)
    # 25 remain, but the large one is first.
    assert pair.call("release", 1).words == (25, 2, 0, 0)
    assert pair.call("expire", 5).words == (5, 0, 2, -1)


def test_a_request_above_the_maximum_gets_all_there_is_when_nothing_is_in_flight() -> None:
    pair = started(maximum=20)
    assert pair.call("acquire", 30, 0) == (GRANTED, (0, 0, 0, 0))
    assert pair.call("release", 0).words[0] == 20
    pair.instance.check()


def test_a_request_above_the_maximum_waits_until_nothing_is_in_flight() -> None:
    pair = started(maximum=20)
    pair.call("acquire", 5, 0)
    pair.call("acquire", 5, 0)
    assert pair.call("acquire", 30, 0, thread=1) == (WAITING, (10, 1, 0, 0))
    assert pair.call("release", 0).words[:2] == (15, 1)
    assert pair.call("release", 1) == (GRANTED, (0, 0, 1, 0))
    assert pair.call("release", 0, thread=1).words[0] == 20
    pair.instance.check()


@pytest.mark.parametrize("timeout", [0, -1])
def test_without_a_timeout_requests_wait(timeout: int) -> None:
    pair = started(timeout=timeout)
    pair.call("acquire", 40, 0)
    pair.call("acquire", 30, 0, thread=1)
    for _ in range(3):
        assert pair.call("expire", 12).words == (0, 1, 0, -1)
    assert pair.call("release", 0) == (GRANTED, (10, 0, 1, 0))


def test_a_refused_grant_gives_its_permits_back_and_serves_the_next() -> None:
    pair = started()
    pair.call("acquire", 40, 0)
    pair.call("acquire", 40, 1, thread=1)
    pair.call("acquire", 25, 0, thread=2)
    assert pair.call("release", 0) == (GRANTED, (15, 0, 2, 0))
    assert pair.call("release", 0, thread=2).words[0] == 40


def test_permits_go_back_with_the_last_copy_wherever_it_is() -> None:
    pair = started()
    pair.call("acquire", 40, 0)
    pair.call("share", 0, 3)
    pair.call("pass_on", 0)
    pair.call("drop", 0)
    pair.call("drop", 0)
    assert pair.call("pass_on", 0, thread=1).words[0] == 0
    assert pair.call("drop", 0, thread=1).words[0] == 40


@pytest.mark.parametrize("maximum", [0, -1])
def test_without_a_limit_everything_is_granted(maximum: int) -> None:
    pair = started(maximum=maximum)
    assert [pair.call("acquire", 40, 0).status for _ in range(5)] == [GRANTED] * 4 + [FULL]
    pair.call("release", 0)
    pair.instance.check()


# Negative controls.


def test_permits_released_twice_are_noticed() -> None:
    pair = started()
    pair.call("acquire", 30, 0)
    pair.instance.call("release_and_keep", 0)
    with pytest.raises(InvariantViolation, match="I87"):
        pair.instance.call("release_and_keep", 0)


def test_lost_permits_are_noticed_at_quiescence() -> None:
    pair = started()
    pair.call("acquire", 30, 0)
    pair.instance.call("lose", 0)
    with pytest.raises(InvariantViolation, match="I88"):
        pair.instance.check()


def test_a_request_told_twice_is_noticed() -> None:
    pair = started()
    pair.call("acquire", 30, 0)
    with pytest.raises(InvariantViolation, match="I82"):
        pair.instance.call("tell_again", 0)


def test_a_request_left_waiting_beside_free_permits_is_noticed() -> None:
    pair = started()
    pair.call("acquire", 40, 0)
    pair.call("acquire", 10, 0, thread=1)
    with pytest.raises(InvariantViolation, match="I90"):
        pair.instance.call("forget_to_grant", 0)
