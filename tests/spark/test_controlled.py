"""Sweeps under the engine: equal rows from the pool and from Spark, and exact replays."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pulsar_ml.campaign.plan.plan import Chunk, Plan
from pulsar_ml.campaign.store.schema import ROW
from pulsar_ml.campaign.store.store import read_trials, read_violations
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.campaign.trial.trial import CHECKED, CONTROLLED, TrialOptions, load_native
from pulsar_ml.cli.find.sweep import command as main
from pulsar_ml.distributed.tasks import ExecutorError, rows_of, runner_for, work_for
from pulsar_ml.sweep.command_lines import search_command
from pulsar_ml.terminal.command_line import DEFAULT_SUITES
from tests import ROOT
from tests.campaign.rows import stable_rows
from tests.harness.toys.build_toys import toys_path
from tests.spark.session.one_jvm import OneJvm
from tests.spark.session.test_tasks import REGISTRY as TOY_SUITES
from tests.spark.test_sweep import TIMEOUT, environment

EXACT = "the failure was made again, step by step"


def sweep_here(*options: str) -> Result:
    common = ["--suites", TOY_SUITES, "--engine", "controlled", "--runner", "inline"]
    return CliRunner().invoke(main, [*common, "--module", str(toys_path(checked=True)), *options])


def run_printed(command: str, directory: Path) -> subprocess.CompletedProcess[str]:
    env = environment(PYTHONPATH=str(ROOT / "tests" / "spark"))
    return subprocess.run(
        command, shell=True, env=env, cwd=directory, capture_output=True, text=True, timeout=TIMEOUT
    )


def test_a_racy_toy_is_reported_and_the_printed_command_makes_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = sweep_here(
        *("--suite", "racy", "--suite", "counter"),
        *("--seed", "3", "--seeds", "5", "--executions", "200"),
    )
    assert done.exit_code == 1, done.output
    assert "engine controlled (mode c11, strategy portfolio, 200 executions each)" in done.stderr
    assert "Suites under the engine" in done.stdout and "executions under the engine" in done.stdout
    assert "Replay the smallest seed of each (step by step):" in done.stdout
    (command,) = [line.strip() for line in done.stdout.splitlines() if " replay " in line]
    replayed = run_printed(command, tmp_path)
    assert replayed.returncode == 1, replayed.stderr
    assert "T1" in replayed.stdout and EXACT in replayed.stdout


@pytest.mark.xdist_group("spark")
def test_executors_and_a_pool_give_the_same_rows(tmp_path: Path, spark_jvm: OneJvm) -> None:
    options = [
        "--engine",
        "controlled",
        "--suite",
        "racy",
        "--suite",
        "counter",
        "--seed",
        "100",
    ]
    options += ["--seeds", "8", "--chunk-size", "4", "--executions", "150", "--mode", "tso"]
    options += ["--module", str(toys_path(checked=True)), "--json"]
    results = []
    for number, place in enumerate((["--master", "local[2]"], ["--runner", "pool"])):
        directory = tmp_path / str(number)
        directory.mkdir()
        done = spark_jvm.sweep(directory, *options, *place)
        assert done.returncode == 1, done.stderr
        results.append(json.loads(done.stdout))
    for read in (read_trials, read_violations):
        spread, pooled = (stable_rows(read(tmp_path / name / "out")) for name in ("0", "1"))
        assert spread == pooled and spread
    trials = read_trials(tmp_path / "0" / "out").to_pylist()
    assert len(trials) == 16 and {row["mode"] for row in trials} == {"tso"}
    assert {row["verdict"] for row in trials if row["suite"] == "racy"} == {"violation"}
    assert results[0]["suites"]["counter"]["residual_risk"] == 3 / 1200
    seen = [
        [
            (group["signature"], group["smallest_seed"], group["count"], group["message"])
            for group in groups
        ]
        for groups in (results[0]["signatures"], results[1]["signatures"])
    ]
    assert seen[0] == seen[1]
    signature = next(group for group in results[0]["signatures"] if group["invariant"] == "T1")
    replayed = run_printed(signature["replay"], tmp_path / "0")
    assert replayed.returncode == 1 and EXACT in replayed.stdout


def test_an_executor_checks_module_build_and_hooks() -> None:
    def work(module: str, build_id: str | None = None):  # type: ignore[no-untyped-def]
        options = TrialOptions(engine=CONTROLLED, module=module, executions=20)
        job = Job("a-run", build_id or load_native(module).BUILD_ID, options)
        chunks = list(Plan(("counter",), 5, 2, 1, options).chunks())
        return work_for(job, chunks, TOY_SUITES)

    (batch,) = rows_of(work(str(toys_path(checked=True))), [0])
    assert batch.schema.equals(ROW) and batch["executions"].to_pylist() == [20, 20]
    with pytest.raises(ExecutorError, match="cannot run this sweep: .* has no hooks") as raised:
        runner_for(work(str(toys_path())))
    assert "\n" not in str(raised.value)
    with pytest.raises(ExecutorError, match="but this sweep is about build another"):
        runner_for(work(str(toys_path(checked=True)), "another"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "threads", "--mode", "sc"], "--mode is for --engine controlled"),
        (["--mode", "arm"], "'arm' is not one of 'sc', 'tso', 'c11'"),
        (["--strategy", "luck"], "no strategy 'luck'; use one of: random"),
        (["--executions", "0"], "0 is not in the range"),
        (["--threads", "64"], "not 64"),
        (["--module", str(toys_path())], "has no hooks"),
    ],
)
def test_what_does_not_fit_the_engine_is_a_usage_error(
    tmp_path: Path, options: list[str], message: str
) -> None:
    done = sweep_here("--suite", "counter", "--out", str(tmp_path / "out"), *options)
    assert (done.exit_code, message in done.stderr) == (2, True), done.output
    assert not (tmp_path / "out").exists()


def test_the_search_for_a_crash_is_a_sweep_seed_by_seed() -> None:
    options = TrialOptions(engine=CONTROLLED, module=CHECKED, mode="sc", executions=50, threads=3)
    command = shlex.split(search_command(Chunk(0, "a", 40, 60), options, DEFAULT_SUITES))
    at = command.index("sweep")
    assert command[at : at + 5] == ["sweep", "--suite", "a", "--engine", "controlled"]
    for pair in ("--seed 40", "--seeds 20", "--chunk-size 1", "--mode sc", "--executions 50"):
        assert pair in " ".join(command)
