"""The Python face of a native subject table, on the toys."""

from __future__ import annotations

import gc
from types import ModuleType
from typing import Any, cast

import pytest

from pulsar_ml.harness.subjects.subject import Instance, InvariantViolation, Subject


def test_a_subject_shows_what_its_table_says(toys: ModuleType) -> None:
    subject = toys.SUBJECTS["owned"]
    assert (subject.name, subject.summary) == ("owned", "Has an exclusive role.")
    assert subject.build_id == toys.BUILD_ID
    assert [
        (operation.name, operation.code, operation.weight, operation.role)
        for operation in subject.operations
    ] == [
        ("offer", 0, 3, 0),
        ("poll", 1, 3, 1),
        ("rare", 2, 0, 0),
    ]
    assert [argument.name for argument in subject.operation("offer").arguments] == [
        "key",
        "wide",
        "far",
    ]
    assert subject.operation("offer").arguments[0][1:] == (-5, 5)
    assert subject.settings[0] == ("start", 0, 100)
    assert (subject.max_threads, toys.SUBJECTS["lonely"].max_threads) == (0, 2)


def test_an_unknown_operation_is_answered_with_the_known_ones(toys: ModuleType) -> None:
    with pytest.raises(KeyError, match="no operation 'fly'.*add, read"):
        toys.SUBJECTS["counter"].operation("fly")


def test_calls_return_status_and_words(toys: ModuleType) -> None:
    instance = toys.SUBJECTS["counter"].create(settings={"start": 3})
    assert instance.call("add", 4).words == (4, 0, 0, 0)
    assert instance.call("read") == (0, (4, 0, 0, 0))
    instance.check()


def test_a_check_raises_what_it_found(toys: ModuleType) -> None:
    toys.select_mutant(None)
    instance = toys.SUBJECTS["racy"].create(threads=1)
    instance.call("add", 5)
    instance.check()
    tattler = toys.SUBJECTS["tattler"].create(settings={"start": 1})
    tattler.call("step", 0)
    with pytest.raises(InvariantViolation, match="T2: the number of the call is 1") as raised:
        tattler.call("step", 0)
    assert raised.value.invariant == "T2"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [(("add",), TypeError), (("add", 1, 2), TypeError), (("fly",), KeyError)],
)
def test_wrong_calls_are_refused(toys: ModuleType, arguments: Any, error: Any) -> None:
    instance = toys.SUBJECTS["counter"].create()
    with pytest.raises(error):
        instance.call(*arguments)
    assert instance.call("read").words[0] == 0


def test_a_thread_number_outside_the_instance_is_refused(toys: ModuleType) -> None:
    with pytest.raises(ValueError, match="thread 2 is outside 0..1"):
        toys.SUBJECTS["counter"].create(threads=2).call("read", thread=2)


@pytest.mark.parametrize(
    ("subject", "options", "message"),
    [
        ("counter", {"threads": 0}, "0 threads for"),
        ("lonely", {"threads": 3}, "3 threads for subject 'lonely'; it takes 1 to 2"),
        ("counter", {"settings": {"start": 101}}, "start=101.*outside 0..100"),
        ("counter", {"settings": {"stop": 1}}, "no setting 'stop'; it has: start"),
    ],
)
def test_wrong_creations_are_refused(
    toys: ModuleType, subject: Any, options: Any, message: Any
) -> None:
    with pytest.raises(ValueError, match=message):
        toys.SUBJECTS[subject].create(**options)


def test_a_failed_allocation_is_a_memory_error(toys: ModuleType) -> None:
    toys.fail_allocation_after(0)
    with pytest.raises(MemoryError, match="counter"):
        toys.SUBJECTS["counter"].create()
    toys.SUBJECTS["counter"].create()


def test_a_table_of_another_version_is_not_taken(toys: ModuleType) -> None:
    with pytest.raises(ImportError, match="rebuild the module"):
        toys.wrap_unknown_abi()


def test_subjects_are_not_made_by_hand() -> None:
    with pytest.raises(TypeError):
        Subject()
    with pytest.raises(TypeError):
        Instance(cast(Any, None), 1, {})


def test_an_instance_that_is_part_of_a_cycle_is_destroyed(toys: ModuleType) -> None:
    cycle = [toys.SUBJECTS["counter"].create()]
    cycle.append(cycle)
    del cycle
    gc.collect()
