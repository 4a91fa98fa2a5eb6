"""The formats of a report other than the page."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

import pulsar_ml
from pulsar_ml.terminal.command_line import program
from tests import ROOT
from tests.report.kit import engine_run, failure_of, of_failure, row, violation, write_run
from tests.report.reading import Reader, page_of, report


def test_sarif_has_the_places_of_failures_and_all_signatures(tmp_path: Path) -> None:
    rows = [
        row(0, found=[of_failure(failure_of("race_met"))]),
        row(1, found=[violation("I1", "x")]),
    ]
    log = json.loads(report(write_run(tmp_path / "run", rows), "--format", "sarif").stdout)
    results = {result["ruleId"]: result for result in log["runs"][0]["results"]}
    assert (
        set(results)
        == {"data race", "I1"}
        == {rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]}
    )
    place = results["data race"]["locations"][0]["physicalLocation"]
    assert (
        place["artifactLocation"]["uri"] == "tests/engine/programs/races.h"
    )  # below the working directory
    assert "locations" not in results["I1"]
    assert all(result["occurrenceCount"] == 1 for result in results.values())


def test_junit_has_a_failed_case_for_each_signature_and_one_that_passed_elsewhere(
    tmp_path: Path,
) -> None:
    rows = [
        row(0, found=[violation("I1", "x")]),
        row(1, suite="other"),
        row(2, suite="idle", verdict="nothing_exercised"),
    ]
    root = ElementTree.fromstring(
        report(write_run(tmp_path / "run", rows), "--format", "junit").stdout
    )
    assert (root.get("tests"), root.get("failures")) == ("3", "1")
    assert [suite.get("name") for suite in root] == ["idle", "made_up", "other"]
    assert root.find("testsuite[@name='idle']/testcase/skipped") is not None
    idle = root.find("testsuite[@name='idle']/properties/property[@name='idle']")
    assert idle is not None and idle.get("value") == "1"
    failure = root.find("testsuite[@name='made_up']/testcase/failure")
    assert failure is not None and failure.get("message") == "x"
    assert f"{program()} replay" in (failure.text or "")


def test_the_page_and_sarif_have_the_version_without_an_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_installed(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", not_installed)
    run = write_run(tmp_path / "run", [row(0, found=[violation("I1", "x")])])
    assert f"Made by pulsar_ml {pulsar_ml.__version__} on" in Reader(page_of(run)).text
    log = json.loads(report(run, "--format", "sarif").stdout)
    assert log["runs"][0]["tool"]["driver"]["version"] == pulsar_ml.__version__


def test_the_version_is_the_one_of_the_project_file() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["project"]["version"] == pulsar_ml.__version__


def test_json_has_everything(tmp_path: Path) -> None:
    data = json.loads(report(engine_run(tmp_path / "run"), "--format", "json").stdout)
    assert data["verdict"] == "violation"
    assert data["exit_code"] == 1
    assert [group["count"] for group in data["signatures"]] == [2, 1]
    assert data["coverage"]["made_up"][-1] == [400, 40 + 39 + 38 + 37]
    assert sum(rate for _, rate in data["rate"]) == 400
    assert data["strategies"][0]["strategy"] == "portfolio"


def test_markdown_has_a_table_and_the_commands(tmp_path: Path) -> None:
    text = report(engine_run(tmp_path / "run"), "--format", "markdown").stdout
    assert text.startswith(
        "# 3 violations with 2 signatures in 4 trials (4 exercised, 0 idle) with 400 executions "
        "under the engine (0 cut)\n"
    )
    assert text.count(f"    {program()} replay ") == 2


def test_a_page_is_made_in_a_locale_without_utf_8(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [row(0)])
    command = [sys.executable, "-m", "pulsar_ml", "report", str(run)]
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(command, env=os.environ | locale, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
