"""A report of a data race has both accesses with their stacks, the last synchronisation, and
whether the other order was made as well. Fixed twins are the negative controls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pulsar_ml.errors import BadRecordError
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.race import Race
from pulsar_ml.harness.search.shrink import shrink
from tests.engine.programs.build_programs import program_of, programs

MODES = ("sc", "tso", "c11")


def failure_of(name: str, mode: str = "c11", **options: Any) -> Failure:
    found = explore(
        programs().SUBJECTS[name], program_of(name), executions=2_000, seed=5, mode=mode, **options
    ).failure
    assert found is not None
    return found


def race_of(name: str, mode: str = "c11") -> Race:
    race = failure_of(name, mode).race
    assert race is not None
    return race


@pytest.mark.parametrize("mode", MODES)
def test_both_stacks_reach_from_the_access_to_the_operation(mode: str) -> None:
    race = race_of("race_met", mode)
    for access in (race.first, race.second):
        assert [place.split()[0] for place in access.stack] == ["race_fill", "race_met_body"]
        assert all("programs/races.h:" in place for place in access.stack)
        assert access.what == "write of 8 bytes"
        assert access.operation.startswith("run(")
    assert race.first.stack[1] != race.second.stack[1], "two lines of one function"
    assert {race.first.thread, race.second.thread} == {0, 1}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["race_both", "race_met", "race_mixed", "plain_race"])
def test_a_race_whose_accesses_nothing_holds_back_is_seen_in_both_orders(
    name: str, mode: str
) -> None:
    assert race_of(name, mode).other_order == "data race"


@pytest.mark.parametrize("mode", MODES)
def test_an_access_that_needs_the_other_one_is_seen_in_one_order(mode: str) -> None:
    race = race_of("race_after", mode)
    assert race.other_order == ""
    assert (race.first.thread, race.second.thread) == (0, 1)
    assert race.synchronised == "", "a relaxed flag is none"


@pytest.mark.parametrize("mode", MODES)
def test_a_block_given_back_too_early_is_used_after_free_in_the_other_order(mode: str) -> None:
    race = race_of("race_release", mode)
    assert race.second.what == "release of the memory"
    assert race.other_order == "use after free"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["race_after_fixed", "race_release_fixed"])
def test_the_fixed_twins_are_silent(name: str, mode: str) -> None:
    done = explore(
        programs().SUBJECTS[name], program_of(name), executions=20_000, mode=mode, reuse="mixed"
    )
    assert done.failure is None


@pytest.mark.parametrize("mode", MODES)
def test_the_last_synchronisation_names_both_sides(mode: str) -> None:
    message = race_of("race_met", mode).synchronised
    assert message.startswith("thread 0 by release store at race_met_body programs/races.h:")
    assert "seen by thread 1 by acquire load at race_met_body programs/races.h:" in message


def test_an_atomic_access_is_told_with_its_order() -> None:
    subject, program = programs().SUBJECTS["race_mixed"], program_of("race_mixed")
    found = [explore(subject, program, executions=100, seed=seed).failure for seed in range(20)]
    races = [failure.race for failure in found if failure is not None and failure.race is not None]
    assert len(races) == 20
    message = {race.first.what: race.second.what for race in races}
    assert message == {
        "acquire load of 8 bytes": "write of 8 bytes",
        "write of 8 bytes": "atomic load of 8 bytes",
    }


def test_a_race_is_told_in_text_and_survives_json() -> None:
    found = failure_of("race_met")
    again = found.replay(programs().SUBJECTS["race_met"])
    assert again.exact and again.failure == found
    assert Failure.from_text(found.to_json()) == found
    assert Failure.from_text(found.short()) == found
    text = found.summary(again)
    for part in (
        "first, thread ",
        "then, thread ",
        "last synchronisation of the two: thread 0",
        "seen in both",
    ):
        assert part in text
    assert "write m" in found.lane_table(again.trace)
    only = failure_of("race_after").summary()
    assert "the other order was not reached: thread 1 needs the first access to happen" in only


def test_a_damaged_race_is_refused() -> None:
    data = json.loads(failure_of("race_met").to_json())
    del data["race"]["second"]["stack"]
    with pytest.raises(BadRecordError):
        Failure.from_text(json.dumps(data))


def test_a_shrunk_race_still_names_both_accesses() -> None:
    found = failure_of("race_met")
    small = shrink(found, programs().SUBJECTS["race_met"])
    assert small.race is not None and found.race is not None
    assert small.signature == found.signature
    assert small.race.other_order == "data race"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["race_both", "race_mixed", "atomic_and_plain", "race_sizes"])
def test_without_races_no_race_of_any_kind_is_reported(name: str, mode: str) -> None:
    assert failure_of(name, mode).kind == "data race"
    done = explore(
        programs().SUBJECTS[name],
        program_of(name),
        executions=5_000,
        seed=5,
        mode=mode,
        races=False,
    )
    assert done.failure is None


def test_a_failure_found_without_races_is_made_again_and_shrunk_without_them() -> None:
    subject = programs().SUBJECTS["use_after_free"]
    found = failure_of("use_after_free", races=False)
    assert not found.races
    assert found.replay(subject).exact
    assert not shrink(found, subject).races
