"""The comparison of mutants with the true core, as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pulsar_ml.campaign.store.read_run import open_run
from pulsar_ml.report.findings import gather
from stress.mutants.sweep import Row
from tests import ROOT

# Wrong on one thread, so that no schedule has a say in whether they are found.
SEQUENTIAL = ("H01", "B04", "H02", "M51", "H10", "H13", "M17", "M20", "M24", "M26", "M32", "M35")
# Wrong only where threads meet; M11 and Q01 only where memory is weak.
MEETINGS = ("H03", "M13", "M11", "Q01", "M09b", "M37")


def compare(*arguments: str, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spark.mutants", *arguments, "--out", str(out)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.xdist_group("mutants")
@pytest.mark.parametrize(
    ("ids", "options", "seeds"),
    [
        (SEQUENTIAL, ("--threads", "1"), 4),
        (MEETINGS, ("--engine", "controlled", "--executions", "2000"), 3),
    ],
    ids=["one thread", "engine"],
)
def test_sweeps_report_the_mutants_and_nothing_on_the_true_core(
    tmp_path: Path, ids: tuple[str, ...], options: tuple[str, ...], seeds: int
) -> None:
    done = compare(*ids, *options, "--seeds", str(seeds), "--json", out=tmp_path / "run")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["mutant"] for row in rows] == [*ids, None]
    assert all(row["found"] + row["crashed"] > 0 for row in rows[:-1])
    true_core = rows[-1]
    assert (true_core["found"], true_core["crashed"]) == (0, 0)
    assert true_core["seeds"] == 10 * seeds * len(true_core["suites"])
    found = gather(open_run(tmp_path / "run"))
    assert (found.verdict, found.exit_code) == ("clean", 0)
    assert [row["mutant"] for row in found.kill_table] == [*ids, None]


def test_an_unknown_mutant_is_a_usage_error(tmp_path: Path) -> None:
    done = compare("H99", out=tmp_path / "run")
    assert done.returncode == 2
    assert "there is no mutant 'H99'; there are: H01" in done.stderr


def test_a_mutant_of_the_engine_is_not_swept_with_real_threads(tmp_path: Path) -> None:
    done = compare("M01", out=tmp_path / "run")
    assert done.returncode == 2
    assert "real threads do not show mutant M01" in done.stderr


def test_a_mutant_that_nothing_noticed_and_a_blamed_core_are_wrong() -> None:
    silent = Row("X", "", ("refcount",), 8, 0, 0, None, ())
    assert not silent.as_expected
    assert replace(silent, found=1).as_expected
    assert replace(silent, crashed=1).as_expected
    assert replace(silent, mutant=None).as_expected
    assert not replace(silent, mutant=None, found=1).as_expected
