"""The pytest plugin as its users meet it: a project of its own, run by a pytest of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pulsar_ml.harness.building import checked
from pulsar_ml.harness.building.checked import with_whole_paths
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.interleave import InterleavingFailure, interleave
from pulsar_ml.harness.testing.merge import Merge
from pulsar_ml.harness.testing.properties import BASELINE, FAILURE, RECORD
from pulsar_ml.harness.testing.sarif import files_below, location
from tests import QUICK_PYTEST, ROOT
from tests.harness.toys.build_toys import toys_path

PROJECT = """\
import pytest
from pulsar_ml.harness.building.load import load_checked

SUBJECTS = load_checked({oracles!r}).SUBJECTS


@pytest.mark.interleave(executions=3000, programs=6, threads=2, operations=2)
def test_pair(interleave):
    interleave(SUBJECTS["pair"])


@pytest.mark.interleave(executions=3000, programs=6)
def test_race(interleave):
    interleave(SUBJECTS["counter_race"], operations=2)
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def oracles() -> Path:
    return toys_path(checked=True, name="oracles")


@pytest.fixture
def run(tmp_path: Path, oracles: Path) -> Run:
    """Runs pytest in a fresh project with the plugin, which an installed package brings by
    itself.
    """
    (tmp_path / "test_project.py").write_text(PROJECT.format(oracles=str(oracles)))
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    environment = {
        **os.environ,
        **QUICK_PYTEST,
        "PYTHONPATH": str(ROOT),
        "PYTEST_PLUGINS": "pulsar_ml.harness.testing.pytest_plugin",
    }
    environment = {name: value for name, value in environment.items() if "PYTEST_XDIST" not in name}

    def run(*options: str, ci: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
        own = {**environment, "CI": ci}
        return subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True)

    return run


def record_of(tmp_path: Path) -> Path:
    (record,) = (tmp_path / ".pulsar_ml" / "failures").iterdir()
    return record


def test_a_failure_shows_its_lanes_and_the_correct_subject_passes(run: Run, tmp_path: Path) -> None:
    done = run("--junitxml=junit.xml", "--sarif=found.sarif")
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert re.search(r"data race: thread \d: ", done.stdout)
    assert re.search(r"^thread 0 +thread 1$", done.stdout, re.MULTILINE)
    assert "site-packages" not in done.stdout and "pytest_plugin.py" not in done.stdout
    record = record_of(tmp_path)
    assert (
        f"pytest --replay .pulsar_ml/failures/{record.name} 'test_project.py::test_race'"
        in done.stdout
    )

    properties = {
        case.get("name"): {each.get("name"): each.get("value") for each in case.iter("property")}
        for case in ElementTree.parse(tmp_path / "junit.xml").iter("testcase")
    }
    assert properties["test_pair"]["pulsar_ml.executions"] == "3000"
    assert properties["test_pair"]["pulsar_ml.residual_risk"] == "0.001"
    failure = Failure.from_text(properties["test_race"]["pulsar_ml.failure"] or "")
    assert failure == Failure.from_text(record.read_text())

    (result,) = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "data race"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("oracles.pyx")
    line = (
        (ROOT / "tests/harness/toys/oracles.pyx")
        .read_text()
        .splitlines()[place["region"]["startLine"] - 1]
    )
    assert "state.plain" in line


def test_a_record_replays_and_tests_of_other_subjects_stand_aside(run: Run, tmp_path: Path) -> None:
    run()
    record = record_of(tmp_path)
    for values in (str(record), Failure.from_text(record.read_text()).short()):
        done = run("--replay", values)
        assert done.returncode == 1
        assert "1 failed, 1 skipped" in done.stdout
        assert "made again, step by step" in done.stdout


@pytest.mark.parametrize("damage", ["", "{", "pml1.xyz", "absent"])
def test_a_damaged_record_is_a_usage_error(run: Run, tmp_path: Path, damage: str) -> None:
    record = tmp_path / "record.json"
    if damage != "absent":
        record.write_text(damage)
    done = run("--replay", str(record))
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--replay" in done.stderr and "Traceback" not in done.stderr


def test_the_command_line_is_over_the_marker(run: Run, tmp_path: Path) -> None:
    run("--executions=40", "--seed=7", "-k", "pair", "--junitxml=junit.xml")
    found = {
        e.get("name"): e.get("value")
        for e in ElementTree.parse(tmp_path / "junit.xml").iter("property")
    }
    assert (found["pulsar_ml.executions"], found["pulsar_ml.seed"]) == ("40", "7")


@pytest.mark.parametrize("marked", ["executions=3000", "seconds=60"])
def test_a_budget_of_the_command_line_is_in_the_place_of_the_tests_own(
    run: Run, tmp_path: Path, marked: str
) -> None:
    project = tmp_path / "test_project.py"
    project.write_text(project.read_text().replace("executions=3000", marked))
    done = run("--executions=40", "-v", "-k", "pair")
    assert "pair: 40 executions of 6 programs" in done.stdout
    done = run("--seconds=0.01", "-v", "-k", "pair")
    (programs,) = re.findall(r"executions of (\d+) program", done.stdout)
    assert 1 <= int(programs) < 1000
    for wrong, sentence in (
        (("--seconds=1", "--executions=1"), "two budgets; use one of them"),
        (("--seconds=0",), "seconds is 0.0; it should be a number above 0"),
        (("--seconds=nan",), "seconds is nan; it should be a number above 0"),
    ):
        done = run(*wrong, "-k", "pair")
        assert done.returncode != 0 and sentence in done.stdout + done.stderr


def test_where_sarif_goes_is_known_to_be_writable_before_the_run(run: Run, tmp_path: Path) -> None:
    assert run("--sarif=new/folder/found.sarif", "-k", "pair").returncode == 0
    assert json.loads((tmp_path / "new/folder/found.sarif").read_text())["runs"][0]["results"] == []
    done = run("--sarif=new", "-k", "pair")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--sarif new: Is a directory" in done.stderr and "passed" not in done.stdout


def test_sarif_has_what_its_schema_requires_and_names_files_of_the_project(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "src" / "own").mkdir(parents=True)
    (
        tmp_path / "src" / "own" / "oracles.pyx"
    ).touch()  # it is the name that counts, not what it says
    project = tmp_path / "test_project.py"
    project.write_text(
        project.read_text()
        + "\n\ndef test_refused(interleave):\n"
        + "    interleave(SUBJECTS['pair'], executions=1, judge=lambda campaign: 'no')\n"
    )
    assert run("--sarif=found.sarif").returncode == 1
    log = json.loads((tmp_path / "found.sarif").read_text())
    # SARIF 2.1.0, section 3: sarifLog, run, tool, toolComponent, reportingDescriptor, result,
    # message.
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json")
    (ran,) = log["runs"]
    assert ran["tool"]["driver"]["name"] == "pulsar_ml"
    rules = [rule["id"] for rule in ran["tool"]["driver"]["rules"]]
    assert sorted(set(rules)) == rules == ["data race", "wrong answers"]
    race, refused = sorted(ran["results"], key=lambda result: str(result["ruleId"]))
    for result in (race, refused):
        assert (
            result["ruleId"] in rules and result["level"] == "error" and result["message"]["text"]
        )
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
        for place in (*result["locations"], *result.get("relatedLocations", ())):
            assert (tmp_path / place["physicalLocation"]["artifactLocation"]["uri"]).is_file()
            assert place["physicalLocation"]["region"]["startLine"] >= 1
    assert [place["id"] for place in race["relatedLocations"]] == [1]
    assert (
        race["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src/own/oracles.pyx"
    )
    at = refused["locations"][0]["physicalLocation"]
    assert at["artifactLocation"]["uri"] == "test_project.py"
    lines = project.read_text().splitlines()
    assert lines[at["region"]["startLine"] - 1].startswith("def test_refused(")


def test_directives_name_files_by_their_whole_paths(tmp_path: Path) -> None:
    for name in ("one/lock.pyx", "two/part.pxd"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    generated = tmp_path / "lock.c"
    generated.write_text(
        '#line 3 "lock.pyx"\na();\n#line 4 "part.pxd"\n#line 1 "utility"\nb("#line 3");\n'
    )
    with_whole_paths(
        generated, tmp_path / "one/lock.pyx", [str(tmp_path / "one"), str(tmp_path / "two")]
    )
    assert generated.read_text() == (
        f'#line 3 "{tmp_path}/one/lock.pyx"\na();\n#line 4 "{tmp_path}/two/part.pxd"\n#line 1 "utility"\n'
        'b("#line 3");\n'
    )


def test_without_the_gil_python_and_the_helpers_of_cython_are_no_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "lock.pyx"
    lines = ['#include "Python.h"', "a();", "/* #### Code section: init_module ### */", "b();"]
    texts = []
    for without in (False, True):
        monkeypatch.setattr(checked, "WITHOUT_GIL", without)
        generated = tmp_path / "lock.c"
        generated.write_text("\n".join(lines))
        with_whole_paths(generated, source, [])
        texts.append(generated.read_text())
    assert "no_sanitize" not in texts[0]
    before, at_a, behind = texts[1].partition("\na();\n")
    assert before.endswith("\n#undef inline\n#undef PyMutex_Lock\n#undef PyMutex_Unlock")
    assert "\n#define PyMutex_Lock _PyMutex_Lock\n" in behind
    assert at_a and '\n#define inline inline __attribute__((no_sanitize("thread")))\n' in before
    assert '\n#define static static __attribute__((no_sanitize("thread")))\nb();' in behind


def test_a_file_is_named_only_if_one_alone_is_meant(tmp_path: Path) -> None:
    for name in (
        "a/x/one.pyx",
        "b/x/one.pyx",
        "b/y/one.pyx",
        "two words.pyx",
        "build/three.pyx",
        ".git/three.pyx",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    wanted = {
        "y/one.pyx",
        "x/one.pyx",
        f"{tmp_path.name}/two words.pyx",
        "z/three.pyx",
        "z/four.pyx",
    }
    assert files_below(tmp_path, wanted) == {
        "y/one.pyx": "b/y/one.pyx",
        f"{tmp_path.name}/two words.pyx": "two words.pyx",
    }


def test_a_failure_that_another_worker_found_too_is_named_and_not_shown_again(
    oracles: Path,
) -> None:
    subject = load_checked(oracles).SUBJECTS["counter_race"]
    failure = interleave(subject).failure
    assert failure is not None
    config = SimpleNamespace(
        getoption=lambda name: None,
        get_verbosity=lambda: 0,
        rootpath=Path(),
        stash={BASELINE: None},
    )
    merge = Merge(config)  # type: ignore[arg-type]
    other = replace(
        failure, message="another one", where=("elsewhere file.pyx:1", "elsewhere file.pyx:2")
    )
    shown = []
    for number, found in enumerate((failure, replace(failure, seed=7), other)):
        report = SimpleNamespace(
            when="call", passed=False, failed=True, nodeid=f"part{number}", longrepr="lanes",
            user_properties=[(FAILURE, found.short()), (RECORD, "record.json")], location=("a.py", 1, "t"),
            sections=[], longreprtext="lanes",
        )  # fmt: skip
        merge.pytest_runtest_logreport(report)  # type: ignore[arg-type]
        shown.append(report.longrepr)
    assert shown == ["lanes", "the same failure as in part0; record: record.json", "lanes"]
    assert merge.failures == [failure, other]


@pytest.mark.parametrize(
    "ci", ["", "true"]
)  # where CI is set, pytest's summary is not cut to the width
def test_workers_share_the_budget_and_show_a_failure_once(
    run: Run, tmp_path: Path, ci: str
) -> None:
    done = run("-n2", "-v", "--junitxml=junit.xml", "--sarif=found.sarif", ci=ci)
    assert done.returncode == 1
    assert "2 failed, 2 passed" in done.stdout
    results = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]["results"]
    prints = [result["partialFingerprints"]["pulsarMlSignature/v1"] for result in results]
    assert len(prints) == len(set(prints)) in (1, 2)
    assert len(re.findall(r"^thread 0 +thread 1$", done.stdout, re.MULTILINE)) == len(prints)
    assert ("the same failure as in" in done.stdout) == (len(prints) == 1)
    cases = [
        {each.get("name"): each.get("value") for each in case.iter("property")}
        for case in ElementTree.parse(tmp_path / "junit.xml").iter("testcase")
        if "pair" in (case.get("name") or "")
    ]
    assert sorted(case["pulsar_ml.seed"] or "" for case in cases) == ["0", "1"]
    assert sum(int(case["pulsar_ml.executions"] or 0) for case in cases) == 3000
    assert sum(int(case["pulsar_ml.programs"] or 0) for case in cases) == 6


def test_help_lists_the_options_and_the_marker(run: Run) -> None:
    assert "interleavings of native code (pulsar_ml)" in run("--help").stdout
    assert "@pytest.mark.interleave(" in run("--markers").stdout


def test_options_that_another_plugin_has_get_longer_names(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--seed')\n"
    )
    done = run("-p", "other", "--interleave-seed=3", "-k", "pair", "--junitxml=junit.xml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'name="pulsar_ml.seed" value="3"' in (tmp_path / "junit.xml").read_text()


def test_what_exercises_nothing_does_not_pass(run: Run, tmp_path: Path) -> None:
    (tmp_path / "test_project.py").write_text(
        PROJECT.format(oracles=str(toys_path(checked=True, name="oracles")))
        + "\n\ndef test_alone(interleave):\n    interleave(SUBJECTS['pair'], threads=1, executions=10)\n"
    )
    done = run("-k", "alone")
    assert done.returncode == 1 and "nothing was exercised" in done.stdout


def test_the_budget_is_kept_and_programs_with_one_stride_are_disjoint(oracles: Path) -> None:
    subject = load_checked(oracles).SUBJECTS["pair"]
    done = interleave(subject, executions=1003, programs=7)
    assert (done.executions, done.programs, done.failure) == (1003, 7, None)
    assert done.residual_risk == pytest.approx(3 / 1003)
    seeds = [{seed + number * 2 for number in range(7)} for seed in (0, 1)]
    assert not seeds[0] & seeds[1]


def test_a_time_is_a_budget_too(oracles: Path) -> None:
    done = interleave(load_checked(oracles).SUBJECTS["pair"], seconds=0.05)
    assert done.programs >= 1 and done.executions >= done.programs


def test_a_failure_text_has_a_column_for_each_thread(oracles: Path) -> None:
    subject = load_checked(oracles).SUBJECTS["counter_race"]
    failure = interleave(subject).failure
    assert failure is not None
    text = failure.describe(subject)
    assert "thread 0" in text and "thread 1" in text
    # The lines themselves, whose file is not in the folder that this runs in.
    source = (ROOT / "tests" / "harness" / "toys" / "oracles.pyx").read_text().splitlines()
    shown = re.findall(r"^oracles\.pyx:(\d+)  (.*)$", text, re.MULTILINE)
    assert shown and all(source[int(number) - 1].strip() == line for number, line in shown)
    assert str(InterleavingFailure(failure, text)) == text


@pytest.mark.parametrize(
    ("text", "line"), [("f a/b.pyx:12", 12), ("?", None), ("mod.so+0x12", None)]
)
def test_a_place_becomes_a_location_if_it_has_a_line(text: str, line: int | None) -> None:
    found = location(text)
    assert (found and found["physicalLocation"]["region"]["startLine"]) == line
