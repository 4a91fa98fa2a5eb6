"""Shrinking the failures of a run: verified, stored beside the records, and done once."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pulsar_ml.campaign.shrink import shrunk
from pulsar_ml.campaign.shrink.shrink_run import Processes, Witness, shrink_all, task_of, witnesses
from pulsar_ml.campaign.shrink.shrinking import Task, apart, done
from pulsar_ml.campaign.shrink.shrunk import (
    AS_SMALL,
    CRASHED,
    FOUND,
    NOT_FOUND,
    NOTHING,
    REFUSED,
    SMALLER,
    Shrunk,
    Size,
    digest_of,
    read_state,
)
from pulsar_ml.campaign.store.read_run import open_run
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.campaign.trial.controlled import load_checked
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.trial import select_mutant
from pulsar_ml.errors import BadRecordError
from pulsar_ml.harness.search.child import Limits
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.subjects.program import Program
from tests.campaign.test_resume import Killed, Mortal
from tests.engine.sandbox.test_sandbox import program_of as rogue_program
from tests.engine.sandbox.test_sandbox import rogues_path
from tests.harness.toys.build_toys import toys_path
from tests.report.kit import of_failure, row, violation, write_run

REGISTRY = "tests.campaign.shrink_suites"
BUDGET = 20_000
FEW = 900  # not enough for the smallest form


@cache
def large(name: str, mutant: str | None = None) -> Failure:
    """Find a failure of a toy in a program of three threads with five operations each."""
    module = load_checked(str(toys_path(checked=True)))
    select_mutant(module, mutant)
    subject = module.SUBJECTS[name]
    program = Program.generate(subject, 5, threads=3, operations=5, noise=False)
    found = explore(subject, program, executions=2_000, seed=5, races=False).failure
    select_mutant(module, None)
    assert found is not None
    return replace(found, module=str(toys_path(checked=True)), mutant=mutant)


def rogue(name: str) -> Failure:
    """Make a record of a broken invariant whose replay kills the process in thread 1."""
    said = replace(large("racy"), subject=name, build_id="programs", module=str(rogues_path()))
    return replace(said, program=rogue_program(name).to_json(), decisions=((0, 255, 0, 2),))


def task(failure: Failure, **changes: Any) -> Task:
    output = Task(
        suite=failure.subject, registry=REGISTRY, record=failure.to_json(), executions=BUDGET
    )
    return replace(output, **changes)


def run_of(directory: Path, *failures: Failure) -> Path:
    rows = [row(seed, found=[of_failure(one, one.subject)]) for seed, one in enumerate(failures)]
    for output, failure in zip(rows, failures, strict=True):
        output["suite"] = failure.subject
    return write_run(directory, rows, runner={"registry": REGISTRY})


def attempt(
    run: Path, place: Any, *, executions: int = BUDGET, **options: Any
) -> dict[str, Witness]:
    """Shrink a run and return the suites that were tried."""
    store = RunStore.reopen(run)
    tried: dict[str, Witness] = {}
    try:
        store.tidy()
        wanted = [
            one
            for one in witnesses(open_run(run))
            if not (one.state and one.state.covers(one.record, executions))
        ]
        shrink_all(
            store, wanted, place,
            lambda one: task_of(one, registry=REGISTRY, module="", executions=executions),
            on_done=lambda one: tried.__setitem__(one.suite, one), **options,
        )  # fmt: skip
    finally:
        store.close()
    return tried


def outcome_of(witness: Witness) -> Shrunk:
    assert witness.state is not None
    return witness.state.shrunk


def test_failures_are_made_smaller_and_the_records_stay(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", large("racy"), large("counter", "T01"))
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    tried = attempt(run, Processes(2))
    assert sorted(tried) == ["counter", "racy"]
    for name, witness in tried.items():
        result = outcome_of(witness)
        assert result.outcome == SMALLER and result.before and result.after
        assert result.before.operations == 15 and result.after.operations <= 3
        small = Failure.from_text(shrunk.record_path(run, witness.signature).read_text())
        assert small.signature == Failure.from_text(witness.record).signature
        module = load_checked(small.module)
        select_mutant(module, small.mutant)
        assert small.replay(module.SUBJECTS[name]).exact
        select_mutant(module, None)
    assert all(path.read_bytes() == content for path, content in before.items())
    assert not attempt(run, Processes(2)), "nothing is done twice"
    assert not attempt(run, Processes(2), executions=10), "nor with fewer executions"


def test_more_executions_go_on_from_what_was_reached(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", large("racy"))
    (first,) = attempt(run, Processes(1), executions=FEW).values()
    (second,) = attempt(run, Processes(1)).values()
    assert (
        task_of(second, registry=REGISTRY, module="", executions=1).start
        == outcome_of(second).record
    )
    sizes = [outcome_of(one).after for one in (first, second)]
    assert sizes[0] and sizes[1] and sizes[1].operations < sizes[0].operations < 15
    assert outcome_of(second).before == outcome_of(first).before, (
        "compared with what the run recorded"
    )


def test_what_is_small_already_says_so() -> None:
    small = apart(task(large("racy")))
    again = apart(task(Failure.from_text(small.record)))
    assert (again.outcome, again.before, again.record) == (AS_SMALL, again.after, "")
    assert done(task(large("racy"))) == small, "in whatever process"


def test_a_crash_and_a_hang_do_not_touch_the_others(tmp_path: Path) -> None:
    class Impatient(Processes):
        def shrink(self, task: Task) -> Shrunk:
            return super().shrink(replace(task, limits=Limits(wall=120.0, cpu=0.3)))

    run = run_of(
        tmp_path / "run",
        rogue("ends_the_process"),
        rogue("computes_for_ever"),
        large("counter", "T01"),
    )
    tried = attempt(run, Impatient(3))
    assert outcome_of(tried["counter"]).outcome == SMALLER
    ended, endless = (outcome_of(tried[name]) for name in ("ends_the_process", "computes_for_ever"))
    assert (ended.outcome, endless.outcome) == (CRASHED, CRASHED)
    assert "exit status 3" in ended.message and "loops without a step" in endless.message
    assert len(list((run / "shrunk").iterdir())) == 4, "three states, one smaller failure"


def test_a_killed_process_is_reported() -> None:
    result = apart(task(large("racy")), subprocess.Popen.kill)
    assert result == Shrunk(CRASHED, "its process ended with SIGKILL")


def test_another_build_is_refused_and_what_there_is_kept(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", large("racy"))
    (first,) = attempt(run, Processes(1)).values()

    class OtherBuild(Processes):
        def shrink(self, task: Task) -> Shrunk:
            record = replace(Failure.from_text(task.record), build_id="another")
            return super().shrink(replace(task, record=record.to_json()))

    (second,) = attempt(run, OtherBuild(1), executions=2 * BUDGET).values()
    assert outcome_of(second) == Shrunk(
        REFUSED, "it is of build another, and this is build toys-build-1"
    )
    state = read_state(run, first.signature)
    assert state is not None and state == first.state

    fresh = run_of(tmp_path / "fresh", large("racy"))
    for _ in range(2):
        (refused,) = attempt(fresh, OtherBuild(1)).values()
        assert outcome_of(refused).outcome == REFUSED, "and tried again each time"


@pytest.mark.parametrize(
    ("changes", "result"),
    [
        ({"suite": "nowhere"}, "no suite 'nowhere'"),
        ({"registry": "nowhere"}, "no suites in nowhere"),
        ({"record": "{"}, "not JSON"),
        ({"module": "nowhere.module"}, "nowhere"),
    ],
)
def test_what_cannot_be_tried_says_why(changes: dict[str, Any], result: str) -> None:
    found = done(task(large("racy"), **changes))
    assert found.outcome == REFUSED and result in found.message


def test_a_failure_that_is_not_made_again_is_no_smaller_one() -> None:
    wrong = replace(large("racy"), decisions=((0, 255, 0, 2), (3, 1, 0, 1)), trace_hash=1)
    result = done(task(wrong))
    assert result.outcome == REFUSED and not result.record


# Real threads.


def of_threads(**changes: Any) -> ReplayRecord:
    record = ReplayRecord(
        suite="racy", seed=3, threads=2, operations=300, noise=True, settings={"start": 4},
        build_id="toys-build-1", module=str(toys_path()), invariant="T1", message="the sum is 1",
    )  # fmt: skip
    return replace(record, **changes)


def test_what_real_threads_found_becomes_a_small_failure_of_the_engine() -> None:
    output = Task(
        suite="racy", registry=REGISTRY, record=of_threads().to_json(), executions=BUDGET,
        module=str(toys_path(checked=True)),
    )  # fmt: skip
    result = done(output)
    assert (result.outcome, result.before) == (FOUND, Size(2, 600, 0, 0))
    small = Failure.from_text(result.record)
    assert small.rule == "T1" and result.after and result.after.operations <= 3
    assert small.replay(load_checked(small.module).SUBJECTS["racy"]).exact
    again = done(replace(output, start=result.record))
    assert (again.outcome, again.record, again.before) == (FOUND, result.record, result.before)
    other = done(replace(output, record=of_threads(invariant="T9").to_json(), executions=300))
    assert other.outcome == NOT_FOUND and "T9 was not broken in 300 executions" in other.message


@pytest.mark.parametrize("invariant", ["stuck", "leak", "crash", "hang", "memory", None])
def test_there_may_be_nothing_to_shrink(invariant: str | None) -> None:
    record = of_threads(invariant=invariant).to_json()
    result = done(Task(suite="racy", registry=REGISTRY, record=record, executions=10))
    assert (
        result.outcome == NOTHING
        and "not an outcome that the engine can look for" in result.message
    )


def test_real_threads_on_a_module_of_ones_own_need_its_checked_build() -> None:
    result = done(
        Task(suite="racy", registry=REGISTRY, record=of_threads().to_json(), executions=10)
    )
    assert result.outcome == REFUSED and "--module names the checked module" in result.message


def test_a_lost_process_stays_as_it_is() -> None:
    result = done(task(replace(large("racy"), kind="process ended")))
    assert result.outcome == NOTHING


# On disk.


class Instant:
    """Finishes every task at once."""

    slots = 2

    def __init__(self) -> None:
        self.tried: list[str] = []

    def shrink(self, task: Task) -> Shrunk:
        self.tried.append(task.suite)
        small = json.dumps({"small": task.record[:40]})
        return Shrunk(SMALLER, record=small, before=Size(3, 15, 4, 90), after=Size(2, 2, 1, 9))

    def stop(self) -> None:
        """Do nothing: no task is running."""


def four(directory: Path) -> Path:
    """Write a run with four signatures."""
    return write_run(
        directory,
        [row(seed, found=[violation(f"I{seed}", "broken", seed=seed)]) for seed in range(4)],
    )


def files(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run / "shrunk").iterdir()}


def test_each_kill_point_leaves_the_rest_to_be_done_and_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda handle: None)
    attempt(four(tmp_path / "undisturbed"), Instant())
    wanted = files(tmp_path / "undisturbed")
    assert len(wanted) == 8
    points = 0
    while True:
        run = four(tmp_path / f"{points}")
        with pytest.MonkeyPatch.context() as patch:
            Mortal(patch, points + 1, before=points % 2 == 0)
            try:
                attempt(run, Instant())
                break
            except Killed:
                pass
        done_before = [
            one for one in witnesses(open_run(run)) if one.state and one.state.covers(one.record, 1)
        ]
        rest = Instant()
        attempt(run, rest)
        assert len(rest.tried) == 4 - len(done_before)
        assert files(run) == wanted, "and nothing half written is left"
        points += 1
    assert points >= 16


def test_a_stop_keeps_what_was_done(tmp_path: Path) -> None:
    run = four(tmp_path / "run")
    stops = iter([False, False, True])
    assert len(attempt(run, Instant(), stopped=lambda: next(stops))) in (1, 2, 3, 4)
    place = Instant()
    before = len([one for one in witnesses(open_run(run)) if one.state])
    attempt(run, place)
    assert before + len(place.tried) == 4


def test_another_record_is_tried_again(tmp_path: Path) -> None:
    run = four(tmp_path / "run")
    attempt(run, Instant())
    (first, *_) = sorted((run / "records").iterdir())
    first.write_text(violation("I9", "another")["replay"] + "\n")
    place = Instant()
    attempt(run, place)
    assert len(place.tried) == 1


def test_a_run_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    run = four(tmp_path / "run")
    store = RunStore.reopen(run)
    with pytest.raises(ValueError, match="another process is writing"):
        attempt(run, Instant())
    store.close()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_text("{"), "not JSON"),
        (lambda path: path.write_text("[" * 100_000), "not JSON"),
        (lambda path: path.write_text("[]"), "it should be a JSON object"),
        (
            lambda path: path.write_text(path.read_text().replace('"version": 1', '"version": 2')),
            "version 2, this release reads up to 1",
        ),
        (
            lambda path: path.write_text(path.read_text().replace("smaller", "tiny")),
            'outcome is "tiny"; it should be one of smaller',
        ),
        (
            lambda path: path.write_text(path.read_text().replace('"steps"', '"paces"')),
            'unknown key "paces"',
        ),
        (
            lambda path: path.write_text(path.read_text().replace('"of": "', '"off": "')),
            "of is missing; it should be a text",
        ),
        (lambda path: path.with_name(path.name.replace(".state", "")).unlink(), "cannot be read"),
    ],
)
def test_a_damaged_state_is_refused_in_one_sentence(
    tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    run = four(tmp_path / "run")
    attempt(run, Instant())
    state = next((run / "shrunk").glob("*.state.json"))
    damage(state)
    with pytest.raises(ValueError, match=message) as refused:
        witnesses(open_run(run))
    assert "\n" not in str(refused.value)


def test_digests_do_not_count_the_end_of_a_file() -> None:
    assert digest_of("a\n") == digest_of("a") != digest_of("b")
    with pytest.raises(BadRecordError, match="not JSON"):
        Shrunk.from_json("[")
