"""Core time: what a sweep spent inside concurrent runs, and around them."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from pulsar_ml.campaign.store.columns import SPENT
from pulsar_ml.campaign.store.exposure import WORDS, inside, sentence, shares
from pulsar_ml.campaign.store.merge import SuiteTotals, Summary
from pulsar_ml.campaign.store.store import read_trials
from pulsar_ml.campaign.trial import phases
from tests.commands import call

SECOND = 1_000_000
TOTALS = SuiteTotals(trials=2, draw_us=SECOND, run_us=3 * SECOND, judge_us=2 * SECOND)
SUMMARY = Summary({"one": TOTALS, "two": SuiteTotals(trials=1, run_us=SECOND)})


def test_shares_are_of_all_cores_and_add_up() -> None:
    found = shares(SUMMARY, cores=4, seconds=5)
    assert found["run"] == pytest.approx(0.2)
    assert found["draw"] == pytest.approx(0.05)
    assert found["elsewhere"] == pytest.approx(0.65)
    assert sum(found.values()) == pytest.approx(1) and len(found) == len(SPENT) + 1
    assert shares(SUMMARY, cores=4, seconds=0) == {}


def test_a_sentence_begins_with_the_runs_and_leaves_out_what_is_nothing() -> None:
    assert sentence(SUMMARY, cores=4, seconds=5) == (
        "core time: 20% inside concurrent runs, 5% drawing programs, 10% judging them, "
        "65% elsewhere (of 4 cores for 0:05)"
    )
    engine = Summary({"one": SuiteTotals(trials=1, executions=9, run_us=SECOND)})
    assert sentence(engine, cores=1, seconds=2).startswith("core time: 50% inside executions, 50%")
    older = Summary({"one": SuiteTotals(trials=1)})
    assert sentence(older, cores=1, seconds=2) == ""


def test_a_suite_says_how_much_of_its_own_time_was_inside() -> None:
    assert inside(TOTALS) == 0.5
    assert inside(SuiteTotals(trials=1)) is None


@pytest.mark.parametrize("engine", ["threads", "controlled"])
def test_each_trial_measures_its_phases(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = count(step=1_000_000)
    monkeypatch.setattr(phases, "time", SimpleNamespace(process_time_ns=lambda: next(clock)))
    bound = ("--executions", "20") if engine == "controlled" else ("--operations", "50")
    words = ("--suite", "refcount", "--seeds", "2", "--runner", "inline", "--engine", engine)
    done = call("sweep", *words, *bound, "--out", str(tmp_path / "run"), "--json")
    rows = read_trials(tmp_path / "run").to_pylist()
    around = {"create_us", "check_us", "record_us", "judge_us"}
    for row in rows:
        assert row["draw_us"] > 0 and row["run_us"] > 0
        assert any(row[name] for name in around) == (engine == "threads")
    content = json.loads(done.out)
    assert set(content["core_time"]) == set(WORDS)
    assert content["suites"]["refcount"]["run_us"] == sum(row["run_us"] for row in rows)
