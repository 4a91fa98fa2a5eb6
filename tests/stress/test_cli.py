"""``run``, ``replay`` and ``list``: exit codes, summaries, records and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_ml.campaign.trial.record import ReplayRecord
from tests import ROOT
from tests.commands import call
from tests.stress import toy_suites
from tests.stress.conftest import TOYS, Toys
from tests.stress.toy_suites import SUITES


def records_of(folder: Path) -> list[Path]:
    return sorted((folder / "records").glob("*.json"))


def heed_interrupts() -> None:
    """Jobs in the background inherit that Ctrl-C is ignored; the process under test shall not."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_help_shows_examples_and_exit_codes() -> None:
    for name in ("run", "replay", "explore", "trace", "hunt", "sweep"):
        done = call(name, "-h")
        assert done.code == 0
        assert "Examples:" in done.out and "  130  interrupted" in done.out


def test_list_shows_every_suite(toys: Toys) -> None:
    code, out, _ = toys("list")
    assert code == 0
    assert "counter" in out and "Drives the toy racy." in out
    code, out, _ = toys("list", "--json")
    assert [suite["name"] for suite in json.loads(out)][:2] == ["counter", "racy"]


def test_a_clean_run_is_0_and_leaves_no_records(toys: Toys, tmp_path: Path) -> None:
    # The threads of this toy wait for each other, so they overlap on one busy processor too.
    code, out, err = toys("run", "slow", "--seeds", "5", "--operations", "10")
    assert code == 0, out
    assert "clean: nothing was violated" in out
    assert "5 in " in out and "seeds 0..4" in out
    assert "1 of 1 possible pairs of operations were seen to overlap" in out
    assert "slow: 5 programs from seed 0 on 2 threads" in err
    assert not (tmp_path / "records").exists()


def test_a_violation_is_1_and_names_the_command_that_replays_it(toys: Toys, tmp_path: Path) -> None:
    code, out, _ = toys("run", "racy", "--seeds", "3", "--seed", "5")
    assert code == 1
    assert "T1 (quiescence) at seed 5: the sum is" in out
    [first, *others] = records_of(tmp_path)
    assert len(others) == 2
    assert f"replay {first} --suites {TOYS} --trust\n" in out
    record = ReplayRecord.from_json(first.read_text())
    assert (record.suite, record.seed, record.invariant) == ("racy", 5, "T1")


def test_records_are_never_overwritten(toys: Toys, tmp_path: Path) -> None:
    for _ in range(2):
        toys("run", "racy", "--seeds", "1")
    assert [path.name for path in records_of(tmp_path)] == ["racy-seed0-2.json", "racy-seed0.json"]


def test_a_run_stops_after_enough_failures(toys: Toys, tmp_path: Path) -> None:
    toys("run", "racy", "--seeds", "100", "--failures", "2")
    assert len(records_of(tmp_path)) == 2


def test_growing_memory_is_a_violation(toys: Toys, tmp_path: Path) -> None:
    code, out, _ = toys("run", "leaky", "--seeds", "80")
    assert code == 1
    assert "leak (growth) at seed 79: resident memory grew by" in out
    code, out, _ = toys("replay", "--trust", str(records_of(tmp_path)[0]), "--repeats", "80")
    assert code == 1
    assert "reproduced: resident memory grew by" in out
    code, out, _ = toys("run", "leaky", "--seeds", "80", "--leak-threshold", "0", "--threads", "1")
    assert code == 0
    assert "growth not judged" in out


def test_nothing_exercised_is_3(toys: Toys) -> None:
    code, out, _ = toys("run", "alone", "--seeds", "5")
    assert code == 3
    assert "nothing exercised by alone: no two threads of its programs were seen to meet" in out
    assert "5 programs saw no overlap" in out


def test_the_verdict_names_only_the_suites_that_exercised_nothing(
    monkeypatch: pytest.MonkeyPatch, toys: Toys
) -> None:
    monkeypatch.setattr(toy_suites, "SUITES", {name: SUITES[name] for name in ("slow", "alone")})
    code, out, _ = toys("run", "all", "--seeds", "2", "--operations", "10")
    assert code == 3
    assert "nothing exercised by alone: no two" in out
    assert "2 programs (1 exercised, 1 idle)" in out


def test_one_thread_is_clean_without_overlaps(toys: Toys) -> None:
    code, out, _ = toys("run", "counter", "--seeds", "5", "--threads", "1")
    assert code == 0
    assert "possible pairs" not in out


def test_a_mutant_is_found_and_the_product_is_clean(toys: Toys) -> None:
    assert toys("run", "counter", "--seeds", "3", "--mutant", "T01")[0] == 1
    assert toys("run", "counter", "--seeds", "3")[0] in (0, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "no suite is called 'nowhere'; there are: counter"),
        (["counter", "--seeds", "1", "--seconds", "1"], "give one of them"),
        (["counter", "--threads", "65"], "65 is not in the range"),
        (["counter", "--seeds", "0"], "0 is not in the range"),
        (["counter", "--mutant", "T99"], "no mutant 'T99'; it has: T01"),
        (["lonely", "--threads", "3"], "takes at most 2 threads"),
        (["counter", "--fast"], "No such option"),
        ([], "Missing argument"),
    ],
)
def test_wrong_command_lines_are_2(toys: Toys, arguments: list[str], message: str) -> None:
    code, _, err = toys("run", *arguments)
    assert code == 2
    assert message in err


def test_wrong_suites_are_2() -> None:
    done = call("list", "--suites", "tests.stress.nothing")
    assert done.code == 2
    assert "no suites in module 'tests.stress.nothing'" in done.err


def test_a_missing_module_is_4(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    options = ["--module", str(tmp_path / "no.so"), "--records", str(folder)]
    done = call("run", "counter", "--suites", TOYS, *options)
    assert done.code == 4
    assert "Failed: ImportError" in done.err and "no.so" in done.err


def test_all_runs_every_suite_within_one_budget(toys: Toys) -> None:
    code, out, _ = toys(
        "run", "all", "--seeds", "14", "--operations", "20", "--leak-threshold", "0", "--json"
    )
    suites = json.loads(out)["suites"]
    assert [suite["suite"] for suite in suites] == [
        "counter",
        "racy",
        "leaky",
        "tattler",
        "slow",
        "alone",
        "lonely",
    ]
    assert {suite["programs"] for suite in suites} == {2}
    assert code in (0, 1, 3)


def test_json_is_the_whole_of_standard_output(toys: Toys) -> None:
    code, out, _ = toys("run", "racy", "--seeds", "2", "--json")
    result = json.loads(out)
    [suite] = result["suites"]
    assert (code, result["exit_code"], suite["exit_code"]) == (1, 1, 1)
    assert (suite["programs"], suite["operations"], suite["pairs_possible"]) == (2, 8000, 3)
    assert suite["failures"][0]["violations"][0]["invariant"] == "T1"
    assert suite["usage"]["resident"] > 0
    assert suite["usage"]["threads_peak"] >= 1


def test_a_replay_reproduces_and_says_how_often(toys: Toys, tmp_path: Path) -> None:
    toys("run", "racy", "--seeds", "1")
    [record] = records_of(tmp_path)
    code, out, _ = toys("replay", "--trust", str(record))
    assert code == 1
    assert "recorded: T1: the sum is" in out
    assert "failed in 1 of 1 runs (T1 1 times)" in out
    code, out, _ = toys("replay", "--trust", str(record), "--repeats", "5", "--count")
    assert code == 1
    assert "failed in 5 of 5 runs" in out
    code, out, _ = toys("replay", "--trust", str(record), "--repeats", "5", "--count", "--json")
    assert json.loads(out)["failed"] == 5


def test_a_replay_that_finds_nothing_is_honest(toys: Toys, tmp_path: Path) -> None:
    toys("run", "counter", "--seeds", "1", "--mutant", "T01")
    [path] = records_of(tmp_path)
    # The same program over the true counter.
    content = json.loads(path.read_text()) | {"mutant": None}
    path.write_text(json.dumps(content))
    code, out, _ = toys("replay", "--trust", str(path), "--repeats", "20")
    assert code in (0, 3)
    assert "not reproduced in 20 runs; real threads do not replay exactly" in out


def test_a_replay_on_another_build_or_program_says_so(toys: Toys, tmp_path: Path) -> None:
    toys("run", "racy", "--seeds", "1")
    [path] = records_of(tmp_path)
    content = json.loads(path.read_text()) | {"build_id": "older", "program": "other"}
    path.write_text(json.dumps(content))
    _, out, _ = toys("replay", "--trust", str(path))
    assert "another build: the record is of older, this is toys-build-1" in out
    assert "another program: the suite or the generator changed" in out


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"kind": "pulsar_ml replay record", "version": 99}']
)
def test_a_bad_record_is_2(toys: Toys, tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    code, _, err = toys("replay", "--trust", str(path))
    assert code == 2
    assert str(path) in err


def test_a_record_that_is_not_there_is_2(toys: Toys, tmp_path: Path) -> None:
    code, _, err = toys("replay", str(tmp_path / "none.json"))
    assert code == 2
    assert "cannot be read" in err


@pytest.mark.parametrize(
    "arguments", [["list"], ["config", "--explain"], ["--help"], ["run", "-h"]]
)
def test_a_closed_output_ends_the_command_silently(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pulsar_ml", *arguments],
            cwd=ROOT,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_ctrl_c_prints_what_was_found_and_is_130(toys_so: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stress", "run", "slow", "--suites", TOYS, "--seconds", "600"]
    process = subprocess.Popen(
        [*command, "--module", str(toys_so), "--records", str(tmp_path / "records")],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        preexec_fn=heed_interrupts,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        assert process.stderr.readline() == "slow: 600 s from seed 0 on 2 threads\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=900)
    assert process.returncode == 130, err
    assert "interrupted: the results so far are above" in out
    assert "suite" in out and "slow on build toys-build-1" in out
    assert "Traceback" not in err
    assert not records_of(tmp_path)
