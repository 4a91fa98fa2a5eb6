"""The benchmarks run and report; how fast anything is, no test says."""

from __future__ import annotations

import importlib
import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import spark
from benchmarks.__main__ import STRUCTURES, main
from benchmarks.measure import Benchmark, figure

ROOT = Path(__file__).resolve().parents[2]


def test_every_benchmark_file_is_listed() -> None:
    files = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {"__init__", "__main__", "measure"}
    assert files == set(STRUCTURES)


def test_names_start_with_the_structure_and_are_unique() -> None:
    names = []
    for structure in STRUCTURES:
        for benchmark in importlib.import_module(f"benchmarks.{structure}").BENCHMARKS:
            assert benchmark.name.startswith(f"{structure}: ")
            names.append(benchmark.name)
    assert len(set(names)) == len(names)


def test_the_median_and_the_extremes_of_the_repeats_are_kept() -> None:
    samples = iter([3.0, 1.0, 9.0])
    made = figure(Benchmark("x", lambda: next(samples)), 3)
    assert (made.median, made.low, made.high) == (3.0, 1.0, 9.0)


@pytest.mark.parametrize(
    ("target", "at_least", "met"),
    [(None, False, None), (2.0, False, False), (4.0, False, True), (4.0, True, False)],
)
def test_a_target_is_met_on_its_own_side(target: float | None, at_least: bool, met: bool | None) -> None:
    assert figure(Benchmark("x", lambda: 3.0, target=target, at_least=at_least), 1).met is met


def test_the_command_prints_a_figure_for_each_benchmark_of_a_structure() -> None:
    done = CliRunner().invoke(main, ["mpsc_queue", "removal_queue", "--repeats", "1", "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert [row["name"] for row in report["figures"]] == [
        "mpsc_queue: offer and poll",
        "removal_queue: time pass, an entry",
        "removal_queue: size pass, an entry",
    ]
    assert all(row["median"] > 0 for row in report["figures"])
    assert "Python" in report["machine"]


def test_an_unknown_structure_is_a_usage_error() -> None:
    done = CliRunner().invoke(main, ["skip_list"])
    assert done.exit_code == 2
    assert "skip_list" in done.output


def test_the_help_of_a_structure_says_what_its_rows_are() -> None:
    done = CliRunner().invoke(main, ["spark", "--help"])
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    for benchmark in spark.BENCHMARKS:
        assert benchmark.name in said
        assert benchmark.about
    assert "%, ≥ 95: the second over the first" in said
    assert "Rows of" not in CliRunner().invoke(main, ["--help"]).stdout


def test_rows_that_share_measurements_have_those_of_the_same_repeat() -> None:
    turns = spark.Turns(lambda repeat: {"one": repeat, "two": 10 * repeat})
    one, two = turns.row("one"), turns.row("two")
    assert [one(), one(), two(), two(), one()] == [0, 1, 0, 10, 2]


def test_a_trial_on_spark_and_in_the_pool_uses_the_processor_time_that_it_is_said_to() -> None:
    """In this process, where the time can be seen; the pool and Spark run the same function."""
    began = time.process_time_ns()
    (chunk,) = spark.chunks_of("100_ms", 1, 2)
    batch = spark.in_pool((spark.job(), chunk))
    assert time.process_time_ns() - began >= 2 * 10**8
    assert batch is not None
    assert batch["verdict"].to_pylist() == ["clean", "clean"]
    with pytest.raises(RuntimeError, match="lost trials"):
        spark.check_whole([batch], spark.chunks_of("100_ms", 1, 3))


def test_a_run_to_resume_has_what_the_benchmark_says() -> None:
    assert spark.resume() > 0


def test_a_difference_between_two_runs_is_counted() -> None:
    rows = [{"seed": seed, "verdict": "clean"} for seed in range(5)]
    assert spark.differing(rows, rows) == 0
    assert spark.differing(rows, rows[:-1]) == 1
    assert spark.differing(rows, [*rows[:2], {**rows[2], "verdict": "violation"}, *rows[3:]]) == 1
