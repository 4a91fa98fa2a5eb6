"""Sweeps through Spark, each in a process of its own and in a foreign working directory.

The executors of ``local-cluster`` see nothing but what was shipped to them and pulsar_ml itself.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pulsar_ml.campaign.store.schema import VERDICTS
from pulsar_ml.campaign.store.store import read_trials, read_violations
from pulsar_ml.campaign.trial.judging import LINEARIZABILITY
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.suites.registry import SUITES
from tests import ROOT
from tests.harness.toys.build_toys import toys_path
from tests.spark.sweep_suites import TOYS

if TYPE_CHECKING:
    from tests.spark.session.one_jvm import OneJvm

# Puts the checkout and the suites on the path of the driver only: an environment variable would
# also reach the executors.
DRIVER = (
    f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'tests' / 'spark')!r}]\n"
    "from pulsar_ml.cli.find.sweep import command\ncommand()"
)
TIMEOUT = 1200  # ends a hang; a sweep takes 15 s, and over 240 s beside sixty busy processes


def environment(**changes: str) -> dict[str, str]:
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("SPARK_", "PYSPARK_"))
    }
    kept.pop("PYTHONPATH", None)
    return {**kept, TOYS: str(toys_path()), **changes}


def patient(options: Sequence[str]) -> list[str]:
    """Gives a master in processes of its own all the time that it needs to start.

    A trial on real threads makes one run, so that its rows do not depend on the machine.
    """
    slow = any(word.startswith(("local-cluster", "spark://")) for word in options)
    more = ["--master-seconds", str(TIMEOUT)] if slow and "--master-seconds" not in options else []
    if "--engine" not in options and "--runs" not in options and "--resume" not in options:
        more += ["--runs", "1"]
    return [*options, *more]


def sweep(
    directory: Path, *options: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-c",
            DRIVER,
            "--suites",
            "sweep_suites",
            "--out",
            "out",
            *patient(options),
        ],
        cwd=directory,
        env=env or environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )


@pytest.mark.xdist_group("spark")
def test_a_sweep_over_executors_that_see_only_what_was_shipped(tmp_path: Path) -> None:
    options = ["--suite", "counter", "--suite", "tattler", "--seed", "1000", "--seeds", "45"]
    done = sweep(
        tmp_path,
        *options,
        *("--master", "local-cluster[2,1,1024]", "--chunk-size", "10"),
        *("--module", str(toys_path()), "--runs", "1", "--json"),
    )
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)

    trials = read_trials(tmp_path / "out").to_pylist()
    seeds = range(1000, 1045)
    assert Counter((row["suite"], row["seed"]) for row in trials) == Counter(
        (suite, seed) for suite in ("counter", "tattler") for seed in seeds
    )
    assert {row["verdict"] for row in trials} <= set(VERDICTS)
    assert {row["build_id"] for row in trials} == {result["build_id"]}
    assert {row["run_id"] for row in trials} == {result["run_id"]}
    assert {row["threads"] for row in trials} == {2}
    assert {row["operations"] for row in trials if row["suite"] == "counter"} == {6000}
    assert len({row["chunk_id"] for row in trials}) == 10
    assert all(row["duration_us"] > 0 and row["host"] and row["finished_at"] for row in trials)

    # The tattler reports its first violation in every trial, the counter is correct.
    violations = read_violations(tmp_path / "out").to_pylist()
    violating = {(row["suite"], row["seed"]) for row in trials if row["verdict"] == "violation"}
    assert violating == {("tattler", seed) for seed in seeds}
    assert {(row["suite"], row["seed"]) for row in violations} == violating
    for row in violations:
        record = ReplayRecord.from_json(row["replay"])
        assert (record.suite, record.seed, record.invariant) == ("tattler", row["seed"], "T2")

    (signature,) = result["signatures"]
    assert (signature["smallest_seed"], signature["count"]) == (1000, len(violations))
    assert result["trials"] == len(trials) and result["status"] == "finished"

    replayed = subprocess.run(
        signature["replay"],
        shell=True,
        env=environment(PYTHONPATH=str(ROOT / "tests" / "spark")),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert replayed.returncode == 1, replayed.stdout + replayed.stderr
    assert "T2" in replayed.stdout


@pytest.mark.xdist_group("spark")
def test_a_crash_is_a_violation_of_its_seed_and_the_printed_command_makes_it_again(
    tmp_path: Path,
) -> None:
    done = sweep(
        tmp_path,
        *("--suite", "counter", "--suite", "deadly", "--seeds", "4", "--chunk-size", "2"),
        *("--master", "local[2]", "--module", "sweep_suites", "--wave-seconds", "0.001"),
    )
    assert done.returncode == 1, done.stderr
    trials = read_trials(tmp_path / "out").to_pylist()
    assert Counter((row["suite"], row["seed"]) for row in trials) == Counter(
        (suite, seed) for suite in ("counter", "deadly") for seed in range(4)
    )
    violations = read_violations(tmp_path / "out").to_pylist()
    assert [(row["suite"], row["seed"], row["invariant"]) for row in violations] == [
        ("deadly", seed, "crash") for seed in range(4)
    ]
    again = "SIGSEGV ended the process of the code under test"
    for row in violations:
        assert row["message"] == f"{again}; tried again: {again}; it printed:\nabout to crash"
    log = tmp_path / "out" / "spark.log"
    assert {(row["executor"], row["log"]) for row in violations} == {("driver", str(log))}
    assert log.read_text().count("about to crash") == 8, "each trial, and its second try"
    (command,) = [line.strip() for line in done.stdout.splitlines() if " replay " in line]
    env = environment(PYTHONPATH=str(ROOT / "tests" / "spark"))
    replayed = subprocess.run(
        command, shell=True, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert replayed.returncode == 1, replayed.stdout + replayed.stderr
    assert f"now: crash (running): {again}" in replayed.stdout


@pytest.mark.xdist_group("spark")
def test_ctrl_c_keeps_the_finished_waves(tmp_path: Path) -> None:
    """Started as a file, as spark-submit would, with far more seeds than can be run."""
    process = subprocess.Popen(
        [
            sys.executable,
            str(ROOT / "spark" / "sweep.py"),
            "--suites",
            "sweep_suites",
            "--out",
            "out",
            "--suite",
            "tattler",
            "--seeds",
            "100000000",
            "--chunk-size",
            "20",
            "--wave-seconds",
            "0.001",
            "--master",
            "local[2]",
            "--module",
            str(toys_path()),
        ],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT / "tests" / "spark")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        # The first violation is printed when its wave is on disk.
        heard = []
        for line in process.stderr:
            heard.append(line)
            if line.startswith("violation: tattler"):
                break
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=TIMEOUT)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, "".join(heard) + stderr
    assert "interrupted: " in stdout and "Replay the smallest seed" in stdout
    trials = read_trials(tmp_path / "out")
    seeds = sorted(trials["seed"].to_pylist())
    assert seeds == list(range(len(seeds))), "whole waves, from the beginning, each seed once"
    assert len(seeds) >= 20 and len(seeds) % 20 == 0
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["status"] == "interrupted"
    assert run["summary"]["trials"] == len(seeds)
    assert sorted(path.suffix for path in (tmp_path / "out" / "records").iterdir()) == [".json"]


def test_without_java_one_sentence_names_the_package(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "env", "uname"):
        (tools / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    env = environment(PATH=str(tools))
    env.pop("JAVA_HOME", None)
    done = sweep(tmp_path, "--module", str(toys_path()), "--suite", "counter", env=env)
    assert done.returncode == 4
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("Failed: Spark needs Java 17 or newer and there is none on the PATH")
    for package in ("openjdk-17-jre-headless", "java-17-openjdk-headless", "openjdk@17"):
        assert package in sentence
    assert not (tmp_path / "out").exists()


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("engine", [[], ["--engine", "controlled", "--executions", "20"]])
def test_executors_ask_the_model_of_every_suite(
    tmp_path: Path, engine: list[str], spark_jvm: OneJvm
) -> None:
    """Executors report what a model refuses, too; see tests/stress/test_judged.py."""
    options = ["--suites", "contrary_suites", "--seeds", "1", *engine, "--master", "local[2]"]
    done = spark_jvm.sweep(tmp_path, *options, "--json")
    assert done.returncode == 1, done.stdout + done.stderr
    found = {
        row["suite"]: row["invariant"] for row in read_violations(tmp_path / "out").to_pylist()
    }
    assert found == dict.fromkeys(SUITES, LINEARIZABILITY)
    assert all(row["judged"] > 0 for row in read_trials(tmp_path / "out").to_pylist())
