"""Sweeps in rounds: the same on every runner, and resumed after a kill."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pulsar_ml.campaign.store.store import read_trials, waves_of
from pulsar_ml.cli.find.sweep import command as main
from tests.campaign.rows import stable_rows
from tests.harness.toys.build_toys import toys_path
from tests.spark.session.one_jvm import OneJvm

COMMON = [
    "--engine",
    "controlled",
    "--suite",
    "counter",
    "--suite",
    "tattler",
    "--executions",
    "40",
]
COMMON += ["--module", str(toys_path(checked=True)), "--threads", "2", "--operations", "2"]
IN_ROUNDS = [
    "--seeds",
    "18",
    "--chunk-size",
    "3",
    "--rounds",
    "3",
    "--strategy",
    "random",
    "--strategy",
    "pct",
]


GUIDED = ["--seeds", "18", "--chunk-size", "3", "--rounds", "3", "--guided"]


def here(*options: str) -> Result:
    registry = ["--suites", "tests.spark.sweep_suites"]
    return CliRunner().invoke(
        main, [*registry, "--runner", "inline", "--wave-seconds", "0.001", *options]
    )


def rounds_in(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((directory / "rounds").iterdir())]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    directory = tmp_path_factory.mktemp("rounds") / "run"
    done = here(*COMMON, *IN_ROUNDS, "--out", str(directory))
    assert done.exit_code == 0, done.output
    return directory, done


def killed(undisturbed: Path, directory: Path) -> Path:
    """The run as it was in the middle of its second round."""
    shutil.copytree(undisturbed, directory)
    (directory / "rounds" / "round-00002.json").unlink()
    second = rounds_in(directory)[1]["first_chunk"]
    begun = [name for name in waves_of(directory) if second in chunks_in(directory, name)]
    for name in waves_of(directory):
        if name > begun[0]:
            (directory / "trials" / name).unlink()
            (directory / "violations" / name).unlink()
    facts = json.loads((directory / "run.json").read_text())
    (directory / "run.json").write_text(json.dumps({**facts, "status": "running"}))
    return directory


def chunks_in(directory: Path, name: str) -> list[int]:
    import pyarrow.parquet as pq

    found: list[int] = pq.read_table(directory / "trials" / name, columns=["chunk_id"])[
        0
    ].to_pylist()
    return found


def test_the_summary_says_where_the_trials_of_each_round_went(
    undisturbed: tuple[Path, Result],
) -> None:
    directory, done = undisturbed
    assert "strategies random, pct, 40 executions each" in done.stderr
    assert (
        "3 rounds over 4 arms" in done.stderr
        and "round 1: counter pct 3, counter random 3" in done.stderr
    )
    assert (
        "Rounds" in done.stdout and "Trials 1" in done.stdout and "36 of 36 trials" in done.stdout
    )
    facts = json.loads((directory / "run.json").read_text())
    assert facts["rounds"] == {"rounds": 3, "floor": 0.2, "strategies": ["random", "pct"]}
    gains = facts["summary"]["rounds"]
    assert [sum(arm["trials"] for arm in each["arms"]) for each in gains] == [12, 12, 12]
    assert sum(arm["classes"] for each in gains for arm in each["arms"]) == sum(
        read_trials(directory)["classes"].to_pylist()
    )
    assert {row["strategy"] for row in read_trials(directory).to_pylist()} == {"random", "pct"}


def test_a_killed_sweep_in_rounds_goes_on_with_nothing_but_its_directory(
    undisturbed: tuple[Path, Result], tmp_path: Path
) -> None:
    run = killed(undisturbed[0], tmp_path / "run")
    done = here("--resume", str(run), "--trust", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["trials"] == 36
    assert "round 2:" in done.stderr and "round 1:" not in done.stderr
    assert stable_rows(read_trials(run)) == stable_rows(read_trials(undisturbed[0]))
    assert rounds_in(run) == rounds_in(undisturbed[0])


@pytest.mark.xdist_group("spark")
def test_spark_goes_on_with_the_same_rounds(
    undisturbed: tuple[Path, Result], tmp_path: Path, spark_jvm: OneJvm
) -> None:
    run = killed(undisturbed[0], tmp_path / "run")
    shutil.move(run, tmp_path / "out")
    run = tmp_path / "out"
    resumed = ["--resume", "out", "--trust", "--runner", "spark", "--master", "local[2]"]
    done = spark_jvm.sweep(tmp_path, *resumed)
    assert done.returncode == 0, done.stderr
    assert stable_rows(read_trials(run)) == stable_rows(read_trials(undisturbed[0]))
    assert rounds_in(run) == rounds_in(undisturbed[0])


@pytest.fixture(scope="module")
def guided(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("guided") / "run"
    done = here(*COMMON, *GUIDED, "--out", str(directory))
    assert done.exit_code == 0, done.output
    return directory


def test_programs_of_earlier_rounds_are_the_corpus_of_later_ones(
    guided: Path, undisturbed: tuple[Path, Result]
) -> None:
    first, *later = rounds_in(guided)
    assert "corpus" not in first and (first["version"], later[0]["version"]) == (1, 2)
    rows = read_trials(guided).to_pylist()
    for each in later:
        assert each["corpus"].keys() == {"counter", "tattler"}
        for suite, seeds in each["corpus"].items():
            before = [
                row
                for row in rows
                if row["suite"] == suite and row["chunk_id"] < each["first_chunk"]
                if row["chunk_id"] < later[0]["first_chunk"] or row["seed"] % 2 == 0
            ]
            most = sorted((-row["classes"], row["seed"]) for row in before)[:16]
            assert seeds == [seed for _, seed in most]
    # The negative control: rounds without --guided have no corpus.
    assert all("corpus" not in each for each in rounds_in(undisturbed[0]))


def test_a_killed_guided_sweep_goes_on_with_its_corpus(guided: Path, tmp_path: Path) -> None:
    run = killed(guided, tmp_path / "run")
    done = here("--resume", str(run), "--trust")
    assert done.exit_code == 0, done.output
    assert stable_rows(read_trials(run)) == stable_rows(read_trials(guided))
    assert rounds_in(run) == rounds_in(guided)


@pytest.mark.xdist_group("spark")
def test_executors_of_spark_get_the_corpus(guided: Path, tmp_path: Path, spark_jvm: OneJvm) -> None:
    """Rows of guided trials are those of one process: the corpus alone decides about them."""
    run = killed(guided, tmp_path / "run")
    shutil.move(run, tmp_path / "out")
    resumed = ["--resume", "out", "--trust", "--runner", "spark", "--master", "local[2]"]
    done = spark_jvm.sweep(tmp_path, *resumed)
    assert done.returncode == 0, done.stderr
    assert stable_rows(read_trials(tmp_path / "out")) == stable_rows(read_trials(guided))
    assert rounds_in(tmp_path / "out") == rounds_in(guided)


def test_all_strategies_share_the_seeds_in_one_round(tmp_path: Path) -> None:
    """Eight strategies: reduce and enumerate would search once more what exhaust searches."""
    options = [
        "--seeds",
        "8",
        "--strategy",
        "all",
        "--chunk-size",
        "10",
        "--out",
        str(tmp_path / "run"),
    ]
    done = here(*COMMON, *options)
    assert done.exit_code == 0, done.output
    (only,) = rounds_in(tmp_path / "run")
    assert [arm["seed_hi"] - arm["seed_lo"] for arm in only["arms"]] == [1] * 16
    assert {row["strategy"] for row in read_trials(tmp_path / "run").to_pylist()} == {
        "random", "pct", "pos", "surw", "preemptions", "delays", "portfolio", "exhaust",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rounds", "0"], "0 is not in the range"),
        (["--rounds", "30", "--seeds", "40"], "a round of 2 trials is too short for 4 arms"),
        (["--rounds", "2", "--floor", "2"], "from 0 to 1, not 2.0"),
        (["--strategy", "pct"], "each strategy once"),
        (["--guided"], "name it as well"),
        (["--guided", "--rounds", "1"], "--rounds 2 or more"),
        (["--strategy", "luck"], "no strategy 'luck'"),
    ],
)
def test_rounds_that_cannot_be_are_usage_errors(
    tmp_path: Path, options: list[str], message: str
) -> None:
    done = here(*COMMON, *IN_ROUNDS, *options, "--out", str(tmp_path / "out"))
    assert (done.exit_code, message in done.stderr) == (2, True), done.output
    assert not (tmp_path / "out").exists()


def test_a_floor_needs_rounds_and_a_run_keeps_its_own(
    undisturbed: tuple[Path, Result], tmp_path: Path
) -> None:
    done = here(*COMMON, "--floor", "0.5", "--out", str(tmp_path / "out"))
    assert (done.exit_code, "--floor 0.5 is for --rounds" in done.stderr) == (2, True)
    for options, message in (
        (["--rounds", "4"], "its rounds is 3 and not 4"),
        (["--floor", "0.5"], "its floor is 0.2 and not 0.5"),
    ):
        run = killed(undisturbed[0], tmp_path / options[0])
        done = here("--resume", str(run), "--trust", *options)
        assert (done.exit_code, message in done.stderr) == (2, True), done.output
