"""A straggler is copied on another host, and each trial is kept once.

The first attempt at one trial waits for ever, so that the sweep can only end by the copy.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pulsar_ml.campaign.store.store import read_chunks, read_trials
from pulsar_ml.cli.find.sweep import command
from tests.spark.machines.test_kills import SEEDS, Gate, Sweep, gated_seeds, on_cluster
from tests.spark.session.one_jvm import OneJvm


@pytest.mark.xdist_group("spark")
def test_a_straggler_is_copied_and_each_trial_is_there_once(
    tmp_path: Path, master: str, spark_jvm: OneJvm
) -> None:
    for rows in ("driver", "executors"):
        (tmp_path / rows).mkdir()
        gate = Gate(tmp_path / rows / "gate")
        (gate.directory / "once").touch()
        (seed, *_) = gated_seeds()
        gate.close(seed)
        options = [*on_cluster(master), "--speculate", "--rows", rows]
        sweep = Sweep(tmp_path / rows, options, gate)
        done = spark_jvm.run(command, sweep.directory, *sweep.options)
        assert done.returncode == 0, done.stderr
        assert (gate.directory / "taken").exists(), "the first attempt came to the gate"
        out = tmp_path / rows / "out"
        assert Counter(read_trials(out)["seed"].to_pylist()) == Counter(range(SEEDS))
        copied = [line for line in read_chunks(out).to_pylist() if line["attempt"]]
        assert seed in [each for line in copied for each in range(line["seed_lo"], line["seed_hi"])]
        assert not (out / ".staging").exists()
