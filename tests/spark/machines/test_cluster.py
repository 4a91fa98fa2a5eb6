"""The commands of a standalone cluster without a JVM; test_kills.py starts one."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner, Result

from pulsar_ml.cli.distribute.cluster import command as main
from pulsar_ml.distributed.machines import cluster
from pulsar_ml.distributed.session import local_master, on_this_machine
from tests import ROOT


def run(command: str, directory: Path) -> Result:
    return CliRunner().invoke(main, [command, "--directory", str(directory)])


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"url": 1}', "\x00"])
def test_where_no_cluster_was_started_there_is_none_to_stop(
    tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "cluster.json").write_text(content)
    done = run("stop", tmp_path)
    assert (done.exit_code, done.stdout) == (0, "there is no cluster to stop\n")
    done = run("url", tmp_path)
    assert done.exit_code == 4 and "no cluster runs in" in done.stderr


def state(directory: Path, **entry: object) -> None:
    process = {
        "name": "master",
        "pid": os.getpid(),
        "created": psutil.Process().create_time(),
        **entry,
    }
    content = {"url": "spark://127.0.0.1:1", "workers": 0, "processes": [process]}
    (directory / "cluster.json").write_text(json.dumps(content))


def test_a_cluster_runs_while_all_of_its_processes_do(tmp_path: Path) -> None:
    state(tmp_path)
    assert cluster.running(tmp_path) == "spark://127.0.0.1:1"
    assert run("start", tmp_path).stdout == "spark://127.0.0.1:1\n", "and is not started again"
    state(tmp_path, created=1.0)
    assert cluster.running(tmp_path) is None


def test_a_process_that_has_the_number_by_now_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        state(tmp_path, pid=other.pid, created=1.0)
        assert cluster.stop(tmp_path) == []
        assert other.poll() is None
        state(tmp_path, pid=other.pid, created=psutil.Process(other.pid).create_time())
        assert cluster.stop(tmp_path) == ["master"]
    assert not (tmp_path / "cluster.json").exists()


def test_a_cluster_on_the_loopback_is_on_this_machine_and_no_local_master() -> None:
    for master in ("spark://127.0.0.1:7077", "spark://localhost:7077"):
        assert on_this_machine(master) and local_master(master) is None
    assert on_this_machine("local[2]") and not on_this_machine("spark://127a.example:7077")


def test_make_has_a_target_for_both() -> None:
    for target, command in (("cluster", "start"), ("cluster-stop", "stop")):
        done = subprocess.run(
            ["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert f"-m spark.cluster {command}" in done.stdout


def test_a_process_that_outlives_this_one_leaves_no_warning(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ready = [sys.executable, "-c", "import os, signal; print(os.getsid(0)); signal.pause()"]
        pid = cluster.spawn(ready, {**os.environ, "PYTHONUNBUFFERED": "1"}, tmp_path / "log")
        gc.collect()
    process = psutil.Process(pid)
    try:
        while not (tmp_path / "log").read_text().endswith("\n"):
            assert process.status() != psutil.STATUS_ZOMBIE
        assert (tmp_path / "log").read_text() == f"{pid}\n", "a session of its own"
    finally:
        process.kill()
        process.wait()
    assert [str(one.message) for one in seen] == []
