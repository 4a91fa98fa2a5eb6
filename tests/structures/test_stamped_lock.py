from __future__ import annotations

import pytest

from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.suites.stamped_lock import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    machine_test,
    run_threads,
)

DONE, CHANGED = range(2)

TestMachine = machine_test("stamped_lock", also=("read_crowd",))


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("stamped_lock", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


def test_a_stamp_ends_with_the_next_write_section() -> None:
    pair = Pair("stamped_lock", {})
    pair.call("stamp_keep")
    assert pair.call("stamp_check").status == DONE
    pair.call("write", 5, thread=1)
    assert pair.call("stamp_check").status == CHANGED


def test_shared_readers_leave_stamps_valid() -> None:
    pair = Pair("stamped_lock", {})
    pair.call("stamp_keep")
    pair.call("read_shared", thread=1)
    assert pair.call("stamp_check").status == DONE


def test_14_shared_readers_fit_and_carry_into_nothing() -> None:
    pair = Pair("stamped_lock", {})
    pair.call("write", 1)
    pair.call("read_crowd", 14)
    assert pair.call("write", 1).words == (2, 2, 0, 0)


def test_a_stamp_that_was_never_taken_does_not_validate() -> None:
    assert Pair("stamped_lock", {}).call("stamp_check").status == CHANGED


# Negative controls.


@pytest.mark.parametrize("reader", ["read_shared", "read_optimistic", "stamp_keep"])
def test_fields_of_two_write_sections_are_noticed(reader: str) -> None:
    instance = Pair("stamped_lock", {}).instance
    instance.call("write_torn", 1)
    with pytest.raises(InvariantViolation, match="I9"):
        instance.call(reader)
    with pytest.raises(InvariantViolation, match="I9"):
        instance.check()


def test_a_version_that_does_not_grow_is_noticed_by_an_old_stamp() -> None:
    instance = Pair("stamped_lock", {}).instance
    instance.call("stamp_keep")
    instance.call("write_uncounted", 1, thread=1)
    with pytest.raises(InvariantViolation, match="I9"):
        instance.call("stamp_check")


def test_a_version_that_does_not_grow_is_noticed_by_the_next_writer() -> None:
    instance = Pair("stamped_lock", {}).instance
    instance.call("write_uncounted", 1)
    with pytest.raises(InvariantViolation, match="I29"):
        instance.call("write", 1)


def test_a_version_that_does_not_grow_is_noticed_at_quiescence() -> None:
    instance = Pair("stamped_lock", {}).instance
    instance.call("write_uncounted", 1)
    with pytest.raises(InvariantViolation, match="I29"):
        instance.check()


@pytest.mark.parametrize(("operation", "arguments"), [("write", (1,)), ("read_shared", ())])
def test_a_writer_that_is_not_alone_is_noticed(operation: str, arguments: tuple[int, ...]) -> None:
    instance = Pair("stamped_lock", {}).instance
    instance.call("enter_unlocked", thread=1)
    with pytest.raises(InvariantViolation, match="SL-2"):
        instance.call(operation, *arguments)
