"""Sweeps of tests in Python: a row for each seed, equal from the pool and from Spark."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_ml.campaign.local.suites import load_suites
from pulsar_ml.campaign.store.store import read_trials, read_violations
from pulsar_ml.cli.find.sweep import command
from pulsar_ml.cli.understand.replay import command as replay
from tests.campaign.rows import stable_rows
from tests.spark.test_sweep import environment, sweep

MODULE = """
import threading


class Counter:
    def __init__(self):
        self.value = 0

    def add(self):
        self.value += 1


def both(function):
    threads = [threading.Thread(target=function) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_{name}():
    counter = Counter()
    both(counter.add)
    assert counter.value == 2


def test_right():
    counter, lock = Counter(), threading.Lock()

    def add():
        with lock:
            counter.add()

    both(add)
    assert counter.value == 2


# check: semantics=free
def test_free():
    counter = Counter()
    both(lambda: setattr(counter, "value", 3))
    assert counter.value == 3
"""
OPTIONS = ("--engine", "controlled", "--executions", "100", "--chunk-size", "4", "--seeds", "8")


@pytest.fixture
def module(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    name = f"check_swept_{len(request.node.name)}"
    (tmp_path / f"{name}.py").write_text(MODULE.replace("{name}", "lost"))
    return name


def test_a_sweep_has_a_row_for_each_seed_and_replays(
    tmp_path: Path, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    options = ["--suites", module, "--module", module, *OPTIONS]
    done = CliRunner().invoke(command, [*options, "--runner", "inline", "--out", "out"])
    assert done.exit_code == 1, done.output
    trials = read_trials(tmp_path / "out").to_pylist()
    seeds = sorted((row["suite"], row["seed"]) for row in trials)
    assert seeds == [
        (f"test_{test}", seed) for test in ("free", "lost", "right") for seed in range(8)
    ]
    verdicts = {
        name: {row["verdict"] for row in trials if row["suite"] == name} for name, _ in seeds
    }
    assert verdicts == {
        "test_free": {"violation"},
        "test_lost": {"violation"},
        "test_right": {"clean"},
    }
    assert {row["executions"] for row in trials if row["suite"] == "test_right"} == {100}
    found = read_violations(tmp_path / "out").to_pylist()
    assert {row["invariant"] for row in found} == {"assertion", "data race"}
    records = sorted((tmp_path / "out" / "records").glob("*.json"))
    (record,) = [each for each in records if "data race" in each.read_text()]
    again = CliRunner().invoke(replay, [str(record), "--suites", module, "--trust"])
    assert again.exit_code == 1, again.output
    assert "Counter.value" in again.output
    assert "the failure was made again, step by step" in again.output


def test_a_module_without_tests_has_no_suites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "no_tests_here.py").write_text("value = 1\n")
    with pytest.raises(Exception, match=r"or functions test_\*\(\) of Python"):
        load_suites("no_tests_here")
    sys.modules.pop("no_tests_here")


@pytest.mark.xdist_group("spark")
def test_executors_and_a_pool_give_the_same_rows(tmp_path: Path, module: str) -> None:
    more = ["--suites", module, "--module", module, "--json", *OPTIONS]
    for number, place in enumerate((["--master", "local[2]"], ["--runner", "pool"])):
        directory = tmp_path / str(number)
        directory.mkdir()
        env = environment(PYTHONPATH=str(tmp_path), PYTHONHASHSEED="3")
        done = sweep(directory, *more, *place, env=env)
        assert done.returncode == 1, done.stderr
        groups = json.loads(done.stdout)["signatures"]
        assert {group["suite"] for group in groups} == {"test_free", "test_lost"}
        records = (directory / "out" / "records").glob("*.json")
        assert {json.loads(each.read_text())["hash_seed"] for each in records} == {"3"}
    for read in (read_trials, read_violations):
        spread, pooled = (stable_rows(read(tmp_path / name / "out")) for name in ("0", "1"))
        assert spread == pooled
        assert spread
