"""``run --out`` and ``explore --out`` write a results directory like a sweep's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_ml.campaign.store.read_run import SavedRun, open_run
from pulsar_ml.campaign.store.store import read_trials, read_violations
from pulsar_ml.campaign.trial.trial import LEAK
from pulsar_ml.cli import main as pulsar_ml
from pulsar_ml.report.findings import gather
from stress.mutants.build import build
from tests.commands import call
from tests.report.kit import page_data
from tests.stress.conftest import TOYS, Toys


def report(directory: Path) -> dict[str, object]:
    done = CliRunner().invoke(pulsar_ml, ["report", str(directory), "--format", "json"])
    content: dict[str, object] = json.loads(done.stdout)
    assert content["exit_code"] == done.exit_code
    return content


def test_programs_on_real_threads_are_trials(toys: Toys, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, text, _ = toys("run", "counter", "--seeds", "7", "--seed", "3", "--out", str(out))
    assert code in (0, 3), "the machine decides whether operations overlap"
    assert f"report {out}" in text
    trials = read_trials(out)
    assert trials["seed"].to_pylist() == list(range(3, 10))
    assert set(trials["engine"].to_pylist()) == {"threads"}
    assert report(out)["exit_code"] == code
    assert open_run(out).facts["status"] == "finished"


def test_violations_have_a_record_that_replays(toys: Toys, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, _, _ = toys("run", "tattler", "--seeds", "4", "--out", str(out))
    assert code == 1
    rows = read_violations(out).to_pylist()
    assert {row["seed"] for row in rows} == {0, 1, 2, 3}
    found = gather(open_run(out))
    group = found.summary.in_order()[0]
    words = found.command(group).split()
    assert words[-2:] == ["--suites", TOYS] and words[-4] == "replay"
    assert toys("replay", words[-3], "--trust")[0] == 1
    assert report(out)["verdict"] == "violation"


def test_known_failures_of_real_threads_end_nothing(toys: Toys, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert toys("run", "tattler", "--seeds", "4", "--out", str(out), "--failures", "1")[0] == 1
    options = ("--seeds", "4", "--failures", "1", "--out", str(tmp_path / "more"))
    code, text, _ = toys("run", "tattler", *options, "--baseline", str(out))
    assert code == 0 and "baseline: 0 new, 1 known (" in text.splitlines()[-2]
    assert len(read_violations(tmp_path / "more")) == 4, "all of them are kept"
    other = tmp_path / "other"
    toys("run", "counter", "--seeds", "1", "--out", str(other))
    code, text, _ = toys("run", "tattler", "--seeds", "2", "--baseline", str(other))
    assert code == 1 and "baseline: 1 new (" in text.splitlines()[-1]


def test_a_leak_is_a_violation_of_the_last_program(toys: Toys, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert toys("run", "leaky", "--seeds", "80", "--out", str(out))[0] == 1
    (row,) = read_violations(out).to_pylist()
    assert (row["invariant"], row["phase"], row["seed"]) == (LEAK, "growth", 79)
    assert len(read_trials(out)) == 80


def test_a_directory_in_use_is_refused_before_anything_runs(toys: Toys, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    code, _, text = toys("run", "counter", "--seeds", "1", "--out", str(tmp_path))
    assert code == 2
    assert "not empty" in text
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def explored(tmp_path: Path, *arguments: str) -> SavedRun:
    records = str(tmp_path / "records")
    out = str(tmp_path / "out")
    call("explore", "stamped_lock", "--seed", "1", *arguments, "--records", records, "--out", out)
    return open_run(tmp_path / "out")


@pytest.mark.parametrize("sandbox", ["--sandbox", "--no-sandbox"])
def test_explorations_are_trials_under_the_engine(tmp_path: Path, sandbox: str) -> None:
    run = explored(tmp_path, "--seeds", "3", "--executions", "200", sandbox)
    trials = read_trials(run.directory)
    assert trials["executions"].to_pylist() == [200, 200, 200]
    assert set(trials["engine"].to_pylist()) == {"controlled"}
    assert trials["seed"].to_pylist() == [1, 2, 3]
    assert report(run.directory)["verdict"] == "clean"


def test_a_failure_of_an_exploration_is_made_again_and_drawn(tmp_path: Path) -> None:
    module = str(build(checked=True))
    run = explored(tmp_path, "--seeds", "10", "--module", module, "--mutant", "M01")
    (row,) = read_violations(run.directory).to_pylist()
    assert row["invariant"] == "I9"
    page = tmp_path / "page.html"
    done = CliRunner().invoke(
        pulsar_ml, ["report", str(run.directory), "--out", str(page), "--module", module]
    )
    assert done.exit_code == 1
    assert "the failure was made again, step by step" in page.read_text()
    (group,) = page_data(page.read_text())
    assert "stale" in {step[4] for step in group["drawing"]["steps"]}
