"""Reports and runs against a baseline fail for new failures only, and hide none."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pulsar_ml.campaign.store.store import read_violations
from stress.mutants.build import build
from tests.commands import Called, call
from tests.functions.plugin.test_known import known_file
from tests.report.kit import page_data, row, violation, write_run
from tests.report.reading import page_of, report

ROWS = [row(0, found=[violation("I1", "x")]), row(1, found=[violation("I2", "y")]), row(2)]
FIRST, SECOND = (one["violations"][0]["signature"] for one in ROWS[:2])


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """A run with two signatures, and an earlier one with the first of the two."""
    earlier = write_run(tmp_path / "earlier", [ROWS[0]], run_id="before")
    return write_run(tmp_path / "run", ROWS), earlier


def test_a_run_is_a_baseline(runs: tuple[Path, Path]) -> None:
    run, earlier = runs
    done = report(run, "--baseline", str(earlier))
    assert done.exit_code == 1
    line = f"baseline: 1 new ({SECOND}), 1 known ({FIRST})"
    assert done.stderr.rstrip().endswith(line)
    assert report(run, "--baseline", str(run)).exit_code == 0
    assert report(earlier, "--baseline", str(run)).exit_code == 0
    assert report(earlier).exit_code == 1


def test_a_baseline_hides_nothing(runs: tuple[Path, Path], tmp_path: Path) -> None:
    run, earlier = runs
    file = known_file(tmp_path / "known.toml", SECOND)
    options = ("--baseline", str(earlier), "--baseline", str(file))
    page = page_of(run, *options)
    marks = {group["signature"]: (group["mark"], group["lines"][-1]) for group in page_data(page)}
    assert marks == {
        FIRST: ("known", f"signature {FIRST}, known from run before"),
        SECOND: ("known", f"signature {SECOND}, known until 9999-12-31: old"),
    }
    assert f"baseline: 0 new, 2 known ({', '.join(sorted((FIRST, SECOND)))})" in page
    assert '<section class="verdict known"' in page and "◐ Known failures only" in page
    assert "2 violations, all known, with 2 signatures in 3 trials" in page
    one = page_of(run, *options[:2])
    assert '<section class="verdict violation"' in one and "Known failures only" not in one

    sarif = json.loads(report(run, "--format", "sarif", *options).stdout)["runs"][0]["results"]
    assert {one["suppressions"][0]["justification"] for one in sarif} == {
        "known from run before", "known until 9999-12-31: old",
    }  # fmt: skip
    assert {one["baselineState"] for one in sarif} == {"unchanged"}
    half = json.loads(report(run, "--format", "sarif", *options[:2]).stdout)["runs"][0]["results"]
    assert sorted(one["baselineState"] for one in half) == ["new", "unchanged"]
    assert "baselineState" not in report(run, "--format", "sarif").stdout
    root = ElementTree.fromstring(report(run, "--format", "junit", *options).stdout)
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("2", "0", "2")
    markdown = report(run, "--format", "markdown", *options).stdout
    assert f"{FIRST} known" in markdown and f"{SECOND} known" in markdown
    content = json.loads(report(run, "--format", "json", *options).stdout)
    assert (content["exit_code"], content["verdict"]) == (0, "violation")
    assert content["known_only"] and "all known" in markdown
    assert {one["status"] for one in content["baseline"]} == {"known"}


def test_an_expired_entry_counts_as_new(runs: tuple[Path, Path], tmp_path: Path) -> None:
    run, earlier = runs
    file = known_file(tmp_path / "known.toml", SECOND, "2000-01-01")
    done = report(run, "--baseline", str(file), "--baseline", str(earlier))
    assert done.exit_code == 1
    assert f"1 expired, so new ({SECOND} on 2000-01-01), 1 known ({FIRST})" in done.stderr


def test_a_known_failure_is_no_excuse_for_an_incomplete_or_idle_run(tmp_path: Path) -> None:
    cut = write_run(tmp_path / "cut", ROWS, status="interrupted")
    assert report(cut, "--baseline", str(cut)).exit_code == 130
    idle = row(3, suite="idle", verdict="nothing_exercised")
    run = write_run(tmp_path / "idle", [*ROWS, idle])
    assert report(run, "--baseline", str(run)).exit_code == 3


def test_an_exploration_goes_on_behind_a_known_failure(tmp_path: Path) -> None:
    def explore(name: str, *more: str) -> Called:
        return call(
            "explore", "stamped_lock", "--module", str(build(checked=True)), "--mutant", "M01",
            "--no-answers", "--seeds", "6", "--executions", "300", "--unguided",
            "--records", str(tmp_path / "records"), "--out", str(tmp_path / name), *more,
        )  # fmt: skip

    assert explore("first").code == 1
    seeds = {one["seed"] for one in read_violations(tmp_path / "first").to_pylist()}
    assert len(seeds) == 1, "a suite ends with its first failure"
    row = read_violations(tmp_path / "first").to_pylist()[0]
    (group,) = page_data(page_of(tmp_path / "records"))
    assert group["signature"] == row["signature"], "a record's page names the row of its run"
    again = explore("second", "--baseline", str(tmp_path / "first"))
    rows = read_violations(tmp_path / "second").to_pylist()
    assert len(rows) > 1, "the search went on, and the run has the known failures"
    known = {one["signature"] for one in rows[:1]}
    assert again.code == int(len({one["signature"] for one in rows}) > 1)
    assert all(f"known failure {name}" in again.out for name in known)
    assert "baseline: " in again.out and "bound no risk" in again.out
    assert ("known failures only: nothing new was violated; " in again.out) is (again.code == 0)
    assert "clean: " not in again.out
    whole = explore("third", "--baseline", str(tmp_path / "second"), "--json")
    content = json.loads(whole.out)
    assert {one["status"] for one in content["baseline"]} == {"known"}
    assert whole.code == content["exit_code"] == 0


def test_a_program_with_a_known_failure_counts_once(tmp_path: Path) -> None:
    """Guided programs are scouted and searched first; the known failure ends all of that."""

    def explore(name: str, *more: str) -> Called:
        return call(
            "explore", "stamped_lock", "--module", str(build(checked=True)), "--mutant", "M01",
            "--no-answers", "--seeds", "12", "--records", str(tmp_path / "records"),
            "--out", str(tmp_path / name), *more,
        )  # fmt: skip

    assert explore("first").code == 1
    assert explore("second", "--baseline", str(tmp_path / "first")).code == 0
    rows = read_violations(tmp_path / "second").to_pylist()
    programs = [json.dumps(json.loads(one["replay"])["program"]) for one in rows]
    assert len(programs) == len({*programs}) > 6


def test_sweeps_and_runs_on_real_threads_have_baselines(tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    base = (
        "--mutant", "M01", "--seeds", "4",
        "--engine", "controlled", "--executions", "300", "--runner", "inline",
    )  # fmt: skip
    words = ("sweep", "--suite", "stamped_lock", "--module", str(build(checked=True)), *base)
    assert call(*words, "--out", str(earlier)).code == 1
    again = call(*words, "--out", str(tmp_path / "again"), "--baseline", str(earlier))
    assert again.code == 0
    assert "baseline: 0 new, " in again.out.splitlines()[-1]
    missing = call(*words, "--out", str(tmp_path / "none"), "--baseline", str(tmp_path / "no"))
    assert missing.code == 2 and not (tmp_path / "none").exists()
