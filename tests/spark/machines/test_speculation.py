"""A straggler is copied on another host, and each trial is kept once.

The first attempt at one trial waits for ever, so that the sweep can only end by the copy.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pulsar_ml.campaign.store.store import read_chunks, read_trials
from tests.spark.machines.test_kills import SEEDS, Gate, Sweep, gated_seeds
from tests.spark.test_sweep import TIMEOUT

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.mark.xdist_group("spark")
def test_a_straggler_is_copied_and_each_trial_is_there_once(tmp_path: Path, master: str) -> None:
    for rows in ("driver", "executors"):
        (tmp_path / rows).mkdir()
        gate = Gate(tmp_path / rows / "gate")
        (gate.directory / "once").touch()
        (seed, *_) = gated_seeds()
        gate.close(seed)
        options = ["--master", master, "--task-cpus", "1", "--speculate", "--rows", rows]
        options += ["--conf", f"spark.driver.extraJavaOptions={QUICK}"]
        options += ["--conf", f"spark.executor.extraJavaOptions={QUICK}"]
        sweep = Sweep(tmp_path / rows, options, gate)
        driver = sweep.start()
        try:
            gate.wait(sweep.log)
            assert driver.wait(TIMEOUT) == 0, sweep.log.read_text()
        finally:
            driver.kill()
            driver.wait()
        out = tmp_path / rows / "out"
        assert Counter(read_trials(out)["seed"].to_pylist()) == Counter(range(SEEDS))
        copied = [line for line in read_chunks(out).to_pylist() if line["attempt"]]
        assert seed in [each for line in copied for each in range(line["seed_lo"], line["seed_hi"])]
        assert not (out / ".staging").exists()
