"""Programs follow from their seed and honour mix, ranges, roles and settings."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.subjects.program import CALL, Program, possible_pairs

SEEDS = st.integers(0, 2**64 - 1)


def codes(program: Program) -> list[set[int]]:
    return [set(calls["code"].tolist()) for calls in program.threads]


def test_the_program_of_a_seed_never_changes(toys: ModuleType) -> None:
    program = Program.generate(toys.SUBJECTS["owned"], 17, threads=3, operations=50)
    assert program.digest() == "495c1eaf4fa37aa0"


def test_the_layout_is_that_of_the_native_call() -> None:
    assert CALL.itemsize == 32
    assert CALL.fields is not None
    assert [CALL.fields[name][1] for name in ("code", "noise", "arguments")] == [0, 4, 8]


@pytest.mark.parametrize("seed", range(20))
def test_equal_arguments_make_equal_programs_and_seeds_differ(toys: ModuleType, seed: Any) -> None:
    subject = toys.SUBJECTS["owned"]
    first = Program.generate(subject, seed, threads=2, operations=30)
    assert first == Program.generate(subject, seed, threads=2, operations=30)
    assert first != Program.generate(subject, seed + 1, threads=2, operations=30)


def test_a_longer_program_begins_like_the_shorter_one(toys: ModuleType) -> None:
    short = Program.generate(toys.SUBJECTS["owned"], 5, threads=3, operations=10)
    long = Program.generate(toys.SUBJECTS["owned"], 5, threads=3, operations=500)
    for few, many in zip(short.threads, long.threads, strict=True):
        assert few.tobytes() == many[: len(few)].tobytes()


def test_noise_changes_nothing_but_the_noise(toys: ModuleType) -> None:
    quiet = Program.generate(toys.SUBJECTS["owned"], 8, threads=3, operations=400, noise=False)
    noisy = Program.generate(toys.SUBJECTS["owned"], 8, threads=3, operations=400, noise=True)
    for still, loud in zip(quiet.threads, noisy.threads, strict=True):
        assert not still["noise"].any()
        assert np.array_equal(still["code"], loud["code"])
        assert np.array_equal(still["arguments"], loud["arguments"])


def test_every_kind_of_noise_occurs(toys: ModuleType) -> None:
    noise = np.concatenate(
        [
            calls["noise"]
            for seed in range(8)
            for calls in Program.generate(
                toys.SUBJECTS["counter"], seed, threads=4, operations=5000
            ).threads
        ]
    )
    assert (noise == 0).mean() > 0.9
    assert ((noise > 0) & (noise <= 1024)).any()
    assert (noise == -1).any()
    assert (noise <= -2).any()
    assert noise.max() <= 1024


@given(seed=SEEDS)
def test_arguments_stay_in_their_ranges(toys: ModuleType, seed: Any) -> None:
    subject = toys.SUBJECTS["owned"]
    for calls in Program.generate(subject, seed, threads=3, operations=40).threads:
        for operation in subject.operations:
            chosen = calls[calls["code"] == operation.code]["arguments"]
            for index, argument in enumerate(operation.arguments):
                assert (
                    (chosen[:, index] >= argument.low) & (chosen[:, index] <= argument.high)
                ).all()
            assert not chosen[:, len(operation.arguments) :].any()


def test_ranges_are_reached_from_end_to_end(toys: ModuleType) -> None:
    calls = Program.generate(
        toys.SUBJECTS["owned"], 1, threads=1, operations=20_000, mix={"offer": 1}
    ).threads[0]
    key, wide, far = calls["arguments"].T
    assert set(key.tolist()) == set(range(-5, 6))
    assert wide.min() < -(2**62) and wide.max() > 2**62
    assert far.max() > 2**39


@given(seed=SEEDS, threads=st.integers(1, 64))
def test_one_thread_plays_a_role_alone(toys: ModuleType, seed: Any, threads: Any) -> None:
    program = Program.generate(toys.SUBJECTS["owned"], seed, threads=threads, operations=60)
    assert sum(1 in used for used in codes(program)) == 1


def test_the_seed_chooses_who_plays_a_role(toys: ModuleType) -> None:
    owners = {
        [
            1 in used
            for used in codes(
                Program.generate(toys.SUBJECTS["owned"], seed, threads=4, operations=60)
            )
        ].index(True)
        for seed in range(40)
    }
    assert owners == {0, 1, 2, 3}


def test_a_mix_names_the_only_operations(toys: ModuleType) -> None:
    program = Program.generate(
        toys.SUBJECTS["counter"], 3, threads=2, operations=4000, mix={"read": 1}
    )
    assert codes(program) == [{1}, {1}]
    program = Program.generate(
        toys.SUBJECTS["counter"], 3, threads=2, operations=4000, mix={"read": 9, "add": 1}
    )
    assert 0.87 < np.mean([calls["code"].mean() for calls in program.threads]) < 0.93


def test_weight_zero_occurs_only_on_request(toys: ModuleType) -> None:
    subject = toys.SUBJECTS["owned"]
    assert all(
        2 not in used for used in codes(Program.generate(subject, 1, threads=2, operations=2000))
    )
    assert codes(Program.generate(subject, 1, threads=2, operations=50, mix={"rare": 1})) == [
        {2},
        {2},
    ]


def test_a_thread_without_operations_gets_none(toys: ModuleType) -> None:
    program = Program.generate(toys.SUBJECTS["owned"], 1, threads=3, operations=50, mix={"poll": 1})
    assert sorted(len(calls) for calls in program.threads) == [0, 0, 50]


@given(seed=SEEDS)
def test_settings_are_drawn_from_their_ranges(toys: ModuleType, seed: Any) -> None:
    subject = toys.SUBJECTS["counter"]
    assert 0 <= Program.generate(subject, seed, threads=1, operations=1).settings["start"] <= 100
    narrow = Program.generate(subject, seed, threads=1, operations=1, settings={"start": (7, 9)})
    assert 7 <= narrow.settings["start"] <= 9
    pinned = Program.generate(subject, seed, threads=1, operations=1, settings={"start": (4, 4)})
    assert pinned.settings == {"start": 4}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed is -1; it should be between 0 and"),
        ({"seed": 2**64}, "seed"),
        ({"threads": 0}, "threads is 0; it should be between 1 and 64"),
        ({"threads": 65}, "threads"),
        ({"operations": 0}, "operations per thread is 0"),
        ({"mix": {"fly": 1}}, "no operation 'fly'; it has: add, read"),
        ({"mix": {"add": 0}}, "nothing to run"),
        ({"mix": {"add": -1}}, "weight of add is -1"),
        ({"settings": {"stop": (1, 2)}}, "no setting 'stop'; it has: start"),
        ({"settings": {"start": (5, 200)}}, "5..200 of setting start should lie within 0..100"),
        ({"settings": {"start": (6, 5)}}, "6..5"),
    ],
)
def test_wrong_requests_are_refused(toys: ModuleType, options: Any, message: Any) -> None:
    arguments = {"seed": 1, "threads": 2, "operations": 10} | options
    with pytest.raises(UsageError, match=message):
        Program.generate(toys.SUBJECTS["counter"], arguments.pop("seed"), **arguments)


def test_more_threads_than_the_subject_takes_are_refused(toys: ModuleType) -> None:
    with pytest.raises(UsageError, match="at most 2 threads, not 3"):
        Program.generate(toys.SUBJECTS["lonely"], 1, threads=3, operations=10)


def test_programs_cannot_be_changed(toys: ModuleType) -> None:
    program = Program.generate(toys.SUBJECTS["counter"], 1, threads=1, operations=10)
    with pytest.raises(ValueError, match="read-only"):
        program.threads[0]["code"] = 1


@given(seed=SEEDS)
def test_json_brings_a_program_back(toys: ModuleType, seed: Any) -> None:
    program = Program.generate(toys.SUBJECTS["owned"], seed, threads=3, operations=20)
    again = Program.from_json(program.to_json())
    assert again == program
    assert hash(again) == hash(program)
    assert all(calls.dtype == CALL for calls in again.threads)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "letter"},
        {"version": 2},
        {"threads": [[[1, 2]]]},
        {"threads": [[[2**40, 0, 0, 0, 0]]]},
        {"threads": [[[0, 0, 2**70, 0, 0]]]},
        {"threads": 5},
        {"settings": None},
        {"seed": "x"},
    ],
)
def test_damaged_programs_are_refused(toys: ModuleType, change: Any) -> None:
    content = json.loads(
        Program.generate(toys.SUBJECTS["counter"], 1, threads=1, operations=2).to_json()
    )
    with pytest.raises(BadRecordError):
        Program.from_json(json.dumps(content | change))


def test_a_truncated_program_is_refused(toys: ModuleType) -> None:
    text = Program.generate(toys.SUBJECTS["counter"], 1, threads=1, operations=2).to_json()
    for length in range(len(text)):
        with pytest.raises(BadRecordError):
            Program.from_json(text[:length])


def test_possible_pairs_leave_out_what_one_thread_does_alone(toys: ModuleType) -> None:
    assert possible_pairs(toys.SUBJECTS["owned"], None, 2) == [
        ("offer", "offer"),
        ("offer", "poll"),
    ]
    assert possible_pairs(toys.SUBJECTS["counter"], {"read": 1}, 4) == [("read", "read")]
    assert possible_pairs(toys.SUBJECTS["counter"], None, 1) == []
