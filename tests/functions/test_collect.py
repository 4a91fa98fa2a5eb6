"""pytest collects the functions of C, C++ and Cython files as tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.functions.test_command import ALONE, RACE, RING


def collected(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rsf", "-p", "no:cacheprovider",
         "-p", "pulsar_ml.harness.testing.pytest_plugin", "--executions", "300", *words],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
    )  # fmt: skip
    return done.stdout + done.stderr


def test_each_function_is_a_test(tmp_path: Path) -> None:
    (tmp_path / "check_race.c").write_text(RACE)
    said = collected(tmp_path)
    assert "1 failed, 2 passed" in said and "data race" in said
    assert "1 passed" in collected(tmp_path, "-k", "test_add_again")
    record = next((tmp_path / ".pulsar_ml" / "failures").glob("*.json"))
    replayed = collected(tmp_path, "--replay", str(record))
    assert "1 failed, 2 skipped" in replayed and "the record is of the test" in replayed


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
