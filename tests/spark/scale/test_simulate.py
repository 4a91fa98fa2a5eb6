"""A grid of simulations on Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_ml.cli.cache.simulate import command
from tests import ROOT
from tests.simulate.test_command import WORKLOAD
from tests.spark.session.one_jvm import OneJvm


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pulsar_ml", "simulate", *arguments]
    return subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True)


@pytest.mark.xdist_group("spark")
def test_a_grid_gives_the_best_settings_for_a_broker_conf(
    tmp_path: Path, spark_jvm: OneJvm
) -> None:
    workload, conf = tmp_path / "small.toml", tmp_path / "broker.conf"
    workload.write_text(WORKLOAD.replace("managedLedgerCacheSizeMB = 1\n", ""))
    conf.write_text("managedLedgerCacheSizeMB=1\nzookeeperServers=nowhere\n")
    options = ["--master", "local[2]", "--seeds", "1", "--json", "--broker-conf", str(conf)]
    options += ["--grid", "managedLedgerCacheEvictionPolicyName=lru,central_queue"]
    done = spark_jvm.run(command, tmp_path, str(workload), *options)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["points"]
    assert len(found) == 3 - sum(bool(point["ties"]) for point in found)
    assert found[json.loads(done.stdout)["today"]]["settings"]["managedLedgerCacheSizeMB"] == 1
    assert json.loads(done.stdout)["advice"].startswith(("Set ", "Keep "))
    assert found[0]["objective"] <= found[1]["objective"]
    assert all(point["settings"]["managedLedgerCacheSizeMB"] == 1 for point in found)
    assert all(point["max_pinned_bytes"] <= 2 << 20 for point in found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing", "--grid", "default"], "no workload"),
        (["tailing", "--grid", "x"], "KEY=VALUE"),
        (["tailing", "--grid", "default", "--broker-conf", "/nowhere"], "/nowhere"),
        (["tailing", "--grid", "default", "--master", "here"], "here"),
    ],
)
def test_what_is_wrong_ends_with_code_2_before_spark_starts(
    arguments: list[str], message: str
) -> None:
    done = simulate(*arguments)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
