"""Distributed exhaustive searches: disjoint parts, no gap after kills, one proof for all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from pulsar_ml.campaign.plan.exhaustive import Exhaustive
from pulsar_ml.campaign.plan.plan import Plan
from pulsar_ml.campaign.store.staging import SCHEMAS
from pulsar_ml.campaign.store.store import read_trials
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.cli import main as cli
from pulsar_ml.cli.find.sweep import command as main
from tests.harness.toys.build_toys import toys_path
from tests.spark.session.one_jvm import OneJvm
from tests.spark.session.test_tasks import REGISTRY as TOY_SUITES

SMALL = ["--engine", "controlled", "--mode", "sc", "--operations", "1", "--threads", "2"]
SEARCH = [*SMALL, "--strategy", "preemptions", "--bound", "2", "--suite", "counter"]
SEARCH += ["--seed", "8", "--seeds", "2"]  # both threads of these programs add


REDUCED = [*SMALL, "--suite", "counter", "--seed", "8", "--seeds", "2", "--exhaust"]
REDUCED += ["--executions", "2", "--parts", "3"]


def sweep_here(*options: str) -> Result:
    common = [
        "--suites",
        TOY_SUITES,
        "--runner",
        "inline",
        "--module",
        str(toys_path(checked=True)),
    ]
    return CliRunner().invoke(main, [*common, *options])


def searched(run: Path, *options: str) -> Result:
    return sweep_here(
        *SEARCH, "--exhaust", "--executions", "4", "--parts", "3", "--out", str(run), *options
    )


def parts(run: Path) -> list[tuple[str, int, str, int, str]]:
    rows = read_trials(run).to_pylist()
    return sorted(
        (row["suite"], row["seed"], row["part"], row["executions"], row["rest"]) for row in rows
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    outcome = tmp_path_factory.mktemp("search") / "run"
    done = searched(outcome)
    assert done.exit_code == 0, done.output
    assert "exhausted within the stated bounds: preemption bound 2" in " ".join(done.stdout.split())
    assert "2 of 2 programs exhausted" in done.stdout
    return outcome


def test_the_parts_make_what_one_search_makes(run: Path, tmp_path: Path) -> None:
    whole = sweep_here(*SEARCH, "--executions", "100000", "--out", str(tmp_path / "whole"))
    assert whole.exit_code == 0, whole.output
    sums: dict[int, int] = {}
    for _, seed, _, executions, _ in parts(run):
        sums[seed] = sums.get(seed, 0) + executions
    rows = read_trials(tmp_path / "whole").to_pylist()
    assert sums == {row["seed"]: row["executions"] for row in rows}
    assert len(parts(run)) > 4
    facts = json.loads((run / "run.json").read_text())
    assert {program["exhausted"] for program in facts["summary"]["search"]} == {
        row["exhausted"] for row in rows
    }


@pytest.fixture(scope="module")
def reduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    outcome = tmp_path_factory.mktemp("search") / "reduced"
    done = sweep_here(*REDUCED, "--out", str(outcome))
    assert done.exit_code == 0, done.output
    assert "2 of 2 programs exhausted" in done.stdout
    assert "exhausted completely" in " ".join(done.stdout.split())
    return outcome


def test_a_search_with_reduction_is_cut_into_parts(reduced: Path, tmp_path: Path) -> None:
    """Its parts together make the whole executions of the uncut search, each once."""
    whole = sweep_here(*REDUCED, "--executions", "10000", "--out", str(tmp_path / "whole"))
    assert whole.exit_code == 0, whole.output
    operations = dict.fromkeys((8, 9), 0)
    for row in read_trials(reduced).to_pylist():
        assert row["strategy"] == "exhaust"
        operations[row["seed"]] += row["operations"]
    rows = read_trials(tmp_path / "whole").to_pylist()
    assert len(rows) == 2 and len(parts(reduced)) > 4
    assert operations == {row["seed"]: row["operations"] for row in rows}


def test_a_search_with_reduction_that_was_killed_makes_exactly_the_rest(
    reduced: Path, tmp_path: Path
) -> None:
    waves = len(list((reduced / "trials").glob("wave-*")))
    again = tmp_path / "again"
    shutil.copytree(reduced, again)
    for table in SCHEMAS:
        for number in range(waves // 2, waves):
            (again / table / f"wave-{number:05}.parquet").unlink()
    done = sweep_here("--resume", str(again), "--trust")
    assert done.exit_code == 0, done.output
    assert parts(again) == parts(reduced)


def test_a_search_that_was_killed_makes_exactly_the_rest(run: Path, tmp_path: Path) -> None:
    """Resumes the run from the state after each wave, with another number of processes."""
    waves = len(list((run / "trials").glob("wave-*")))
    assert waves > 3
    for records in range(0, waves, 3):
        again = tmp_path / f"run-{records}"
        shutil.copytree(run, again)
        for table in SCHEMAS:
            for number in range(records, waves):
                (again / table / f"wave-{number:05}.parquet").unlink()
        done = sweep_here("--resume", str(again), "--trust")
        assert done.exit_code == 0, done.output
        assert parts(again) == parts(run)
        assert "2 of 2 programs exhausted" in done.stdout


def test_a_stage_that_is_not_whole_leads_nowhere(run: Path, tmp_path: Path) -> None:
    """The control: a missing part of a stage stops the search, and nothing is proved."""
    again = tmp_path / "run"
    shutil.copytree(run, again)
    path = again / "trials" / "wave-00001.parquet"
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)
    done = sweep_here("--resume", str(again), "--trust")
    assert done.exit_code == 2 and "Error:" in done.stderr and "damaged" in done.stderr


def test_a_program_that_fails_is_not_exhausted(tmp_path: Path) -> None:
    options = [*SMALL, "--strategy", "preemptions", "--suite", "racy", "--seeds", "1", "--exhaust"]
    done = sweep_here(*options, "--executions", "3", "--out", str(tmp_path / "run"))
    assert done.exit_code == 1, done.output
    assert "failed in 1 of its parts" in done.stdout
    assert "0 of 1 program exhausted" in done.stdout


@pytest.mark.xdist_group("spark")
def test_executors_share_a_search(tmp_path: Path, spark_jvm: OneJvm) -> None:
    options = [*SEARCH, "--seeds", "1", "--exhaust", "--executions", "8", "--parts", "6"]
    here = sweep_here(*options, "--out", str(tmp_path / "here"))
    assert here.exit_code == 0, here.output
    options += [
        "--suites",
        TOY_SUITES,
        "--module",
        str(toys_path(checked=True)),
        "--master",
        "local[2]",
    ]
    done = spark_jvm.sweep(tmp_path, *options, "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert parts(tmp_path / "run") == parts(tmp_path / "here")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            [*SMALL, "--strategy", "portfolio", "--exhaust"],
            "delays, exhaust, reduce, enumerate can be exhausted, not 'portfolio'",
        ),
        (["--exhaust"], "--exhaust is for --engine controlled; real threads"),
        (
            [*SMALL, "--strategy", "delays", "--exhaust", "--rounds", "2"],
            "--exhaust takes one strategy and no --rounds",
        ),
        ([*SMALL, "--strategy", "delays", "--parts", "2"], "--parts 2 is for --exhaust"),
        (
            [*SMALL, "--strategy", "delays", "--exhaust", "--parts", "0"],
            "0 is not in the range",
        ),
        ([*SMALL, "--strategy", "delays", "--bound", "-1"], "-1 is not in the range"),
        (["--bound", "1"], "--bound is for --engine controlled"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    tmp_path: Path, options: list[str], message: str
) -> None:
    done = sweep_here(
        "--suite", "counter", "--seeds", "4", *options, "--out", str(tmp_path / "run")
    )
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert not (tmp_path / "run").exists()


def test_another_search_is_refused(run: Path) -> None:
    done = sweep_here("--resume", str(run), "--trust", "--parts", "4")
    assert done.exit_code == 2 and "its parts is 3 and not 4" in done.stderr


def test_the_report_says_what_each_search_proved(run: Path, tmp_path: Path) -> None:
    again = tmp_path / "run"
    shutil.copytree(run, again)
    assert CliRunner().invoke(cli, ["report", str(again)]).exit_code == 0
    page = (again / "report.html").read_text()
    assert "Exhaustively searched programs" in page
    assert page.count("exhausted within the stated bounds: preemption bound 2") >= 2
    result = json.loads(CliRunner().invoke(cli, ["report", str(again), "--format", "json"]).stdout)
    facts = json.loads((run / "run.json").read_text())
    assert result["search"] == facts["summary"]["search"]


@pytest.mark.parametrize(
    "search", [{"parts": "3"}, {"parts": 0}, {"parts": 3, "x": [[]]}, {"parts": True}]
)
def test_a_damaged_search_is_one_sentence(run: Path, tmp_path: Path, search: object) -> None:
    again = tmp_path / "run"
    shutil.copytree(run, again)
    facts = json.loads((again / "run.json").read_text()) | {"search": search}
    facts["plan"]["seeds"] = 1 << 40
    (again / "run.json").write_text(json.dumps(facts))
    for done in (
        CliRunner().invoke(cli, ["report", str(again)]),
        sweep_here("--resume", str(again), "--trust"),
    ):
        assert done.exit_code == 2, done.output
        assert done.stderr.startswith("Error: ") and done.stderr.count("\n") == 1
    assert not (again / "report.html").exists()


def test_a_part_that_gives_the_reduction_up_begins_the_whole_search_again(reduced: Path) -> None:
    """Once for all parts of the stage, and the summary says why."""
    rest = next(row["rest"] for row in read_trials(reduced).to_pylist() if row["rest"])
    options = TrialOptions(strategy="exhaust", executions=2)
    search = Exhaustive(Plan(("counter",), 8, 1, 1, options), parts=3)
    row = {"suite": "counter", "seed": 8, "verdict": "clean", "executions": 2}
    search.take([{**row, "part": "", "rest": rest, "bounds": ""}])
    stage = [search.chunk(number).part for number in range(1, search.chunk_count)]
    assert len(stage) > 1
    rests = ["u2:0:", rest, "u2:0:", rest][: len(stage)]
    search.take(
        [
            {**row, "part": part, "rest": left, "bounds": "spin bound 2"}
            for part, left in zip(stage, rests, strict=True)
        ]
    )
    (again,) = [search.chunk(number).part for number in range(1 + len(stage), search.chunk_count)]
    assert again == "u2:0:"
    search.take([{**row, "part": again, "rest": "", "bounds": ""}])
    assert search.programs["counter", 8].result == (
        "exhausted completely, without reduction, which does not cover it: a loop that yields "
        "again and again"
    )
