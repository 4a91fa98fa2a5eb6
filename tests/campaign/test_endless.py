"""A campaign without an end: it stops on request, resumes, and leaves no chunk out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pulsar_ml.campaign.plan.endless import Endless, plan_without_end
from pulsar_ml.campaign.plan.plan import SEED_LIMIT, Plan
from pulsar_ml.campaign.run.progress import Progress
from pulsar_ml.campaign.run.runner import InlineRunner
from pulsar_ml.campaign.run.waves import Outcome, run_campaign
from pulsar_ml.campaign.store.store import RunStore, read_trials
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.errors import UsageError
from tests.campaign.rows import JOB, SUITE, made_up_trial

PLAN = plan_without_end((SUITE.name,), 100, 3, TrialOptions())


def test_the_chunks_of_such_a_plan_have_the_size_they_should() -> None:
    for chunk_id in (0, 1, 10**9, PLAN.chunk_count - 1):
        chunk = PLAN.chunk(chunk_id)
        assert (chunk.seed_lo, len(chunk)) == (100 + 3 * chunk_id, 3)
    assert SEED_LIMIT - 3 <= PLAN.first_seed + PLAN.seeds <= SEED_LIMIT
    assert Plan.from_json(PLAN.to_json()) == PLAN


@pytest.mark.parametrize(("first", "size"), [(0, 0), (-1, 3), (SEED_LIMIT - 2, 3)])
def test_a_plan_that_cannot_be_is_refused(first: int, size: int) -> None:
    with pytest.raises(UsageError, match="at least 1 seed|seeds must lie in"):
        plan_without_end((SUITE.name,), first, size, TrialOptions())


def run(
    store: RunStore, source: Endless, done: set[int], outcome: Outcome, waves: int
) -> list[Progress]:
    shown: list[Progress] = []
    last = outcome.waves + waves
    run_campaign(
        source,
        JOB,
        InlineRunner({SUITE.name: SUITE}, trial=made_up_trial),
        store,
        outcome=outcome,
        done=done,
        stopped=lambda: outcome.waves >= last,
        show=shown.append,
        wave_seconds=0.0,
    )
    return shown


def test_it_stops_when_it_is_told_and_goes_on_with_what_was_left_out(tmp_path: Path) -> None:
    store, outcome = RunStore(tmp_path / "run"), Outcome()
    shown = run(store, Endless(PLAN, 0), set(), outcome, 4)
    assert outcome.status == "stopped"
    assert shown[-1].total is None and shown[-1].seconds_left is None and shown[-1].trials == 12
    # As if chunks 1 and 2 had failed and were not among the finished ones.
    another = RunStore(tmp_path / "another")
    run(another, Endless(PLAN, 4), {0, 3}, Outcome(), 3)
    assert read_trials(another.directory)["chunk_id"].to_pylist() == [1, 1, 1, 2, 2, 2, 4, 4, 4]


def test_a_batch_is_asked_for_when_the_one_before_is_in_the_store(tmp_path: Path) -> None:
    store, outcome = RunStore(tmp_path / "run"), Outcome()
    there = []

    def batches() -> Any:
        for batch in ([0, 1], [1, 2, 3], [4]):
            there.append(read_trials(store.directory).num_rows)
            yield batch

    # Chunk 1 is stored, as after a kill before its batch was committed.
    run(store, Endless(PLAN, 0, batches), {1}, outcome, 99)
    assert there == [0, 3, 9]
    assert sorted(set(read_trials(store.directory)["chunk_id"].to_pylist())) == [0, 2, 3, 4]
    assert outcome.status == "failed", "batches of a stream do not end by themselves"


def test_what_failed_at_the_end_of_a_batch_that_was_committed_runs_with_the_next_one(
    tmp_path: Path,
) -> None:
    store = RunStore(tmp_path / "run")
    # Chunks 0 and 1 are stored; 2 and 3 failed, and the stream continues with 4.
    run(store, Endless(PLAN, 2, lambda: iter([[4, 5], [6]])), {0, 1}, Outcome(), 99)
    assert sorted(set(read_trials(store.directory)["chunk_id"].to_pylist())) == [2, 3, 4, 5, 6]
