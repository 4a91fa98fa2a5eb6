"""The benchmarks run and report. No test depends on their figures."""

from __future__ import annotations

import importlib
import io
import itertools
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from benchmarks import spark
from benchmarks.__main__ import NAMES, STRUCTURES, main, rows_of
from benchmarks.measure import Benchmark, Figure, figure, loops, measure, progress, ratio
from tests import ROOT

INDEPENDENT = {"x", "%", "bytes", "MiB", "rows"}  # units


def test_every_benchmark_file_is_listed() -> None:
    files = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {
        "__init__",
        "__main__",
        "measure",
    }
    assert files == set(NAMES) - set(STRUCTURES)
    assert "range_cache" in STRUCTURES


@pytest.mark.parametrize("source", sorted(ROOT.glob("benchmarks/**/*.pyx")), ids=lambda it: it.stem)
def test_native_loops_fit_todays_core(source: Path, tmp_path: Path) -> None:
    """They are compiled at first use, so nothing else would tell that a name of theirs is gone."""
    arguments = ["-3", "-o", str(tmp_path / "loops.c"), str(source)]
    command = [sys.executable, "-m", "cython", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_names_start_with_the_structure_and_are_unique() -> None:
    names = []
    for structure in NAMES:
        for benchmark in rows_of(structure).BENCHMARKS:
            assert benchmark.name.startswith(f"{structure}: ")
            names.append(benchmark.name)
    assert len(set(names)) == len(names)


def test_the_median_and_the_extremes_of_the_repeats_are_kept() -> None:
    samples = iter([3.0, 1.0, 9.0])
    figures: list[Figure] = []
    measure([Benchmark("x", lambda: next(samples))], 3, figures, lambda *repeat: None)
    (row,) = figures
    assert (row.median, row.low, row.high) == (3.0, 1.0, 9.0)


@pytest.mark.parametrize(
    ("samples", "enough", "repeats"),
    [
        ([100.0, 101.0, 99.0, 100.0, 100.0], 0.02, 3),
        ([100.0, 103.0, 99.0, 100.0, 100.0], 0.02, 5),
        ([100.0, 101.0, 99.0, 100.0, 100.0], None, 5),
        ([0.0] * 5, 0.02, 3),
        ([0.0, 0.0, 1.0, 0.0, 0.0], 0.02, 5),
    ],
    ids=["agree", "differ", "no limit", "zeros", "one differs"],
)
def test_a_row_that_takes_long_ends_when_three_repeats_agree(
    samples: list[float], enough: float | None, repeats: int
) -> None:
    figures: list[Figure] = []
    values = iter(samples)
    measure([Benchmark("x", lambda: next(values), enough=enough)], 5, figures, lambda *repeat: None)
    assert figures[0].repeats == repeats


def test_only_rows_that_do_not_depend_on_the_machine_have_a_target() -> None:
    """Ratios of one repeat, and counts; a time of another machine judges nothing."""
    judged = {
        benchmark.name: benchmark.unit
        for structure in NAMES
        for benchmark in rows_of(structure).BENCHMARKS
        if benchmark.target is not None
    }
    assert {name: unit for name, unit in judged.items() if unit not in INDEPENDENT} == {}
    assert set(judged.values()) >= {"x", "%", "bytes"}


def test_a_ratio_is_of_two_measurements_of_one_repeat() -> None:
    runs, floors = iter([6.0, 10.0]), iter([2.0, 4.0])
    times = ratio(lambda: next(runs), lambda: next(floors))
    assert [times(), times()] == [3.0, 2.5]


@pytest.mark.parametrize(
    ("target", "at_least", "met"),
    [(None, False, None), (2.0, False, False), (4.0, False, True), (4.0, True, False)],
)
def test_a_target_is_met_on_its_own_side(
    target: float | None, at_least: bool, met: bool | None
) -> None:
    assert figure(Benchmark("x", lambda: 3.0, target=target, at_least=at_least), [3.0]).met is met


def test_the_command_prints_a_figure_for_each_benchmark_of_a_structure() -> None:
    done = CliRunner().invoke(main, ["mpsc_queue", "stamped_lock", "--repeats", "1", "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert [row["name"] for row in report["figures"]] == [
        "mpsc_queue: offer and poll",
        "stamped_lock: write section",
        "stamped_lock: optimistic read",
    ]
    assert all(row["median"] > 0 for row in report["figures"])
    assert "Python" in report["machine"]


def test_each_loop_over_a_structure_ends() -> None:
    source = (ROOT / "benchmarks/loops/small_structures.pxi").read_text()
    names = re.findall(r"^def (\w+)\(int64_t count\)", source, re.MULTILINE)
    assert "entry_wrapper" in names
    assert all(getattr(loops(), name)(100) > 0 for name in names)


def stopped_by(stop: Callable[[], object] | None) -> tuple[Benchmark, ...]:
    """Two quick rows, one whose second repeat is interrupted, and a last one."""
    repeats = itertools.count()

    def third() -> float:
        if stop is not None and next(repeats) == 1:
            stop()
        return 3.25

    return (
        Benchmark("refcount: one", lambda: 1.25),
        Benchmark("refcount: two", lambda: 2.25),
        Benchmark("refcount: three", third),
        Benchmark("refcount: four", lambda: 4.25),
    )


def test_a_row_that_ended_by_itself_is_not_said_to_be_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped() -> float:
        signal.raise_signal(signal.SIGINT)
        return 2.25

    rows = (
        Benchmark("refcount: agrees", lambda: 1.25, enough=0.0),
        Benchmark("refcount: stopped", stopped),
    )
    monkeypatch.setattr(
        importlib.import_module("benchmarks.structures.refcount"), "BENCHMARKS", rows
    )
    done = CliRunner().invoke(main, ["refcount", "--repeats", "9"])
    assert done.exit_code == 130
    assert "1 of 2 rows were measured\n  missing: refcount: stopped" in done.stderr


def failing() -> None:
    raise RuntimeError("a row that cannot be measured")


@pytest.mark.parametrize(
    ("stop", "code", "message"),
    [
        (lambda: signal.raise_signal(signal.SIGINT), 130, "Interrupted: 3 of 4 rows"),
        (failing, 4, "Failed: a row that cannot be measured; 3 of 4 rows"),
        (None, 0, ""),
    ],
    ids=["Ctrl-C", "an error", "to the end"],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_what_was_measured_is_printed_whatever_stops_the_rest(
    stop: Callable[[], object] | None,
    code: int,
    message: str,
    as_json: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        importlib.import_module("benchmarks.structures.refcount"), "BENCHMARKS", stopped_by(stop)
    )
    done = CliRunner().invoke(main, ["refcount", "--repeats", "2", *["--json"] * as_json])
    assert done.exit_code == code
    whole = stop is None
    if as_json:
        report = json.loads(done.stdout)
        assert [row["median"] for row in report["figures"]] == [1.25, 2.25, 3.25, 4.25][: 3 + whole]
        assert [row["repeats"] for row in report["figures"]] == ([2] * 4 if whole else [2, 2, 1])
        assert report["missing"] == ([] if whole else ["refcount: four"])
    else:
        assert all(f"refcount: {name}" in done.stdout for name in ("one", "two", "three"))
        assert ("4.25" in done.stdout) == whole
    assert message in done.stderr
    assert ("missing: refcount: four" in done.stderr) == (not whole)
    assert ("the last with 1 of 2 repeats" in done.stderr) == (not whole)
    assert "Aborted" not in done.stderr


class Output(io.StringIO):
    """A file that sets an event at the first write; it is no terminal."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def flush(self) -> None:
        super().flush()
        if self.getvalue():
            self.written.set()


def test_a_line_says_which_row_takes_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("benchmarks.measure"), "LINE_SECONDS", 0.01)
    output = Output()
    figures: list[Figure] = []
    row = Benchmark("refcount: long", lambda: float(output.written.wait(900)))
    with progress(Console(file=output, force_terminal=False), 1, 1) as on_repeat:
        measure([row], 1, figures, on_repeat)
    assert figures[0].median == 1.0
    assert "refcount: long: row 1 of 1, repeat 1 of 1\n" in output.getvalue()


def test_short_rows_of_histories_are_measured() -> None:
    """Their histories are accepted, and the search that is bounded meets its bound."""
    rows = {one.name: one for one in rows_of("linearize").BENCHMARKS}
    for name in ("3 threads, 12 operations, search", "register, 5 clients, 100 operations, median"):
        assert rows[f"linearize: {name}"].run() > 0
    bounded = rows["linearize: memory of a search bounded by 64 MiB each"]
    assert bounded.target is not None
    assert 64 <= bounded.run() <= bounded.target


def test_an_unknown_structure_is_a_usage_error() -> None:
    done = CliRunner().invoke(main, ["skip_list"])
    assert done.exit_code == 2
    assert "skip_list" in done.output


def test_the_help_of_a_structure_says_what_its_rows_are() -> None:
    done = CliRunner().invoke(main, ["spark", "--help"])
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    for benchmark in spark.BENCHMARKS:
        assert benchmark.name in text
        assert benchmark.about
    assert "%, ≥ 95: Spark over the pool" in text
    assert "Rows of" not in CliRunner().invoke(main, ["--help"]).stdout


def test_the_help_of_rows_that_need_an_absent_peer_tells_what_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spark, "BENCHMARKS", ())
    done = CliRunner().invoke(main, ["spark", "--help"])
    assert done.exit_code == 0, done.output
    assert "Rows of spark" in done.stdout


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
