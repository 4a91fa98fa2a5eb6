"""The action for GitHub and the job for GitLab do in a small project what they promise."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests import ROOT
from tests.functions.plugin.test_known import known_file
from tests.functions.test_command import RACE
from tests.pages import Reader

ACTION = ROOT / "ci" / "github" / "action.yml"
JOB = ROOT / "ci" / "gitlab" / "races.yml"
OUTPUT = "${{ steps.races.outputs.exit-code }}"
SOMETIMES: dict[str, Callable[[dict[str, str]], bool]] = {
    "inputs.install != ''": lambda inputs: inputs["install"] != "",
    "always()": lambda inputs: True,
    "always() && inputs.upload == 'true'": lambda inputs: inputs["upload"] == "true",
}


def project(folder: Path) -> Reader:
    """A project with a race, in the environment that a runner gives a step."""
    folder.mkdir(exist_ok=True)
    (folder / "check_race.c").write_text(RACE)
    return Reader(folder)


def action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(ACTION.read_text())
    return loaded


def job() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(JOB.read_text())[".races"]
    return loaded


def bash(
    reader: Reader, script: str, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a step's lines with the options that both runners give the shell."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script],
        cwd=reader.folder,
        env={**reader.environment, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


class Job:
    """One use of the action: its steps run in order, as far as they are lines of a shell."""

    def __init__(self, reader: Reader, **values: str) -> None:
        content = action()
        assert set(values) <= set(content["inputs"])
        inputs = {name: str(one["default"]) for name, one in content["inputs"].items()}
        inputs |= {"install": "", **values}
        files = {name: reader.folder / name for name in ("step_summary", "output")}
        own = {f"GITHUB_{name.upper()}": str(path) for name, path in files.items()}
        self.uses: list[dict[str, Any]] = []
        self.code = 0
        self.said = ""
        for step in content["runs"]["steps"]:
            condition = step.get("if", "")
            if condition and not SOMETIMES[condition](inputs):
                continue
            if self.code and "always()" not in condition:
                continue
            if "uses" in step:
                self.uses.append(step)
                continue
            assert step["shell"] == "bash" and "${{" not in step["run"], "texts are no part of code"
            environment = {
                name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], text)
                for name, text in step.get("env", {}).items()
            }
            done = bash(reader, step["run"], {**own, **environment})
            self.code, self.said = done.returncode, done.stdout + done.stderr
        assert content["outputs"]["exit-code"]["value"] == OUTPUT
        output = files["output"].read_text().split() if files["output"].exists() else []
        self.outputs = dict(line.split("=") for line in output)
        self.summary = files["step_summary"].read_text() if files["step_summary"].exists() else ""


def sarif(folder: Path, name: str) -> dict[str, Any]:
    (run,) = json.loads((folder / "races-report" / f"{name}.sarif").read_text())["runs"]
    (result,) = run["results"]
    assert run["automationDetails"]["id"].startswith("pulsar_ml-")
    return dict(result)


def places(result: dict[str, Any]) -> list[str]:
    """The lines of the sources at both accesses of a race."""
    found = [*result["locations"], *result["relatedLocations"]]
    lines = [one["physicalLocation"]["region"]["startLine"] for one in found]
    return [RACE.splitlines()[line - 1] for line in lines]


def test_the_action_reports_a_race_and_then_only_what_is_new(tmp_path: Path) -> None:
    reader = project(tmp_path / "project")
    folder = reader.folder
    first = Job(reader, check="check_race.c --executions 300")
    assert first.code == 1, first.said
    assert first.outputs == {"exit-code": "1"}
    result = sarif(folder, "check")
    assert len(places(result)) == 2 and all("plain = 1" in line for line in places(result))
    root = ElementTree.parse(folder / "races-report" / "check.xml").getroot()
    assert (root.get("tests"), root.get("failures")) == ("3", "1")
    assert first.summary.startswith("## pulsar-ml check: 2 clean, 1 failed")
    assert re.search(r"^thread 0 +thread 1$", first.summary, re.MULTILINE), "the lanes"
    for step in first.uses:  # the files that other actions take are there
        named = str(step["with"].get("sarif_file", step["with"].get("path"))).split()
        assert all((folder / name).exists() for name in named), named

    # The cache of builds: what the first job left is not built again.
    built = {path: path.stat().st_mtime_ns for path in folder.glob(".pulsar_ml/build/**/*.so")}
    assert built
    signature = result["partialFingerprints"]["pulsarMlSignature/v1"][:12]
    known_file(folder / "known.toml", signature)
    again = Job(
        reader,
        check="check_race.c --executions 300",
        pytest="-q --executions 300",
        baseline="known.toml",
        upload="false",
    )
    assert again.code == 0, again.said
    assert {path: path.stat().st_mtime_ns for path in built} == built
    assert f"1 known ({signature})" in again.said
    assert [step["uses"].partition("@")[0] for step in again.uses] == [
        "actions/cache", "actions/upload-artifact",
    ]  # fmt: skip
    assert all("suppressions" in sarif(folder, name) for name in ("check", "pytest"))
    assert "1 known" in again.summary and "pytest: 1 failure" in again.summary


def test_the_job_of_gitlab_has_the_same_lines_and_its_exit_code(tmp_path: Path) -> None:
    (lines,) = job()["script"]
    (step,) = [step for step in action()["runs"]["steps"] if step.get("id") == "races"]
    assert lines == step["run"]
    assert set(step["env"]) == set(job()["variables"]) - {"INSTALL"}
    reader = project(tmp_path / "project")
    sweep = "--suite refcount --engine controlled --runner inline --seeds 2 --executions 100"
    done = bash(reader, lines, {**job()["variables"], "SWEEP": sweep, "PYTEST": "-q no_such.py"})
    assert done.returncode == 4, "the first code that is not 0: pytest has no such file"
    report = reader.folder / "races-report"
    assert "2 trials" in (report / "summary.md").read_text()
    assert json.loads((report / "sweep.sarif").read_text())["runs"][0]["results"] == []
    names = job()["artifacts"]["reports"]["junit"]
    assert names == "races-report/*.xml"
    assert ElementTree.parse(report / "sweep.xml").getroot().get("failures") == "0"


@pytest.mark.parametrize("script", [*job()["before_script"], *job()["script"]])
def test_the_lines_are_bash(script: str) -> None:
    assert subprocess.run(["bash", "-n", "-c", script], check=False).returncode == 0
