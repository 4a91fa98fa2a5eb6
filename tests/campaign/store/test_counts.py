"""Counts of exercised, idle, judged, unknown and cut; statistics are of samples only."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.store.counts import ProofCounts
from pulsar_ml.campaign.store.merge import Summary, add
from pulsar_ml.campaign.store.schema import split
from pulsar_ml.campaign.store.summary import summary_data
from pulsar_ml.campaign.trial.chunk import run_chunk
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import CONTROLLED, TrialOptions, TrialResult
from tests.campaign.rows import JOB, SUITE, made_up_trial


def test_each_kind_is_counted_apart() -> None:
    counts = ProofCounts(trials=10, idle=3, judged=1, unknown=1, executions=20, cut=2)
    assert counts.trials_text() == "7 exercised, 3 idle"
    assert counts.histories_text() == "1 history judged (1 unknown)"
    assert counts.executions_text() == "20 executions under the engine (2 cut)"
    assert counts.as_data() == {
        "trials": 10,
        "idle": 3,
        "exercised": 7,
        "judged": 1,
        "unknown": 1,
        "executions": 20,
        "cut": 2,
    }


def test_more_than_a_tenth_of_idle_trials_is_a_warning() -> None:
    assert ProofCounts(trials=100, idle=10).warning() == ""
    assert ProofCounts(trials=0, idle=0).warning() == ""
    programs = ProofCounts(trials=100, idle=11, noun="program")
    assert "11 of 100 programs (11%) were idle: no operations overlapped" in programs.warning()
    engine = ProofCounts(trials=2, idle=2, executions=9)
    assert "no two threads touched one location" in engine.warning()


def explored(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    """A hundred executions, of which each class occurs once in a search."""
    once = 100 if options.strategy == "preemptions" else 1
    result = made_up_trial(suite, seed, options)
    return replace(result, verdict="clean", executions=100, once=once, cut=3)


def summary_of(*strategies: str) -> Summary:
    summary = Summary()
    for number, strategy in enumerate(strategies):
        options = TrialOptions(engine=CONTROLLED, strategy=strategy)
        job, chunk = replace(JOB, options=options), Chunk(number, SUITE.name, 1, 3)
        batch = run_chunk(SUITE, chunk, job, trial=explored)
        add(summary, *split(pa.Table.from_batches([batch])))
    return summary


@pytest.mark.parametrize(
    ("strategies", "unseen", "risk"),
    [
        (("random",), 0.01, 3 / 200),
        (("random", "preemptions"), 0.01, 3 / 200),
        (("preemptions",), None, None),
    ],
)
def test_the_executions_of_a_search_are_no_sample(
    strategies: tuple[str, ...], unseen: float | None, risk: float | None
) -> None:
    totals = summary_of(*strategies).suites[SUITE.name]
    assert (totals.unseen_mass, totals.residual_risk) == (unseen, risk)


def test_the_summary_of_a_run_has_all_counts() -> None:
    data = summary_data(summary_of("random"), lambda group: "")
    counts = ("trials", "exercised", "idle", "judged", "unknown", "executions", "cut", "warning")
    assert [data[name] for name in counts] == [2, 2, 0, 30, 1, 200, 6, ""]
