"""``--out``: a run without Spark leaves the directory that a sweep leaves, and it is reported like one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_ml.campaign.local.session import LEAK
from pulsar_ml.campaign.store.read_run import SavedRun, open_run
from pulsar_ml.campaign.store.store import read_trials, read_violations
from pulsar_ml.cli import main as pulsar_ml
from pulsar_ml.cli.stress import main
from pulsar_ml.report.findings import gather
from stress.mutants.build import build

Stress = Callable[..., tuple[int, str, str]]


def report(directory: Path) -> dict[str, object]:
    done = CliRunner().invoke(pulsar_ml, ["report", str(directory), "--format", "json"])
    content: dict[str, object] = json.loads(done.stdout)
    assert content["exit_code"] == done.exit_code
    return content


def test_programs_on_real_threads_are_trials(stress: Stress, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, told, _ = stress("run", "counter", "--programs", "7", "--seed", "3", "--out", str(out))
    assert code in (0, 3), "the machine decides whether operations overlap"
    assert f"python -m pulsar_ml report {out}" in told
    trials = read_trials(out)
    assert trials["seed"].to_pylist() == list(range(3, 10))
    assert set(trials["engine"].to_pylist()) == {"threads"}
    assert report(out)["exit_code"] == code
    assert open_run(out).facts["status"] == "finished"


def test_violations_have_a_record_that_replays(stress: Stress, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, _, _ = stress("run", "tattler", "--programs", "4", "--out", str(out))
    assert code == 1
    rows = read_violations(out).to_pylist()
    assert {row["seed"] for row in rows} == {0, 1, 2, 3}
    found = gather(open_run(out))
    group = found.summary.in_order()[0]
    words = found.command(group).split()
    assert words[:5] == ["python", "-m", "stress", "--suites", "tests.stress.toy_suites"]
    assert stress("replay", words[-1])[0] == 1
    assert report(out)["verdict"] == "violation"


def test_a_leak_is_a_violation_of_the_last_program(stress: Stress, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert stress("run", "leaky", "--programs", "40", "--out", str(out))[0] == 1
    (row,) = read_violations(out).to_pylist()
    assert (row["invariant"], row["phase"], row["seed"]) == (LEAK, "growth", 39)
    assert len(read_trials(out)) == 40


def test_a_directory_in_use_is_refused_before_anything_runs(stress: Stress, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    code, _, told = stress("run", "counter", "--programs", "1", "--out", str(tmp_path))
    assert code == 2
    assert "not empty" in told
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def explored(tmp_path: Path, *arguments: str) -> SavedRun:
    records = str(tmp_path / "records")
    main(
        [
            "explore",
            "stamped_lock",
            "--seed",
            "1",
            *arguments,
            "--records",
            records,
            "--out",
            str(tmp_path / "out"),
        ]
    )
    return open_run(tmp_path / "out")


@pytest.mark.parametrize("sandbox", ["--sandbox", "--no-sandbox"])
def test_explorations_are_trials_under_the_engine(tmp_path: Path, sandbox: str) -> None:
    run = explored(tmp_path, "--executions", "500", "--per-program", "200", sandbox)
    trials = read_trials(run.directory)
    assert trials["executions"].to_pylist() == [200, 200, 100]
    assert set(trials["engine"].to_pylist()) == {"controlled"}
    assert trials["seed"].to_pylist() == [1, 2, 3]
    assert report(run.directory)["verdict"] == "clean"


def test_a_failure_of_an_exploration_is_made_again_and_drawn(tmp_path: Path) -> None:
    module = str(build(checked=True))
    run = explored(tmp_path, "--executions", "20000", "--module", module, "--mutant", "M01")
    (row,) = read_violations(run.directory).to_pylist()
    assert row["invariant"] == "I9"
    page = tmp_path / "page.html"
    done = CliRunner().invoke(
        pulsar_ml, ["report", str(run.directory), "-o", str(page), "--module", module]
    )
    assert done.exit_code == 1
    assert "the failure was made again, step by step" in page.read_text()
    assert 'class="step load stale"' in page.read_text()
