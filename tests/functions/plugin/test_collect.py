"""pytest collects the functions of C, C++ and Cython files as tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pulsar_ml.harness.search.failure import Failure
from tests import QUICK_PYTEST, ROOT
from tests.functions.test_command import ALONE, RACE, RING

FEW = ("--executions", "300")


def collected(folder: Path, *words: str, budget: tuple[str, ...] = FEW) -> str:
    """The output of pytest in a folder, which keeps its own cache."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rsf",
         "-p", "pulsar_ml.harness.testing.pytest_plugin", *budget, *words],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, **QUICK_PYTEST, "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
    )  # fmt: skip
    return done.stdout + done.stderr


def test_each_function_is_a_test(tmp_path: Path) -> None:
    (tmp_path / "check_race.c").write_text(RACE)
    said = collected(tmp_path)
    assert "1 failed, 2 passed" in said and "data race" in said
    assert "replay it: pytest --replay .pulsar_ml/failures/test_race-" in said
    assert "1 passed" in collected(tmp_path, "-k", "test_add_again")
    again = collected(tmp_path, "--lf")
    assert "1 failed" in again and "passed" not in again
    record = next((tmp_path / ".pulsar_ml" / "failures").glob("*.json"))
    replayed = collected(tmp_path, "--replay", str(record))
    assert "1 failed, 2 skipped" in replayed and "the record is of the test" in replayed


def test_workers_of_xdist_share_the_functions_and_reports_have_the_failure(tmp_path: Path) -> None:
    (tmp_path / "check_race.c").write_text(RACE)
    said = collected(tmp_path, "-n", "2", "--junitxml=junit.xml", "--sarif=found.sarif")
    assert "1 failed, 2 passed" in said
    cases = {
        case.get("name"): {each.get("name"): each.get("value") for each in case.iter("property")}
        for case in ElementTree.parse(tmp_path / "junit.xml").iter("testcase")
    }
    assert set(cases) == {"test_add", "test_add_again", "test_race"}
    assert cases["test_add"]["pulsar_ml.executions"] == "300"
    assert "pulsar_ml.failure" not in cases["test_add"]
    found = Failure.from_text(str(cases["test_race"]["pulsar_ml.failure"]))
    assert found.kind == "data race"
    (result,) = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "data race"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "check_race.c"
    assert "plain = 1" in RACE.splitlines()[place["region"]["startLine"] - 1]


def test_a_time_is_a_budget(tmp_path: Path) -> None:
    """Each number of executions differs from run to run; the comment's own is not reached."""
    (tmp_path / "check_ring.c").write_text(f"// check: executions={10**12}\n\n{RING}")
    said = collected(tmp_path, "-vv", budget=("--seconds", "0.1"))
    assert "2 passed" in said and "test_add_again: clean: " in said


def test_an_interrupt_ends_the_session_and_says_what_was_found(tmp_path: Path) -> None:
    """The interrupt arrives while the failure is shrunk."""
    (tmp_path / "conftest.py").write_text(
        "import pulsar_ml.harness.functions.check as check\n"
        "def interrupt(*words, **more):\n"
        "    raise KeyboardInterrupt\n"
        "check.call = interrupt\n"
    )
    (tmp_path / "check_a.c").write_text(RACE)
    (tmp_path / "check_b.c").write_text(RING)
    said = collected(tmp_path, "-k", "race or check_b")
    assert "KeyboardInterrupt: check_a.c::test_race: data race: " in said
    assert "replay it: pytest --replay .pulsar_ml/failures/test_race-" in said
    assert "passed" not in said and "failed" not in said
    (record,) = (tmp_path / ".pulsar_ml" / "failures").iterdir()
    assert Failure.from_text(record.read_text()).kind == "data race"


def test_a_test_in_which_no_two_threads_met_fails(tmp_path: Path) -> None:
    (tmp_path / "check_alone.c").write_text(ALONE)
    said = collected(tmp_path)
    assert "1 failed" in said and "nothing exercised" in said


def test_a_test_behind_a_condition_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "check_ring.c").write_text(RING + "#ifdef MANY\nvoid test_many(void) { }\n#endif\n")
    said = collected(tmp_path)
    assert "2 passed, 1 skipped" in said and "the preprocessor leaves this test out" in said


def test_a_wrong_option_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "check_ring.c").write_text("// check: mod=sc\n" + RING)
    said = collected(tmp_path)
    assert "did you mean mode=?" in said and "Traceback" not in said


@pytest.mark.parametrize(("setting", "count"), [("", 0), ("check_files = *_test.c\n", 2)])
def test_other_names_are_collected_on_request(tmp_path: Path, setting: str, count: int) -> None:
    (tmp_path / "ring_test.c").write_text(RING)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{setting}")
    assert (f"{count} passed" if count else "no tests ran") in collected(tmp_path)
