from __future__ import annotations

import pytest

from pulsar_ml.harness.histories.history import Call
from pulsar_ml.harness.models.sequential import Sequential
from pulsar_ml.harness.subjects.subject import InvariantViolation
from pulsar_ml.specs import Answer, answer, entry
from pulsar_ml.suites.entry import SUITE
from tests.structures.machine import (
    SEEDS,
    TRIAL_SEEDS,
    Pair,
    compare_program,
    fail_each_allocation,
    machine_test,
    run_threads,
)

DONE, NO_MEMORY, NOT_HELD, HANDS_FULL, LAST = range(5)

TestMachine = machine_test("entry")


@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs_answer_as_the_model(seed: int) -> None:
    compare_program("entry", seed)


@pytest.mark.parametrize("seed", TRIAL_SEEDS)
def test_threads_keep_the_invariants(seed: int) -> None:
    run_threads(SUITE, seed)


@pytest.mark.parametrize("seed", [1, 2])
def test_each_failed_allocation_changes_nothing(seed: int) -> None:
    assert fail_each_allocation("entry", NO_MEMORY, seed=seed) >= 6


def test_a_copy_keeps_the_bytes_after_the_original_is_gone() -> None:
    pair = Pair("entry", {"limit": 8})
    pair.call("new", 200, 0, 0)
    pair.call("copy", 0, 1)
    assert pair.call("release", 0).status == LAST
    assert pair.call("read", 0).status == DONE


def test_a_counting_copy_marks_its_read_once_however_often_it_was_retained() -> None:
    pair = Pair("entry", {"limit": 8})
    pair.call("new", 10, 1, 0)
    pair.call("copy", 0, 1)
    pair.call("retain", 1)
    assert pair.call("expected", 0).words[1] == 1
    pair.call("release", 2)
    assert pair.call("expected", 0).words[1] == 1
    assert pair.call("release", 1).status == LAST
    assert pair.call("expected", 0).words[1] == 0


def test_a_copy_that_does_not_count_marks_no_read() -> None:
    pair = Pair("entry", {"limit": 8})
    pair.call("new", 10, 1, 0)
    pair.call("copy", 0, 0)
    assert pair.call("release", 1).status == LAST
    assert pair.call("expected", 0).words[1] == 1


def test_an_entry_without_bytes_is_an_entry() -> None:
    pair = Pair("entry", {"limit": 8})
    pair.call("new", 0, 0, 1)
    assert pair.call("read", 0).status == DONE


def test_a_copy_without_an_object_left_changes_nothing() -> None:
    pair = Pair("entry", {"limit": 2})
    pair.call("new", 7, 2, 1)
    assert pair.call("copy", 0, 1).status == NO_MEMORY
    assert pair.call("expected", 0).words[1] == 1
    assert pair.call("release", 0).status == LAST


def test_several_references_are_released_at_once() -> None:
    pair = Pair("entry", {"limit": 4})
    pair.call("new", 7, 0, 0)
    pair.call("retain", 0)
    pair.call("retain", 0)
    assert pair.call("release_all", 1) == (LAST, (0, 0, 0, 0))


# Negative controls.


def test_a_changed_byte_is_noticed_by_a_holder() -> None:
    instance = Pair("entry", {"limit": 4}).instance
    instance.call("new", 7, 0, 0)
    instance.call("copy", 0, 0)
    instance.call("write", 0)
    with pytest.raises(InvariantViolation, match="I2"):
        instance.call("read", 1)


def test_a_changed_byte_is_noticed_at_quiescence() -> None:
    instance = Pair("entry", {"limit": 4}).instance
    instance.call("new", 7, 0, 0)
    instance.call("write", 0)
    with pytest.raises(InvariantViolation, match="I2"):
        instance.check()


def test_an_entry_reused_under_its_holder_is_noticed() -> None:
    instance = Pair("entry", {"limit": 4}).instance
    instance.call("new", 7, 0, 0)
    instance.call("release_and_keep", 0)
    instance.call("new", 7, 0, 0, thread=1)
    with pytest.raises(InvariantViolation, match="I18"):
        instance.call("read", 0)


def test_a_reference_too_few_is_noticed_at_quiescence() -> None:
    instance = Pair("entry", {"limit": 4}).instance
    instance.call("new", 7, 0, 0)
    instance.call("retain", 0)
    instance.call("release_and_keep", 0)
    with pytest.raises(InvariantViolation, match="I17"):
        instance.check()


def test_a_release_below_zero_is_noticed() -> None:
    instance = Pair("entry", {"limit": 4}).instance
    instance.call("new", 7, 0, 0)
    instance.call("retain", 0)
    instance.call("release_and_keep", 0)
    with pytest.raises(InvariantViolation, match="I13"):
        instance.call("release_all", 0)


def test_an_unexplained_mark_is_noticed_at_quiescence() -> None:
    instance = Pair("entry", {"limit": 4}).instance
    instance.call("new", 7, 2, 0)
    instance.call("mark_read_unseen", 0)
    with pytest.raises(InvariantViolation, match="I69"):
        instance.check()


def test_a_callback_that_runs_twice_is_noticed() -> None:
    instance = Pair("entry", {"limit": 4}).instance
    instance.call("new", 7, 0, 1)
    with pytest.raises(InvariantViolation, match="I20"):
        instance.call("callback_twice", 0)


def test_a_read_count_that_outlives_its_entries_is_noticed_at_quiescence() -> None:
    instance = Pair("entry", {"limit": 4}).instance
    instance.call("new", 7, 2, 0)
    instance.call("retain_read_count", 0)
    with pytest.raises(InvariantViolation, match="I70"):
        instance.check()


def test_a_read_count_that_goes_before_its_entries_is_noticed() -> None:
    instance = Pair("entry", {"limit": 4}).instance
    instance.call("new", 7, 2, 0)
    instance.call("release_read_count", 0)
    with pytest.raises(InvariantViolation, match="I70"):
        instance.call("read", 0)
    instance.call("new", 7, 1, 0, thread=1)
    with pytest.raises(InvariantViolation, match="I70"):
        instance.call("read", 0)


def test_a_lost_entry_is_noticed_at_quiescence() -> None:
    instance = Pair("entry", {"limit": 4}).instance
    instance.call("new", 7, 0, 0)
    instance.call("lose", 0)
    with pytest.raises(InvariantViolation, match="I17"):
        instance.check()


# Parsed values.


def test_a_parsed_value_is_attached_once_and_shared_by_later_copies() -> None:
    pair = Pair("entry", {"limit": 8})
    pair.call("new", 200, 0, 0)
    pair.call("copy", 0, 1)
    assert pair.call("parse", 0).words[1] == 1
    assert pair.call("parse", 0).words[1] == 0
    assert pair.call("parse", 1).words[1] == 1
    pair.call("copy", 1, 0)
    assert pair.call("parse", 2).words[1] == 0
    assert pair.call("release", 1).status == LAST
    assert pair.call("read", 1).status == DONE
    pair.instance.check()


def is_legal(scarce: bool, *calls: tuple[str, tuple[int, ...], Answer]) -> bool:
    """True if the model allows these calls of one thread."""
    settings = {"chunk_bits": 0, "limit": 8, "counts_of_4": 0, "shared": 0}
    states = Sequential(entry.Model, settings, 1, scarce=scarce)
    reached = [states.start]
    for name, arguments, result in calls:
        call = Call(name, arguments, result, 0)
        reached = [after for state in reached for after in states.step(state, call)]
    return bool(reached)


def test_a_parse_gets_no_memory_only_where_allocations_fail_and_before_a_value_came() -> None:
    new = ("new", (8, 0, 0), answer(DONE, 1))
    refused, attached = ("parse", (0,), answer(NO_MEMORY, 1)), ("parse", (0,), answer(DONE, 1, 1))
    assert is_legal(True, new, refused, attached)
    assert not is_legal(True, new, attached, refused)
    assert not is_legal(False, new, refused, attached)


def test_a_value_that_is_released_twice_is_noticed() -> None:
    pair = Pair("entry", {"limit": 8})
    pair.call("new", 8, 0, 0)
    pair.call("parse", 0)
    pair.instance.call("release_value", 0)
    with pytest.raises(InvariantViolation, match="EN-7"):
        pair.instance.check()
