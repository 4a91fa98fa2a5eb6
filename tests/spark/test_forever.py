"""Endless sweeps: stopped, killed and started again, they run each seed once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pulsar_ml.campaign.store.store import read_trials, read_violations
from pulsar_ml.cli.find.sweep import command as main
from pulsar_ml.distributed.stream import checkpoint_in
from pulsar_ml.exit_codes import CLEAN, NOTHING_EXERCISED
from pulsar_ml.sweep.forever import publish
from tests.harness.toys.build_toys import toys_path
from tests.spark.machines.test_kills import Gate, everything, gated_seeds, whole_chunks
from tests.spark.session.one_jvm import OneJvm
from tests.spark.sweep_suites import GATE, TOYS
from tests.spark.test_sweep import DRIVER, TIMEOUT, environment

COMMON = ["--forever", "--chunk-size", "2", "--wave-seconds", "0.001", "--runs", "1"]


def sweep(out: Path, *options: str) -> Result:
    common = [
        "--suites",
        "tests.spark.sweep_suites",
        "--module",
        str(toys_path()),
        "--runner",
        "inline",
    ]
    return CliRunner().invoke(main, [*common, *COMMON, "--out", str(out), *options])


def facts(run: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((run / "run.json").read_text())
    return content


BOTH = ("--suite", "tattler", "--suite", "counter", "--threads", "1")


def test_it_stops_after_some_waves_and_the_same_command_goes_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = [*BOTH, "--witnesses", "3"]
    done = sweep(run, *options, "--waves", "3")
    assert done.exit_code == 1, done.output
    assert "seeds from 0 without an end" in done.stderr and "of 922" not in done.output
    assert "stopped: 4 violations with 1 signature in 6 trials" in done.stdout
    assert facts(run)["status"] == "stopped"
    done = sweep(run, *options, "--waves", "4", "--json")
    assert done.exit_code == 1, done.output
    result = json.loads(done.stdout)
    assert (result["status"], result["planned"], result["trials"], result["violations"]) == (
        "stopped",
        None,
        14,
        8,
    )
    done = CliRunner().invoke(main, ["--resume", str(run), "--trust", "--waves", "1"])
    assert done.exit_code == 1 and "in 16 trials" in done.stdout
    trials = read_trials(run).to_pylist()
    assert Counter((row["suite"], row["seed"]) for row in trials) == Counter(
        (suite, seed) for suite in ("tattler", "counter") for seed in range(8)
    )
    violations = read_violations(run).to_pylist()
    assert [row["seed"] for row in violations if row["replay"]] == [0, 1, 2]
    assert sum(1 + row["unlisted"] for row in violations) == 8


def test_clean_trials_end_with_0_and_a_report(tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = sweep(run, "--suite", "counter", "--threads", "1", "--waves", "1")
    assert done.exit_code == 0, done.output
    assert "No violation in 2 trials (" in (run / "report.html").read_text()


def test_a_report_at_each_wave_is_replaced_whole_and_a_failed_report_is_noted(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    done = sweep(run, *BOTH, "--waves", "2", "--report-every", "0")
    assert done.exit_code == 1 and "no report" not in done.stderr
    assert "2 violations with 1 signature in 4 trials" in (run / "report.html").read_text()
    assert not [path for path in run.iterdir() if path.name.startswith(".report")]
    (run / "run.json").write_text("{")
    notes: list[str] = []
    publish(run, notes.append)
    (note,) = notes
    assert note.startswith("no report could be made: ") and "is not JSON" in note


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seeds", "5"], "takes no --seeds"),
        (["--seconds", "5"], "takes no --seconds"),
        (["--chunk-size", "0"], "0 is not in the range"),
        (["--seed", "-1"], "-1 is not in the range"),
        (["--witnesses", "0"], "0"),
        (["--waves", "0"], "0"),
        (["--report-every", "-1"], "-1"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, options: list[str], message: str) -> None:
    done = sweep(tmp_path / "run", "--suite", "counter", "--waves", "1", *options)
    assert done.exit_code == 2 and message in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "option", [["--waves", "2"], ["--witnesses", "2"], ["--report-every", "2"]]
)
def test_its_options_are_for_it_only(tmp_path: Path, option: list[str]) -> None:
    done = CliRunner().invoke(main, ["--runner", "inline", "--out", str(tmp_path / "run"), *option])
    assert done.exit_code == 2 and f"{option[0]} is for --forever" in done.stderr


def test_a_run_keeps_its_kind(tmp_path: Path) -> None:
    run = tmp_path / "run"
    common = [
        "--suites",
        "tests.spark.sweep_suites",
        "--module",
        str(toys_path()),
        "--runner",
        "inline",
    ]
    one = ["--suite", "counter", "--threads", "1", "--chunk-size", "2"]
    done = CliRunner().invoke(main, [*common, *one, "--seeds", "2", "--out", str(run)])
    assert done.exit_code == 0, done.output
    done = sweep(run, "--suite", "counter", "--threads", "1", "--waves", "1")
    assert done.exit_code == 2 and "is a run with an end; leave --forever out" in done.stderr
    done = sweep(
        run,
        "--suite",
        "counter",
        "--threads",
        "2",
        "--out",
        str(tmp_path / "other"),
        "--waves",
        "1",
    )
    # Two threads of a busy machine may never overlap.
    assert done.exit_code in {CLEAN, NOTHING_EXERCISED}, done.output
    done = sweep(tmp_path / "other", "--suite", "counter", "--threads", "1", "--waves", "1")
    assert done.exit_code == 2 and "its threads is 2 and not 1" in done.stderr


def test_a_checkpoint_says_where_its_stream_began(tmp_path: Path) -> None:
    assert checkpoint_in(tmp_path, 7) == (tmp_path / "checkpoint" / "from-7", 7)
    (tmp_path / "checkpoint" / "from-3").mkdir()
    assert checkpoint_in(tmp_path, 7) == (tmp_path / "checkpoint" / "from-3", 3)


class Night:
    """An endless command, which may be started several times."""

    def __init__(self, directory: Path) -> None:
        self.gate = Gate(directory / "gate")
        self.log = directory / "log"
        self.out = directory / "out"
        self._directory = directory
        outcome = {TOYS: str(toys_path()), GATE: str(self.gate.directory)}
        self._env = environment(**outcome)
        self.options = ["--suites", "sweep_suites", "--module", "sweep_suites"]
        self.options += ["--suite", "gated", *COMMON, "--out", "out"]

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", DRIVER, *self.options, *more],
                cwd=self._directory,
                env=self._env,
                stdout=log,
                stderr=log,
            )

    def seeds(self) -> list[int]:
        return sorted(read_trials(self.out)["seed"].to_pylist())


def killed_stopped_and_on(night: Night, *runner: str) -> None:
    """Killed with everything it started, then asked to stop, each time in the middle of a wave."""
    early, late = gated_seeds()[1:3]
    night.gate.close(early, late)
    driver = night.start(*runner)
    try:
        trial = night.gate.wait(early, night.log, driver)
        night.gate.open(early)
        night.gate.kill(everything(driver, trial), trial)
        assert driver.wait(TIMEOUT) == -signal.SIGKILL
        done = whole_chunks(night.out)
        assert set(range(4)) <= set(done), "the wave before"
        assert early not in done
        driver = night.start(*runner)
        night.gate.wait(late, night.log, driver)
        driver.send_signal(signal.SIGTERM)
        if runner[-1] == "2":  # the pool waits for what runs
            night.gate.release(late)
        else:
            night.gate.open(late)
        assert driver.wait(TIMEOUT) == 0, night.log.read_text()
    finally:
        driver.kill()
        driver.wait()
    assert facts(night.out)["status"] == "stopped"
    assert night.seeds() == list(range(len(night.seeds()))) and len(night.seeds()) >= 8


def test_a_pool_is_killed_and_stopped_and_goes_on(tmp_path: Path) -> None:
    night = Night(tmp_path)
    killed_stopped_and_on(night, "--runner", "pool", "--workers", "2")
    before = len(night.seeds())
    assert night.start("--runner", "pool", "--workers", "2", "--waves", "1").wait(TIMEOUT) == 0
    assert night.seeds() == list(range(before + 4))


@pytest.mark.xdist_group("spark")
def test_a_stream_is_killed_and_stopped_and_goes_on_also_behind_a_pool(
    tmp_path: Path, spark_jvm: OneJvm
) -> None:
    night = Night(tmp_path)
    outcome = {TOYS: str(toys_path()), GATE: str(night.gate.directory)}
    spark = ["--master", "local[2]", "--task-cpus", "1"]
    for name, value in outcome.items():
        spark += ["--conf", f"spark.executorEnv.{name}={value}"]
    killed_stopped_and_on(night, *spark)
    assert night.seeds() == list(range(8))
    assert [path.name for path in (night.out / "checkpoint").iterdir()] == ["from-0"]
    assert night.start("--runner", "pool", "--workers", "2", "--waves", "1").wait(TIMEOUT) == 0
    assert night.seeds() == list(range(12))
    assert not (night.out / "checkpoint").exists(), "a stream that goes on begins behind the pool"
    done = spark_jvm.run(main, tmp_path, *night.options, *spark, "--waves", "2", **outcome)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (night.out / "checkpoint").iterdir()] == ["from-6"]
    assert night.seeds() == list(range(20))
