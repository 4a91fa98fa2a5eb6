"""Trials on real threads over toys that are right or wrong in known ways."""

from __future__ import annotations

import pickle
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pulsar_ml.campaign.trial import trial
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions, load_native, replay_trial, run_trial
from pulsar_ml.campaign.turns import ends_at
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.subjects.result import RunResult, ThreadViolation


def suite(name: str, **changes: Any) -> Suite:
    facts: dict[str, Any] = {"name": name, "subject": name, "summary": "A toy."}
    return Suite(**({**facts, "threads": 2, "operations": 2000} | changes))


@pytest.fixture
def options(toys_so: Any) -> TrialOptions:
    return TrialOptions(module=str(toys_so))


def test_a_correct_structure_is_never_violated(options: Any) -> None:
    results = [run_trial(suite("counter"), seed, options) for seed in range(100)]
    assert {result.verdict for result in results} <= {"clean", "nothing_exercised"}
    assert all(not result.violations for result in results)
    assert all(result.operations == 4000 for result in results)


def test_a_racy_structure_is_caught(options: Any) -> None:
    result = run_trial(suite("racy"), 1, options)
    assert result.verdict == "violation"
    [violation] = result.violations
    assert (violation.invariant, violation.phase) == ("T1", "quiescence")
    assert (result.replay.invariant, result.replay.message) == ("T1", violation.message)
    assert result.overlaps == sum(result.pairs.values()) > 0
    assert set(result.pairs) <= {("add", "add"), ("add", "read"), ("read", "read")}


def test_a_trial_says_how_often_its_program_ran(options: Any) -> None:
    once = run_trial(suite("counter"), 1, options)
    assert (once.runs, once.operations) == (1, 4000)
    thrice = run_trial(suite("counter"), 1, replace(options, runs=3))
    assert thrice.runs == 3 and thrice.operations >= 3 * 4000
    freely = run_trial(suite("counter"), 1, replace(options, runs=0))
    assert freely.runs > 1 and freely.spent.run > 0
    assert freely.overlaps == sum(freely.pairs.values())


def test_free_runs_end_with_the_time(options: Any) -> None:
    ends_at(time.monotonic())
    try:
        assert run_trial(suite("counter"), 1, replace(options, runs=0)).runs == 1
        assert run_trial(suite("counter"), 1, replace(options, runs=3)).runs == 3
    finally:
        ends_at(None)
    assert run_trial(suite("counter"), 1, replace(options, runs=0)).runs > 1


def test_a_further_run_reports_what_the_first_did_not(options: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(trial, "quiescent_violations", lambda instance, result: ())
    result = run_trial(suite("racy"), 1, replace(options, runs=0))
    assert result.verdict == "violation"
    assert {(seen.invariant, seen.phase) for seen in result.violations} == {("T1", "quiescence")}
    record = result.replay
    assert (record.invariant, result.seed, record.runs) == ("T1", 1, 1)
    # The record is of the program that failed, which is another one of the same seed.
    subject = trial.find_subject(trial.load_native(options.module), suite("racy"))
    failed = trial.program_of(subject, suite("racy"), record.seed, options)
    assert record.seed != 1 and record.program == failed.digest()
    assert dict(record.settings) == dict(failed.settings)


def test_a_record_of_a_stuck_run_leaves_each_program_its_settings(
    options: Any, monkeypatch: Any
) -> None:
    stuck = RunResult(0, (0, 0), 1, ((0, 0),) * 2, (ThreadViolation(-1, -1, "stuck", ""),), True)
    monkeypatch.setattr(trial, "run_programs", lambda *words, **options: stuck)
    found = suite("counter", settings={"start": (0, 9)})
    record = run_trial(found, 1, replace(options, runs=0)).replay
    assert (record.seed, record.runs, record.settings) == (1, 0, {})
    pinned: list[object] = []

    def run_programs(*words: Any, **size: Any) -> RunResult:
        pinned.append(size["settings"])
        return stuck

    monkeypatch.setattr(trial, "run_programs", run_programs)
    replay_trial(found, record)
    assert pinned == [found.settings]


def test_what_a_call_reports_is_caught(options: Any) -> None:
    result = run_trial(suite("tattler", settings={"start": (3, 3)}), 1, options)
    [violation] = result.violations
    assert (violation.invariant, violation.phase) == ("T2", "running")
    assert result.replay.settings == {"start": 3}


def test_a_mutant_is_selected_for_its_trials_only(options: Any, toys_so: Any) -> None:
    mutated = TrialOptions(module=str(toys_so), mutant="T01")
    assert run_trial(suite("counter"), 1, mutated).verdict == "violation"
    assert run_trial(suite("counter"), 1, mutated).replay.mutant == "T01"
    assert not run_trial(suite("counter"), 1, options).violations


def test_operations_that_cannot_overlap_exercise_nothing(options: Any) -> None:
    result = run_trial(suite("owned", mix={"poll": 1}), 1, options)
    assert (result.operations, result.overlaps) == (2000, 0)
    assert result.verdict == "nothing_exercised"


def test_operations_of_one_thread_alone_are_clean(options: Any, toys_so: Any) -> None:
    result = run_trial(suite("counter"), 1, TrialOptions(threads=1, module=str(toys_so)))
    assert (result.threads, result.overlaps, result.verdict) == (1, 0, "clean")


def test_options_override_the_suite(options: Any, toys_so: Any) -> None:
    result = run_trial(
        suite("counter"),
        1,
        TrialOptions(threads=3, operations=10, noise=False, module=str(toys_so)),
    )
    assert (result.threads, result.operations) == (3, 30)
    assert (result.replay.threads, result.replay.operations, result.replay.noise) == (3, 10, False)


def test_a_trial_says_what_it_ran(options: Any, toys: Any) -> None:
    result = run_trial(suite("counter", settings={"start": (5, 9)}), 44, options)
    assert (result.suite, result.seed, result.build_id) == ("counter", 44, toys.BUILD_ID)
    assert 5 <= result.replay.settings["start"] <= 9
    assert result.replay.module == options.module
    assert result.duration_ns > 0


def test_values_travel_between_processes(options: Any) -> None:
    result = run_trial(suite("racy"), 1, options)
    assert pickle.loads(pickle.dumps((suite("racy"), options, result))) == (
        suite("racy"),
        options,
        result,
    )


def test_a_record_runs_the_same_program_again(options: Any) -> None:
    racy = suite("racy", settings={"start": (5, 90)})
    first = run_trial(racy, 12, options)
    record = ReplayRecord.from_json(first.replay.to_json())
    again = replay_trial(racy, record)
    assert again.verdict == "violation"
    assert again.replay.program == first.replay.program
    # The recorded settings hold, also after the suite's ranges changed.
    moved = suite("racy", settings={"start": (0, 1)})
    assert replay_trial(moved, record).replay.settings == first.replay.settings


def test_a_record_of_another_suite_is_refused(options: Any) -> None:
    record = run_trial(suite("counter"), 1, options).replay
    with pytest.raises(UsageError, match="of suite 'counter', not of 'racy'"):
        replay_trial(suite("racy"), record)


def test_a_subject_that_is_not_there_is_refused(options: Any) -> None:
    with pytest.raises(UsageError, match="no subject 'nowhere'; it has: counter"):
        run_trial(suite("nowhere"), 1, options)


def test_a_mutant_that_is_not_there_is_refused(toys_so: Any) -> None:
    with pytest.raises(UsageError, match="no mutant 'T99'; it has: T01"):
        run_trial(suite("counter"), 1, TrialOptions(module=str(toys_so), mutant="T99"))


def test_failed_creation_is_a_memory_error(options: Any, toys: Any) -> None:
    toys.fail_allocation_after(0)
    with pytest.raises(MemoryError):
        run_trial(suite("counter"), 1, options)


def test_modules_are_loaded_by_name_or_once_by_path(toys_so: Any, tmp_path: Path) -> None:
    assert load_native("json").__name__ == "json"
    assert load_native(str(toys_so)) is load_native(str(toys_so))
    copy = shutil.copy(toys_so, tmp_path)
    other = load_native(str(copy))
    assert other is not load_native(str(toys_so))
    # Neither module takes the name under which the product would be imported.
    assert "toys" not in sys.modules


def test_modules_that_are_not_there_are_import_errors(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match="nothing.so"):
        load_native(str(tmp_path / "nothing.so"))
    with pytest.raises(ImportError):
        load_native("pulsar_ml.nothing")
