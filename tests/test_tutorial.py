"""The pages for those who test a structure of their own print what their commands print."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from benchmarks.first_failure.__main__ import HERE as PROGRAMS
from pulsar_ml.harness.budgets.split import duration
from tests import ROOT
from tests.pages import Block, Reader, blocks, commands, prints, write

TUTORIAL = ROOT / "docs" / "testing-your-own.md"
FUNCTIONS = ROOT / "docs" / "functions.md"
PYTHON = ROOT / "docs" / "python-threads.md"
REFERENCE = ROOT / "docs" / "pytest-and-hypothesis.md"
OTHER_TOOLS = ROOT / "docs" / "from-other-tools.md"
FAILURES = ROOT / "docs" / "failures.md"
REPORTS = ROOT / "docs" / "reports.md"
WORKFLOW = ".github/workflows/races.yml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "tutorial"
    path.mkdir()
    return path


def steps(workflow: str) -> list[dict[str, Any]]:
    """Return the steps of the one job of a workflow of GitHub Actions."""
    parsed = yaml.safe_load(workflow)
    assert parsed[True] == ["push", "pull_request"]  # YAML 1.1 reads the key "on" as true
    (job,) = parsed["jobs"].values()
    assert job["runs-on"].startswith("ubuntu-")
    found: list[dict[str, Any]] = job["steps"]
    assert all(len({"run", "uses"} & set(step)) == 1 for step in found)
    return found


def check_installation(command: str) -> None:
    """Each package of a ``pip install`` is the project or one of its declared dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    known = {Requirement(line).name for lines in extras.values() for line in lines}
    for word in shlex.split(command)[2:]:
        package = Requirement(word)
        assert package.name in known | {project["name"]}
        assert package.extras <= set(extras)


def test_from_an_empty_folder_to_a_job_in_ci(folder: Path) -> None:
    reader = Reader(folder)
    reader.follow(TUTORIAL)
    commands = [step["run"] for step in steps((folder / WORKFLOW).read_text()) if "run" in step]
    installation, *others = commands
    check_installation(installation)
    assert len(others) == 2
    for command in others:
        printed = reader.run(command.replace("${{ github.run_number }}", "3"))
        assert reader.code == 0, "\n".join([command, *printed])
    for step in steps((folder / WORKFLOW).read_text()):
        for name in ("sarif_file", "path"):
            if name in step.get("with", {}):
                assert (folder / step["with"][name]).exists(), f"nothing made {step['with'][name]}"
    check_action(folder, reader, others)


def check_action(folder: Path, reader: Reader, ran: list[str]) -> None:
    """The words for the action and those for the job of GitLab are the commands that ``ran``."""
    parsed = yaml.safe_load((folder / ".github/workflows/action.yml").read_text())
    words = parsed["jobs"]["races"]["steps"][-1]["with"]
    inputs = yaml.safe_load((ROOT / "ci/github/action.yml").read_text())["inputs"]
    assert set(words) <= set(inputs)
    job = yaml.safe_load((folder / ".gitlab-ci.yml").read_text())["races"]["variables"]
    (variables,) = yaml.safe_load((ROOT / "ci/gitlab/races.yml").read_text()).values()
    assert set(job) <= set(variables["variables"])
    assert {name.lower() for name in job} == set(words)
    assert job["CHECK"] == words["check"] and job["BASELINE"] == words["baseline"]
    assert f"pulsar-ml check {words['check']}" in ran
    duration(words["budget"])
    first = words["check"].split()[0]
    printed = reader.run(f"pulsar-ml check {first} --baseline {words['baseline']}")
    assert reader.code == 0 and printed[-1].endswith("baseline: 0 new, 0 known"), printed


def test_a_wrong_workflow_is_noticed() -> None:
    (block,) = (block for block in blocks(TUTORIAL) if block.file == WORKFLOW)
    with pytest.raises(AssertionError):
        steps(block.text.replace("- run: pulsar-ml", "- name: pulsar-ml"))
    with pytest.raises(AssertionError):
        check_installation("pip install 'pulsar_ml[undeclared]'")
    with pytest.raises(AssertionError):
        check_installation("pip install undeclared")


def test_from_a_function_to_a_clean_ring(folder: Path) -> None:
    Reader(folder).follow(FUNCTIONS)


def test_from_a_python_function_to_a_deadlock(folder: Path) -> None:
    Reader(folder).follow(PYTHON)


def test_the_reference_page(folder: Path) -> None:
    for block in blocks(TUTORIAL):
        if block.file:
            write(block, folder)
    Reader(folder).follow(REFERENCE)


def test_known_failures_and_the_history_of_runs(folder: Path) -> None:
    Reader(folder).follow(REPORTS)


def test_the_page_for_users_of_other_tools(folder: Path) -> None:
    Reader(folder).follow(OTHER_TOOLS)


@pytest.mark.parametrize(
    ("block", "program"),
    [
        ("lazy.hpp", "lazy/lazy.hpp"),
        ("lazy_test.cpp", "lazy/lazy_test.cpp"),
        ("lazy_loom.rs", "lazy/loom_test.rs"),
        ("mailbox.hpp", "mailbox/mailbox.hpp"),
        ("mailbox_test.cpp", "mailbox/mailbox_test.cpp"),
        ("mailbox_shuttle.rs", "mailbox/shuttle_test.rs"),
    ],
)
def test_a_program_of_the_page_is_the_measured_one(block: str, program: str) -> None:
    (found,) = (each.text for each in blocks(OTHER_TOOLS) if each.file == block)
    assert found == (PROGRAMS / program).read_text()


@pytest.mark.parametrize(
    "page",
    [TUTORIAL, FUNCTIONS, PYTHON, REFERENCE, OTHER_TOOLS],
    ids=lambda page: page.stem,
)
def test_no_command_of_a_page_is_left_out(page: Path) -> None:
    text = page.read_text()
    found = blocks(page)
    assert text.count("```") == 2 * len(found), "each fence is one of a block that is read"
    assert all(block.file or block.language == "console" for block in found)
    assert sum(len(list(commands(block))) for block in found) == len(
        re.findall(r"^\$ ", text, re.MULTILINE)
    )


def test_a_mistake_of_a_page_is_noticed(folder: Path) -> None:
    assert prints(["a ... c", "...", "z"], ["a b c", "x", "y", "z"])
    assert not prints(["a ... c", "z"], ["a b c", "y", "z"])
    assert not prints(["a"], ["a", "b"])
    assert not prints(["a", "b"], ["a"])
    (folder / "file").write_text("one\ntwo\n")
    write(Block("diff", "file", " one\n-two\n+three\n", 1), folder)
    assert (folder / "file").read_text() == "one\nthree\n"
    with pytest.raises(AssertionError, match="0 times"):
        write(Block("diff", "file", "-two\n", 1), folder)
    reader = Reader(folder)
    assert reader.run(
        "python -c 'import pulsar_ml, sys; print(pulsar_ml.__file__); sys.exit(3)'"
    ) == [str(ROOT / "pulsar_ml" / "__init__.py")]
    assert reader.run("echo $?") == ["3"]
