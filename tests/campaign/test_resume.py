"""A run killed anywhere and repeatedly resumes to equal trials: none missing, none twice."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_ml.campaign.plan.plan import Plan
from pulsar_ml.campaign.run.progress import Progress
from pulsar_ml.campaign.run.resume import Past, digest_of, past_of
from pulsar_ml.campaign.run.runner import InlineRunner
from pulsar_ml.campaign.run.waves import Outcome, run_campaign
from pulsar_ml.campaign.store.merge import Summary
from pulsar_ml.campaign.store.schema import TRIALS, VERSION_KEY
from pulsar_ml.campaign.store.store import (
    RUN_VERSION,
    RunStore,
    read_trials,
    read_violations,
    waves_of,
)
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.errors import UsageError
from tests.campaign.rows import JOB, SUITE, made_up_trial, stable_rows

OTHER = Suite(name="other", subject="other", summary="Made up, too.")
SUITES = {SUITE.name: SUITE, OTHER.name: OTHER}
PLAN = Plan((SUITE.name, OTHER.name), 3, 13, 2, TrialOptions())
FACTS: dict[str, Any] = {
    "run_id": JOB.run_id,
    "build_id": JOB.build_id,
    "plan": PLAN.to_json(),
    "runner": {},
}
WATCHED = {
    os: ("replace", "rename", "fsync", "unlink", "mkdir", "chmod"),
    tempfile: ("mkstemp", "mkdtemp"),
    shutil: ("rmtree",),
}


@pytest.fixture(autouse=True, scope="module")
def no_waiting_for_the_disk() -> Iterator[None]:
    """Skip waiting for the disk: kills are of processes, and the machine survives them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


class Killed(BaseException):
    """Stands for a kill: later actions of the process have no effect."""


class Mortal:
    """Ends the process's file changes at the n-th one, before or after that change."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int, *, before: bool) -> None:
        self.left = at
        self.before = before
        for module, names in WATCHED.items():
            for name in names:
                patch.setattr(module, name, self.counted(getattr(module, name)))

    def counted(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def output(*arguments: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left < 0 or (self.left == 0 and self.before):
                raise Killed
            result = change(*arguments, **options)
            if self.left == 0:
                raise Killed
            return result

        return output


def session(directory: Path) -> Outcome:
    """Begin a run, or resume it."""
    outcome = Outcome()
    done: AbstractSet[int] = frozenset()
    if (directory / "run.json").exists():
        past = past_of(directory)
        store, done = past.store, past.done
        outcome.summary, outcome.waves, outcome.earlier = (
            past.summary,
            past.waves,
            past.summary.trials,
        )
        store.tidy()
    else:
        store = RunStore(directory, FACTS)
    try:
        runner = InlineRunner(SUITES, trial=made_up_trial)
        return run_campaign(PLAN, JOB, runner, store, outcome=outcome, done=done, wave_seconds=0.0)
    finally:
        store.close()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("undisturbed") / "run"
    assert session(directory).status == "finished"
    return directory


def kill(directory: Path, at: int, *, before: bool) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        Mortal(patch, at, before=before)
        try:
            session(directory)
        except Killed:
            return True
    return False


def check_what_readers_see(directory: Path) -> None:
    trials, violations = read_trials(directory).to_pylist(), read_violations(directory).to_pylist()
    keys = [(row["suite"], row["seed"]) for row in trials]
    assert len(set(keys)) == len(keys)
    violating = {(row["suite"], row["seed"]) for row in trials if row["verdict"] == "violation"}
    assert {(row["suite"], row["seed"]) for row in violations} == violating


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 70), st.booleans()), min_size=1, max_size=6))
def test_kills_at_any_change_of_a_file_cost_nothing(
    undisturbed: Path, kills: list[tuple[int, bool]]
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "run"
        for at, before in kills:
            kill(directory, at, before=before)
            if directory.exists():
                check_what_readers_see(directory)
        outcome = session(directory)
        check_what_readers_see(directory)
        assert outcome.status == "finished" and outcome.summary.trials == PLAN.trials
        for read in (read_trials, read_violations):
            assert stable_rows(read(directory)) == stable_rows(read(undisturbed))
        names = {path.name for path in directory.rglob("*")}
        assert not [name for name in names if name.startswith(".")], "nothing half written is left"
        assert waves_of(directory) == sorted(
            path.name for path in (directory / "violations").iterdir()
        )


def test_each_single_kill_point_of_a_run_is_survived(undisturbed: Path, tmp_path: Path) -> None:
    points = 0
    while kill(tmp_path / f"{points}", points + 1, before=points % 2 == 0):
        assert session(tmp_path / f"{points}").summary.trials == PLAN.trials
        points += 1
    assert points > 40, "a run has many moments"
    assert stable_rows(read_trials(tmp_path / "20")) == stable_rows(read_trials(undisturbed))


def test_a_run_that_goes_on_does_only_what_is_left_and_counts_all(tmp_path: Path) -> None:
    kill(tmp_path / "run", 35, before=True)
    past = past_of(tmp_path / "run")
    past.store.close()
    assert 0 < len(past.done) < PLAN.chunk_count
    seen: list[int] = []

    def trial(suite: Suite, seed: int, options: TrialOptions) -> Any:
        seen.append(seed)
        return made_up_trial(suite, seed, options)

    outcome = Outcome(summary=past.summary, waves=past.waves, earlier=past.summary.trials)
    shown: list[Progress] = []
    run_campaign(
        PLAN, JOB, InlineRunner(SUITES, trial=trial), past.store, outcome=outcome, done=past.done,
        show=shown.append,
    )  # fmt: skip
    assert len(seen) == PLAN.trials - outcome.earlier
    assert (outcome.status, outcome.summary.trials) == ("finished", PLAN.trials)
    assert shown[0].earlier == outcome.earlier and shown[-1].trials == PLAN.trials


def test_a_finished_run_has_nothing_left(undisturbed: Path) -> None:
    past = past_of(undisturbed)
    past.store.close()
    assert len(past.done) == PLAN.chunk_count and past.plan == PLAN
    assert past.summary.trials == PLAN.trials


def test_a_run_has_one_writer(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "run", FACTS)
    with pytest.raises(UsageError, match="another process is writing"):
        past_of(tmp_path / "run")
    store.close()
    past: Past = past_of(tmp_path / "run")
    assert past.done == frozenset() and past.summary == Summary()
    past.store.close()


def facts(directory: Path) -> Any:
    return json.loads((directory / "run.json").read_text())


def rewrite(directory: Path, **changes: Any) -> None:
    records = {
        name: value for name, value in {**facts(directory), **changes}.items() if value is not ...
    }
    (directory / "run.json").write_text(json.dumps(records))


def damaged_wave(directory: Path, change: Callable[[Any], Any], part: str = "trials") -> None:
    path = directory / part / waves_of(directory)[1]
    pq.write_table(change(pq.read_table(path)), path)


def damaged_ledger(directory: Path, **values: object) -> None:
    def changed(table: pa.Table) -> pa.Table:
        lines = [{**line, **values} for line in table.to_pylist()]
        fields = [field.with_nullable(True) for field in table.schema]
        return pa.Table.from_pylist(lines, pa.schema(fields, table.schema.metadata))

    damaged_wave(directory, changed, "chunks")


def write_broken_note(run: Path) -> None:
    (run / ".compacting").mkdir()
    (run / ".compacting" / "whole.json").write_text("[")


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no run.json": (lambda run: (run / "run.json").unlink(), "there is no run in .*: it has no run.json"),
    "truncated": (lambda run: (run / "run.json").write_text('{"version": 1, "ru'), "run.json is not JSON"),
    "empty": (lambda run: (run / "run.json").write_text(""), "run.json is not JSON"),
    "deep": (lambda run: (run / "run.json").write_text("[" * 100_000), "run.json is not JSON"),
    "bytes": (lambda run: (run / "run.json").write_bytes(b"\xff\xfe\x00"), "run.json is not text"),
    "a list": (lambda run: (run / "run.json").write_text("[]"), "it should be a JSON object"),
    "newer": (lambda run: rewrite(run, version=RUN_VERSION + 1), "use a newer pulsar_ml"),
    "no run id": (lambda run: rewrite(run, run_id=...), "run_id is missing; it should be a text"),
    "a build id of another kind": (
        lambda run: rewrite(run, build_id=7), "build_id is 7; it should be a text"
    ),
    "another build": (lambda run: rewrite(run, build_id="another"), "trials of another run or build"),
    "no plan": (lambda run: rewrite(run, plan=...), "plan is missing; it should be an object"),
    "a plan without seeds": (
        lambda run: rewrite(run, plan={"version": 2, "suites": ["a"], "options": {}}),
        "first_seed is missing; it should be an integer",
    ),
    "a plan of words": (
        lambda run: rewrite(run, plan={**PLAN.to_json(), "options": {"executions": "many"}}),
        'executions is "many"; it should be an integer',
    ),
    "a newer plan": (lambda run: rewrite(run, plan={**PLAN.to_json(), "version": 99}), "version 99"),
    "a plan of other chunks": (
        lambda run: rewrite(run, plan={**PLAN.to_json(), "pieces": 3}),
        "does not have each seed of chunk",
    ),
    "no violations": (
        lambda run: (run / "violations" / waves_of(run)[1]).unlink(),
        "wave-00001.parquet in .* is damaged or incomplete",
    ),
    "half a wave": (
        lambda run: (run / "trials" / waves_of(run)[1]).write_bytes(b"PAR1 and no more"),
        "is damaged or incomplete",
    ),
    "a lost trial": (lambda run: damaged_wave(run, lambda table: table.slice(1)), "each seed of chunk 1"),
    "a wave twice": (
        lambda run: [
            shutil.copy(run / part / "wave-00000.parquet", run / part / "wave-00077.parquet")
            for part in ("trials", "chunks", "violations")
        ],
        "chunk 0 is there twice",
    ),
    "no ledger": (
        lambda run: (run / "chunks" / waves_of(run)[1]).unlink(),
        "wave-00001.parquet in .* is damaged or incomplete",
    ),
    "half a ledger": (
        lambda run: damaged_wave(run, lambda table: table.slice(1), "chunks"), "and its chunks have 0",
    ),
    "a ledger of other seeds": (lambda run: damaged_ledger(run, seed_hi=99), "not have each seed of chunk 1"),
    "a ledger that counts otherwise": (lambda run: damaged_ledger(run, clean=99), "each seed of chunk 1"),
    "a ledger with more violations": (
        lambda run: damaged_ledger(run, violations=99), "and its chunks have 99"
    ),
    "a ledger of a chunk that is none": (lambda run: damaged_ledger(run, chunk_id=-1), "none of the plan's"),
    "a ledger of another run": (lambda run: damaged_ledger(run, run_id="b"), "of another run or build"),
    "a ledger with empty places": (lambda run: damaged_ledger(run, trials=None), "has nulls"),
    "a sketch with empty places": (lambda run: damaged_ledger(run, sketch=[1, None]), "has nulls"),
    "a note of no compaction": (
        write_broken_note,
        "whole.json is damaged",
    ),
    "tables of another version": (
        lambda run: damaged_wave(run, lambda table: table.replace_schema_metadata({VERSION_KEY: b"1"})),
        "have version 1",
    ),
}  # fmt: skip


def content(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("name", DAMAGE)
def test_what_does_not_fit_is_refused_in_one_sentence_and_changes_nothing(
    undisturbed: Path, tmp_path: Path, name: str
) -> None:
    damage, message = DAMAGE[name]
    run = tmp_path / "run"
    shutil.copytree(undisturbed, run)
    damage(run)
    before = content(run)
    for _ in range(2):  # and its lock is released
        with pytest.raises(UsageError, match=message) as refused:
            past_of(run)
        assert "\n" not in str(refused.value)
    assert content(run) == before


def test_tables_keep_their_columns(undisturbed: Path) -> None:
    assert read_trials(undisturbed).schema.equals(TRIALS)


def test_suites_that_make_other_programs_have_another_digest() -> None:
    assert digest_of([SUITE, OTHER]) == digest_of([SUITE, OTHER]) != digest_of([OTHER, SUITE])
    changed = Suite(name=SUITE.name, subject=SUITE.subject, summary=SUITE.summary, mix={"add": 2})
    assert digest_of([changed, OTHER]) != digest_of([SUITE, OTHER])
