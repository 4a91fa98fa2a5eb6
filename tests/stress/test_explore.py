"""``explore``, ``trace``, ``shrink`` and ``replay`` as a user runs them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stress.mutants.build import build
from tests import ROOT


def pulsar_ml(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pulsar_ml", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope="module")
def wrong() -> tuple[str, ...]:
    return ("--module", str(build(checked=True)), "--mutant", "M01")


def test_the_true_core_is_clean_and_says_what_that_means() -> None:
    done = pulsar_ml("explore", "refcount", "--seeds", "3", "--seed", "1", "--unguided")
    assert done.returncode == 0, done.stderr
    assert "refcount: 192 executions of 3 programs" in done.stdout
    assert "a failure of these programs is rarer than 1 in 64 executions" in done.stdout


def test_one_thread_exercises_nothing() -> None:
    done = pulsar_ml("explore", "refcount", "--threads", "1", "--seeds", "1", "--executions", "100")
    assert done.returncode == 3, done.stdout + done.stderr


def test_a_weak_memory_bug_is_found_written_and_made_again(
    wrong: tuple[str, ...], tmp_path: Path
) -> None:
    command = ("explore", "stamped_lock", *wrong, "--no-answers", "--seeds", "50")
    found = pulsar_ml(*command, "--records", str(tmp_path))
    assert found.returncode == 1, found.stdout + found.stderr
    assert "invariant I9" in found.stdout
    assert "the failure was made again, step by step" in found.stdout
    (record,) = tmp_path.glob("*.json")
    traced = pulsar_ml("trace", "--trust", str(record))
    assert traced.returncode == 1
    assert re.search(r"\(\d+ stores? old\)", traced.stdout)
    assert "stamped_lock.pxd:" in traced.stdout
    again = pulsar_ml("shrink", "--trust", str(record))
    assert again.returncode == 1
    assert json.loads(record.read_text())["rule"] == "I9"


def test_a_short_search_finds_what_the_samplers_miss_in_a_program(
    wrong: tuple[str, ...], tmp_path: Path
) -> None:
    """A reader makes all its reads behind the other threads, and several see older stores."""
    command = ("explore", "entry_wrapper", *wrong[:3], "H08d", "--seed", "163", "--seeds", "1")
    found = pulsar_ml(*command, "--records", str(tmp_path))
    assert found.returncode == 1, found.stdout + found.stderr
    assert "of program 1 (strategy preemptions)" in found.stdout
    (record,) = tmp_path.glob("*.json")
    assert pulsar_ml("replay", "--trust", str(record)).returncode == 1
    for other in (("--unguided",), ("--strategy", "pos")):
        silent = pulsar_ml(*command, *other, "--records", str(tmp_path / "silent"))
        assert silent.returncode == 0, silent.stdout + silent.stderr


def test_the_same_bug_is_invisible_in_mode_sc(wrong: tuple[str, ...], tmp_path: Path) -> None:
    done = pulsar_ml(
        "explore",
        "stamped_lock",
        *wrong,
        "--mode",
        "sc",
        "--seeds",
        "10",
        "--records",
        str(tmp_path),
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_race_is_printed_with_both_stacks_and_can_be_left_out(
    wrong: tuple[str, ...], tmp_path: Path
) -> None:
    command = (
        "explore",
        "object_pool",
        *wrong[:2],
        "--mutant",
        "M06",
        "--mode",
        "sc",
        "--records",
        str(tmp_path),
    )
    found = pulsar_ml(*command, "--seeds", "30")
    assert found.returncode == 1, found.stdout + found.stderr
    for part in (
        "data race: ",
        "  first, thread ",
        "  then, thread ",
        "  last synchronisation of the two: ",
    ):
        assert part in found.stdout
    assert "  seen in both orders" in found.stdout or "  the other order was" in found.stdout
    assert "object_pool.pxd:" in found.stdout
    (record,) = tmp_path.glob("*.json")
    assert json.loads(record.read_text())["race"]["first"]["stack"]
    left_out = pulsar_ml(*command, "--seeds", "30", "--no-races")
    assert left_out.returncode == 0, left_out.stdout + left_out.stderr


def test_a_run_says_what_it_may_have_missed_and_what_it_exhausted() -> None:
    done = pulsar_ml("explore", "refcount", "--seeds", "2", "--json")
    (suite,) = json.loads(done.stdout)["suites"]
    assert all(0 < missed <= 1 for missed in suite["pct_missed"]) and not suite["exhausted"]
    text = pulsar_ml("explore", "refcount", "--seeds", "2")
    assert (
        "PCT missed a bug of the schedule with probability at most, by program: depth 1: "
        in text.stdout
    )
    size = (
        "--threads",
        "2",
        "--operations",
        "1",
        "--seeds",
        "1",
        "--executions",
        "300",
        "--mode",
        "sc",
    )
    done = pulsar_ml("explore", "refcount", *size, "--strategy", "preemptions", "--bound", "9")
    assert "  exhausted completely: " in done.stdout and "PCT" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("explore", "skip_list"), "no suite is called 'skip_list'"),
        (("explore", "refcount", "--mutant", "M01"), "has no mutant 'M01'"),
        (("trace", "no-such-file.json"), "cannot be read"),
    ],
)
def test_usage_errors_say_what_is_wrong(arguments: tuple[str, ...], said: str) -> None:
    done = pulsar_ml(*arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr


def test_a_damaged_failure_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "damaged.json"
    path.write_text('{"kind_of_record": "pulsar_ml failure"')
    done = pulsar_ml("trace", str(path))
    assert done.returncode == 2
    assert str(path) in done.stderr
    assert "Traceback" not in done.stderr
