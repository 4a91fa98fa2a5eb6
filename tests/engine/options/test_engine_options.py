"""The engine's options on the command line: known races, lock-freedom, and the bounds, which a
report names when they left something out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pulsar_ml.campaign.trial.controlled import run_trial
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.engine import LEAST_STORES, MOST_STORES, SPINS, STORES, TURNS
from tests.commands import Called, call
from tests.engine.locks.test_locks import COMPILERS, built
from tests.engine.options.engine_suites import SUITES
from tests.engine.programs.build_programs import programs

HERE = "tests.engine.options.engine_suites"
SEARCH = ("--strategy", "preemptions", "--bound", "9")


@pytest.fixture
def explore(tmp_path: Path) -> Any:
    def run(name: str, *options: str, executions: int = 20_000) -> Called:
        native = built("owned", COMPILERS[0]) if name.startswith("known") else programs()
        return call(
            *("explore", name, "--suites", HERE, "--module", str(native.__file__)),
            *("--seeds", "1", "--executions", str(executions)),
            *("--records", str(tmp_path), *options),
        )

    return run


def counts(done: Called) -> dict[str, int]:
    (suite,) = json.loads(done.out)["suites"]
    found: dict[str, int] = suite["counts"]
    return found


def test_a_known_race_is_passed_over_by_its_line_or_function(explore: Any, tmp_path: Path) -> None:
    found = explore("known_race")
    assert found.code == 1 and "data race" in found.out
    (record,) = tmp_path.glob("known_race-*.json")
    place = json.loads(record.read_text())["where"][0]
    function, line = place.split()[0], place.split()[-1]
    assert function == "counts_hits"
    for known in (function, line):
        done = explore("known_race", "--suppress", known)
        assert done.code == 0, done.out
        assert "known races were passed over" in done.out
        done = explore("known_race", "--suppress", known, "--json")
        assert counts(done)["suppressed"] >= counts(done)["executions"]


def test_another_place_passes_over_nothing(explore: Any) -> None:
    for other in ("counts", "owned.h:1"):
        assert explore("known_race", "--suppress", other).code == 1


def test_a_race_behind_the_known_one_keeps_the_list_in_its_record(
    explore: Any, tmp_path: Path
) -> None:
    found = explore("known_race_and_more", "--suppress", "counts_hits")
    assert found.code == 1
    (record,) = tmp_path.glob("*.json")
    assert json.loads(record.read_text())["suppress"] == ["counts_hits"]
    assert "the failure was made again, step by step" in found.out


def test_a_queue_without_help_is_not_lock_free(explore: Any) -> None:
    found = explore("michael_scott", "--lock-free")
    assert found.code == 1
    assert "not lock-free" in found.out
    assert "is held back, and the others cannot end without it" in found.out
    assert found.out.count("at michael_scott_body programs/progress.h:") >= 2
    assert explore("michael_scott").code == 0
    assert explore("michael_scott_fixed", "--lock-free").code == 0


def test_forgotten_stores_are_named_and_more_can_be_kept(explore: Any) -> None:
    left_out = f"{STORES} stores remembered of a location"
    few = explore("first_of_eleven")
    assert few.code == 0
    assert f"  bounds that left something out: {left_out} (" in few.out
    assert "bounds that" not in explore("first_of_eleven", "--stores", "11").out
    (suite,) = json.loads(explore("first_of_eleven", "--json").out)["suites"]
    assert suite["bounds"][left_out] == suite["counts"]["forgotten"] > 0


def test_a_search_says_completely_only_with_enough_stores(explore: Any) -> None:
    few = explore("first_of_eleven", *SEARCH)
    assert f"exhausted within the stated bounds: {STORES} stores remembered" in few.out
    assert "completely" not in few.out
    assert (
        "exhausted completely: 1 program"
        in explore("first_of_eleven", *SEARCH, "--stores", "11").out
    )


def test_turns_and_spins_are_bounds_of_a_search(explore: Any) -> None:
    short = explore("polls_fixed", *SEARCH, "--mode", "sc", "--turns", "3", "--spins", "1")
    assert "exhausted within the stated bounds: " in short.out
    assert "spin bound 1, 3 turns of loops in an operation" in short.out
    assert explore("four_turns", *SEARCH, "--mode", "sc", "--spins", "3").code == 0
    assert explore("four_turns", *SEARCH, "--mode", "sc", "--spins", "4").code == 1


def test_the_defaults_of_a_trial_are_those_of_the_engine() -> None:
    options = TrialOptions()
    assert (options.spins, options.turns, options.stores) == (SPINS, TURNS, STORES)


@pytest.mark.parametrize(
    "wrong",
    [{"spins": -1}, {"turns": 0}, {"stores": LEAST_STORES - 1}, {"stores": MOST_STORES + 1}],
)
def test_a_trial_refuses_a_bound_out_of_range(wrong: dict[str, Any]) -> None:
    options = TrialOptions(module=str(programs().__file__), engine="controlled", **wrong)
    with pytest.raises(UsageError, match=f"not {next(iter(wrong.values()))}"):
        run_trial(SUITES["first_of_eleven"], 0, options)


def sweep(tmp_path: Path, name: str, *options: str) -> tuple[dict[str, Any], dict[str, Any]]:
    run = tmp_path / "run"
    done = call(
        *("sweep", "--runner", "inline", "--suites", HERE, "--suite", name, "--seeds", "1"),
        *("--module", str(programs().__file__), "--engine", "controlled", "--mode", "c11"),
        *("--strategy", "preemptions", "--bound", "9", "--progress", "none", "--out", str(run)),
        *options,
    )
    assert done.code in (0, 1), done.err
    (row,) = pq.read_table(run / "trials").to_pylist()
    return json.loads((run / "run.json").read_text())["plan"]["options"], row


def test_a_sweep_carries_the_bounds_to_its_trials(tmp_path: Path) -> None:
    options, row = sweep(tmp_path, "first_of_eleven", "--stores", "11", "--turns", "5")
    assert (options["stores"], options["turns"], options["spins"]) == (11, 5, SPINS)
    assert row["exhausted"] == "completely"


def test_the_row_of_a_trial_names_the_bounds_that_left_something_out(tmp_path: Path) -> None:
    options, row = sweep(tmp_path, "first_of_eleven", "--stores", "4")
    assert options["stores"] == 4
    assert row["bounds"] == "4 stores remembered of a location"


def test_a_sweep_searches_as_many_spins_as_it_is_allowed(tmp_path: Path) -> None:
    options, row = sweep(tmp_path, "four_turns", "--spins", "4", "--mode", "sc")
    assert options["spins"] == 4
    assert row["verdict"] == "violation"


@pytest.mark.parametrize("name", ["--spins", "--turns", "--stores"])
def test_real_threads_have_no_bounds_of_the_engine(name: str) -> None:
    done = call("sweep", "--runner", "inline", name, "5")
    assert done.code == 2
    assert f"{name} is for --engine controlled" in done.err
