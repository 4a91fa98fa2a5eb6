"""A straggler is copied on another host, and each trial is kept once.

The first attempt at one trial waits for ever, so that the sweep can only end by the copy.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pulsar_ml.campaign.store.store import read_chunks, read_trials
from pulsar_ml.cli.find.sweep import command
from pulsar_ml.distributed.driver import spark_session
from tests.spark.machines.test_kills import SEEDS, Gate, Sweep, gated_seeds, on_cluster
from tests.spark.session.one_jvm import OneJvm


def check(directory: Path, gate: Gate, master: str, rows: str, jvm: OneJvm) -> None:
    directory.mkdir()
    (gate.directory / "once").touch()
    (seed, *_) = gated_seeds()
    gate.close(seed)
    options = [*on_cluster(master), "--speculate", "--rows", rows]
    sweep = Sweep(directory, options, gate)
    done = jvm.run(command, directory, *sweep.options)
    assert done.returncode == 0, done.stderr
    (gate.directory / "taken").unlink()  # the first attempt came to the gate
    out = directory / "out"
    assert Counter(read_trials(out)["seed"].to_pylist()) == Counter(range(SEEDS))
    copied = [line for line in read_chunks(out).to_pylist() if line["attempt"]]
    assert seed in [each for line in copied for each in range(line["seed_lo"], line["seed_hi"])]
    assert not (out / ".staging").exists()


@pytest.mark.xdist_group("spark")
def test_a_straggler_is_copied_and_each_trial_is_there_once(
    tmp_path: Path, master: str, spark_jvm: OneJvm, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(tmp_path / "gate")
    stack = ExitStack()
    opened: list[object] = []

    def first(_: ExitStack, *arguments: Any, **more: Any) -> object:
        """The session that the first sweep opens, also for the second one."""
        if not opened:
            opened.append(spark_session(stack, *arguments, **more))
        return opened[0]

    monkeypatch.setattr("pulsar_ml.sweep.runners.spark_session", first)
    monkeypatch.setattr("pulsar_ml.distributed.runner.SparkRunner.close", lambda _: None)
    with spark_jvm.serving(tmp_path), stack:
        for rows in ("driver", "executors"):
            check(tmp_path / rows, gate, master, rows, spark_jvm)
