"""An environment for executors: packed, unpacked elsewhere, used without shared files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_ml.distributed.machines.environment import PackError, needed
from pulsar_ml.distributed.machines.examine import examine
from pulsar_ml.distributed.session import packed
from pulsar_ml.errors import UsageError
from tests import ROOT
from tests.builds.conftest import Built
from tests.builds.conftest import built as built


def test_requirements_lead_to_what_is_installed() -> None:
    names = {
        package.metadata["Name"].lower()
        for package in needed(["pandas>=2", "numpy; python_version < '3'"])
    }
    assert {"pandas", "numpy", "python-dateutil"} <= names
    with pytest.raises(PackError, match="no-such-package is not installed here"):
        needed(["no-such-package"])


def test_an_archive_is_for_clusters(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no archive .*pulsar-ml pack makes one"):
        packed(tmp_path / "absent.tar.gz", "spark://host:7077")
    archive = tmp_path / "executors.tar.gz"
    archive.touch()
    with pytest.raises(UsageError, match="leave --environment out"):
        packed(archive, "local[2]")
    for master in ("spark://host:7077", "local-cluster[2,1,1024]"):
        assert packed(archive, master) == {"spark.archives": f"{archive}#environment"}


@pytest.mark.xdist_group("spark")
def test_executors_run_in_the_packed_environment(built: Built, tmp_path: Path) -> None:
    archive = tmp_path / "executors.tar.gz"
    command = [
        sys.executable,
        "-m",
        "spark.pack",
        "--wheel",
        str(built.wheel),
        "--out",
        str(archive),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    here = examine()
    assert f"build {here.build}, known trace {here.trace}" in done.stdout

    master = ["--master", "local-cluster[1,1,1024]", "--environment", str(archive)]
    command = [sys.executable, "-m", "spark.doctor", *master, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    [executor] = json.loads(done.stdout)["executors"]
    assert executor["interpreter"].endswith("/environment/bin/python")
    assert (executor["build"], executor["trace"]) == (here.build, here.trace)


def test_what_is_no_wheel_fails_and_leaves_nothing(tmp_path: Path) -> None:
    wheel = tmp_path / "pulsar_ml-0-py3-none-any.whl"
    wheel.write_bytes(b"no wheel")
    command = [
        sys.executable,
        "-m",
        "spark.pack",
        "--wheel",
        str(wheel),
        "--out",
        str(tmp_path / "a.tar.gz"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 4
    assert "Failed: installing the wheel failed" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "a.tar.gz").exists()
