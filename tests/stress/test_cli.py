"""``python -m stress``: exit codes, summaries, records, replay and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.cli.stress import main
from tests.stress.conftest import TOYS

ROOT = Path(__file__).resolve().parents[2]


def records_of(folder: Path) -> list[Path]:
    return sorted((folder / "records").glob("*.json"))


def heed_interrupts() -> None:
    """Jobs in the background inherit that Ctrl-C is ignored; the process under test shall not."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_help_shows_examples_and_exit_codes(capsys):
    for arguments in (["--help"], ["run", "--help"], ["replay", "--help"]):
        assert main(arguments) == 0
        shown = capsys.readouterr().out
        assert "Examples:" in shown and "130" in shown


def test_list_shows_every_suite(stress):
    code, out, _ = stress("list")
    assert code == 0
    assert "counter" in out and "Drives the toy racy." in out
    code, out, _ = stress("list", "--json")
    assert [suite["name"] for suite in json.loads(out)][:2] == ["counter", "racy"]


def test_a_clean_run_is_0_and_leaves_no_records(stress, tmp_path):
    # The threads of this toy wait for each other, so they overlap on one busy processor too.
    code, out, err = stress("run", "slow", "--programs", "5", "--operations", "10")
    assert code == 0, out
    assert "clean: nothing was violated" in out
    assert "5 in " in out and "seeds 0..4" in out
    assert "1 of 1 possible pairs of operations were seen to overlap" in out
    assert "slow: 5 programs from seed 0 on 2 threads" in err
    assert not (tmp_path / "records").exists()


def test_a_violation_is_1_and_names_the_command_that_replays_it(stress, tmp_path):
    code, out, _ = stress("run", "racy", "--programs", "3", "--seed", "5")
    assert code == 1
    assert "T1 (quiescence) at seed 5: the sum is" in out
    [first, *others] = records_of(tmp_path)
    assert len(others) == 2
    assert f"python -m stress --suites {TOYS} replay {first}" in out
    record = ReplayRecord.from_json(first.read_text())
    assert (record.suite, record.seed, record.invariant) == ("racy", 5, "T1")


def test_records_are_never_overwritten(stress, tmp_path):
    for _ in range(2):
        stress("run", "racy", "--programs", "1")
    assert [path.name for path in records_of(tmp_path)] == ["racy-seed0-2.json", "racy-seed0.json"]


def test_a_run_stops_after_enough_failures(stress, tmp_path):
    stress("run", "racy", "--programs", "100", "--failures", "2")
    assert len(records_of(tmp_path)) == 2


def test_growing_memory_is_a_violation(stress, tmp_path):
    code, out, _ = stress("run", "leaky", "--programs", "40")
    assert code == 1
    assert "leak (growth) at seed 39: resident memory grew by" in out
    code, out, _ = stress("replay", str(records_of(tmp_path)[0]), "--repeats", "40")
    assert code == 1
    assert "reproduced: resident memory grew by" in out
    code, out, _ = stress(
        "run", "leaky", "--programs", "40", "--leak-threshold", "0", "--threads", "1"
    )
    assert code == 0
    assert "growth not judged" in out


def test_nothing_exercised_is_3(stress):
    code, out, _ = stress("run", "alone", "--programs", "5")
    assert code == 3
    assert "nothing exercised" in out
    assert "5 programs saw no overlap" in out


def test_one_thread_is_clean_without_overlaps(stress):
    code, out, _ = stress("run", "counter", "--programs", "5", "--threads", "1")
    assert code == 0
    assert "possible pairs" not in out


def test_a_mutant_is_found_and_the_product_is_clean(stress):
    assert stress("run", "counter", "--programs", "3", "--mutant", "T01")[0] == 1
    assert stress("run", "counter", "--programs", "3")[0] in (0, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "no suite is called 'nowhere'; there are: counter"),
        (["counter", "--programs", "1", "--seconds", "1"], "give one of them"),
        (["counter", "--threads", "65"], "65 is not in the range"),
        (["counter", "--programs", "0"], "0 is not in the range"),
        (["counter", "--mutant", "T99"], "no mutant 'T99'; it has: T01"),
        (["lonely", "--threads", "3"], "takes at most 2 threads"),
        (["counter", "--fast"], "No such option"),
        ([], "Missing argument"),
    ],
)
def test_wrong_command_lines_are_2(stress, arguments, message):
    code, _, err = stress("run", *arguments)
    assert code == 2
    assert message in err


def test_wrong_suites_are_2(capsys):
    assert main(["--suites", "tests.stress.nothing", "list"]) == 2
    assert "no suites in module 'tests.stress.nothing'" in capsys.readouterr().err


def test_a_missing_module_is_4(capsys, tmp_path):
    folder = str(tmp_path / "records")
    arguments = [
        "--suites",
        TOYS,
        "run",
        "counter",
        "--module",
        str(tmp_path / "no.so"),
        "--records",
        folder,
    ]
    assert main(arguments) == 4
    assert "python setup.py build_ext --inplace" in capsys.readouterr().err


def test_all_runs_every_suite_within_one_budget(stress):
    code, out, _ = stress(
        "run", "all", "--programs", "14", "--operations", "20", "--leak-threshold", "0", "--json"
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


def test_json_is_the_whole_of_standard_output(stress):
    code, out, _ = stress("run", "racy", "--programs", "2", "--json")
    result = json.loads(out)
    [suite] = result["suites"]
    assert (code, result["exit_code"], suite["exit_code"]) == (1, 1, 1)
    assert (suite["programs"], suite["operations"], suite["pairs_possible"]) == (2, 8000, 3)
    assert suite["failures"][0]["violations"][0]["invariant"] == "T1"
    assert suite["usage"]["resident"] > 0
    assert suite["usage"]["threads_peak"] >= 1


def test_a_replay_reproduces_and_says_how_often(stress, tmp_path):
    stress("run", "racy", "--programs", "1")
    [record] = records_of(tmp_path)
    code, out, _ = stress("replay", str(record))
    assert code == 1
    assert "recorded: T1: the sum is" in out
    assert "failed in 1 of 1 runs (T1 1 times)" in out
    code, out, _ = stress("replay", str(record), "--repeats", "5", "--count")
    assert code == 1
    assert "failed in 5 of 5 runs" in out
    code, out, _ = stress("replay", str(record), "--repeats", "5", "--count", "--json")
    assert json.loads(out)["failed"] == 5


def test_a_replay_that_finds_nothing_is_honest(stress, tmp_path):
    stress("run", "counter", "--programs", "1", "--mutant", "T01")
    [path] = records_of(tmp_path)
    # The same program over the true counter.
    content = json.loads(path.read_text()) | {"mutant": None}
    path.write_text(json.dumps(content))
    code, out, _ = stress("replay", str(path), "--repeats", "20")
    assert code in (0, 3)
    assert "not reproduced in 20 runs; real threads do not replay exactly" in out


def test_a_replay_on_another_build_or_program_says_so(stress, tmp_path):
    stress("run", "racy", "--programs", "1")
    [path] = records_of(tmp_path)
    content = json.loads(path.read_text()) | {"build_id": "older", "program": "other"}
    path.write_text(json.dumps(content))
    _, out, _ = stress("replay", str(path))
    assert "another build: the record is of older, this is toys-build-1" in out
    assert "another program: the suite or the generator changed" in out


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"kind": "pulsar_ml replay record", "version": 99}']
)
def test_a_bad_record_is_2(stress, tmp_path, text):
    path = tmp_path / "bad.json"
    path.write_text(text)
    code, _, err = stress("replay", str(path))
    assert code == 2
    assert str(path) in err


def test_a_record_that_is_not_there_is_2(stress, tmp_path):
    code, _, err = stress("replay", str(tmp_path / "none.json"))
    assert code == 2
    assert "cannot be read" in err


def test_ctrl_c_prints_what_was_found_and_is_130(toys_so, tmp_path):
    command = [sys.executable, "-m", "stress", "--suites", TOYS, "run", "slow", "--seconds", "600"]
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
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "interrupted: what was found so far is above" in out
    assert "suite" in out and "slow on build toys-build-1" in out
    assert "Traceback" not in err
    assert not records_of(tmp_path)
