"""The doctor of a cluster: this machine, and machines that differ."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from pulsar_ml.cli.distribute.doctor import command, report
from pulsar_ml.distributed.machines import examine as examination
from pulsar_ml.distributed.machines.check import differences, remarks
from pulsar_ml.distributed.machines.examine import Machine, examine, known_trace
from tests import ROOT
from tests.spark.session.one_jvm import OneJvm


@pytest.fixture(scope="module")
def here() -> Machine:
    return examine()


def test_this_machine_is_well_and_the_known_search_is_known_in_every_process(here: Machine) -> None:
    assert differences(here, here) == []
    code = "from pulsar_ml.distributed.machines.examine import known_trace; print(*known_trace())"
    again = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert again.stdout.split() == [here.checked_build, here.trace] == list(known_trace())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"python": "3.9.1"}, "Python 3.9.1 runs there"),
        ({"build": "0123"}, "build 0123 is installed there"),
        ({"checked_build": "0123"}, "the checked module is of build 0123"),
        ({"trace": "0123"}, "a known search gives trace 0123 there"),
        (
            {"packages": {"numpy": "1.0", "pyarrow": "1.0", "pyspark": "1.0"}},
            "pyarrow 1.0",
        ),
        ({"problems": ["numpy is not installed"]}, "numpy is not installed"),
    ],
)
def test_an_executor_that_differs_is_named(
    here: Machine, change: dict[str, object], sentence: str
) -> None:
    other = replace(here, host="far", directory="/work", **change)  # type: ignore[arg-type]
    output = io.StringIO()
    assert report(Console(file=output, width=200), [replace(here), other], here, as_json=False) == 1
    assert f"executor 2 on far: {sentence}" in output.getvalue()
    assert "1 of 2 executors can run sweeps" in output.getvalue()


def test_what_a_sweep_survives_is_a_remark(here: Machine) -> None:
    other = replace(here, libc="musl 1.2", cores=1, addr2line=False)
    assert differences(other, here) == []
    assert len(remarks(other, here)) == 3


def test_a_machine_without_the_package_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pulsar_ml.operations._native", None)
    found = examine()
    assert found.build == found.trace == ""
    assert "pulsar_ml cannot be imported" in found.problems[0]


def test_a_module_without_hooks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from pulsar_ml.operations import _native

    monkeypatch.setitem(sys.modules, "pulsar_ml.operations._checked", _native)
    monkeypatch.setattr(examination, "EXECUTIONS", 2)
    assert "has no hooks" in examine().problems[0]


@pytest.mark.xdist_group("spark")
def test_the_command_looks_at_each_executor(tmp_path: Path, spark_jvm: OneJvm) -> None:
    done = spark_jvm.run(command, tmp_path, "--master", "local[1]", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    [executor] = result["executors"]
    assert executor["wrong"] == []
    assert executor["trace"] == result["driver"]["trace"] != ""


def test_a_master_that_no_spark_knows_is_a_usage_error() -> None:
    words = [sys.executable, "-m", "spark.doctor", "--master", "nowhere"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "does not know the master 'nowhere'" in done.stderr
