"""Code under test that takes its process along is a failure of its execution, is made again from
two numbers, and leaves the process of the user alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.search.child import Limits, LostError
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.sandbox import call, replay_lost, watch
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.subjects.program import Program
from tests import ROOT

HERE = Path(__file__).parent
# Long for an execution of microseconds, also on a busy machine; and what takes for ever takes
# longer.
LIMITS = {"reads_for_ever": Limits(wall=3.0), "computes_for_ever": Limits(wall=120.0, cpu=0.5)}
ROGUES = {
    "overwrites_the_engine": "ended the process",
    "overwrites_the_stack": "ended the process",
    "overwrites_the_heap": "ended the process",
    "ends_the_process": "exit status 3",
    "kills_the_process": "SIGKILL ended the process",
    "reads_for_ever": "blocks its process",
    "computes_for_ever": "loops without a step that the engine sees",
}


@cache
def rogues_path() -> Path:
    digest = hashlib.sha256((ROOT / "pulsar_ml/harness/building/checked.py").read_bytes())
    for name in ("rogues.pyx", "rogues.h", "../programs/kit.h"):
        digest.update((HERE / name).read_bytes())
    into = ROOT / "build" / "programs" / digest.hexdigest()[:12]
    return build_extension(
        HERE / "rogues.pyx",
        into=into,
        checked=True,
        flags=["-std=gnu11", "-Wno-unused"],
        macros={"PML_BUILD_ID": '"programs"'},
    )


def rogues() -> ModuleType:
    return load_checked(rogues_path())


def program_of(name: str) -> Program:
    return Program.generate(rogues().SUBJECTS[name], 0, threads=2, operations=1, noise=False)


def search(name: str, **options: Any) -> Exploration:
    return explore(
        rogues().SUBJECTS[name],
        program_of(name),
        executions=5_000,
        isolated=True,
        limits=LIMITS.get(name),
        **options,
    )


def crash(name: str, **options: Any) -> Failure:
    done = search(name, **options)
    assert done.verdict == "violation"
    assert done.failure is not None
    assert done.failure.ended_process, done.failure
    return done.failure


@pytest.mark.parametrize("name", ROGUES)
def test_a_lost_process_is_a_failure_and_is_made_again(name: str) -> None:
    found = crash(name, seed=7, strategy="random")
    assert ROGUES[name] in found.message
    assert Failure.from_text(found.short()) == found
    again = replay_lost(found, rogues().SUBJECTS[name], limits=LIMITS.get(name))
    assert again.exact, again.failure


@pytest.mark.parametrize("name", ["reads_for_ever", "computes_for_ever"])
def test_a_stuck_process_is_reported_with_the_place_of_each_thread(name: str) -> None:
    found = crash(name, seed=7, strategy="random")
    places = found.message.partition(" (")[2].removesuffix(")").split(", ")
    assert all(re.fullmatch(r"thread \d at \w+ sandbox/rogues.h:\d+", text) for text in places), (
        places
    )
    (stuck,) = [text for text in places if text.startswith("thread 1 ")]
    lines = Path(HERE / "rogues.h").read_text().splitlines()
    line = lines[int(stuck.rpartition(":")[2]) - 1]
    assert "read(ends[0]" in line or line == "ROGUE(computes_for_ever, compute_for_ever())"


@pytest.mark.parametrize(
    "strategy", ["random", "pos", "pct", "surw", "portfolio", "preemptions", "delays"]
)
def test_two_numbers_make_it_again(strategy: str) -> None:
    found = crash("ends_the_process", seed=5, strategy=strategy)
    assert crash("ends_the_process", seed=5, strategy=strategy) == found
    assert replay_lost(found, rogues().SUBJECTS["ends_the_process"]).exact


def test_the_execution_named_is_the_one_that_did_it() -> None:
    found = crash("ends_the_process", seed=3, strategy="random")
    subject, program = rogues().SUBJECTS["ends_the_process"], program_of("ends_the_process")
    assert found.execution > 0
    before = explore(subject, program, executions=found.execution, seed=3, strategy="random")
    assert before.failure is None
    assert before.executions == found.execution


def test_a_replay_outside_is_refused_and_shrinking_leaves_it_alone() -> None:
    found = crash("ends_the_process")
    with pytest.raises(UsageError, match="pulsar-ml replay repeats it in another"):
        found.replay(rogues().SUBJECTS["ends_the_process"])
    assert shrink(found, rogues().SUBJECTS["ends_the_process"]) == found


def test_a_replay_that_does_not_lose_its_process_says_so() -> None:
    found = crash("ends_the_process")
    other = replace(found, subject="behaves", program=program_of("behaves").to_json())
    again = replay_lost(other, rogues().SUBJECTS["behaves"])
    assert not again.exact
    assert again.failure is None


def test_what_behaves_is_the_same_inside_and_outside() -> None:
    subject, program = rogues().SUBJECTS["behaves"], program_of("behaves")
    inside = search("behaves", seed=1)
    outside = explore(subject, program, executions=5_000, seed=1)
    assert inside.verdict == "clean"
    assert inside.statistics == outside.statistics


def test_a_python_error_comes_through() -> None:
    def wrong() -> None:
        raise ZeroDivisionError("as it was")

    with pytest.raises(ZeroDivisionError, match="as it was"):
        call(wrong)


def test_what_was_told_before_the_end_stays_told() -> None:
    heard: list[int] = []

    def work(tell: object) -> None:
        assert callable(tell)
        tell(1)
        tell(2)
        os._exit(9)

    with pytest.raises(LostError, match="exit status 9"):
        watch(work, heard.append)
    assert heard == [1, 2]


def stress(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "stress", *arguments]


def test_the_command_line_writes_a_lost_process_and_makes_it_again(tmp_path: Path) -> None:
    rogue = ("--suites", "tests.engine.sandbox.rogue_suites")
    module = ("--module", str(rogues_path()))
    command = stress(
        "explore", "ends_the_process", *rogue, *module, "--seed", "1", "--threads", "2"
    )
    done = subprocess.run(
        [*command, "--records", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    assert "process ended: the code under test ended its process with exit status 3" in done.stdout
    (record,) = tmp_path.glob("ends_the_process-*.json")
    for again in ("trace", "shrink"):
        command = stress(again, str(record), *rogue, *module)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 1, done.stderr
        assert "the failure was made again" in done.stdout


def test_an_interrupt_keeps_what_was_found_and_leaves_no_child(tmp_path: Path) -> None:
    command = stress(
        "explore", "refcount", "--executions", "2000000000", "--records", str(tmp_path)
    )
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        lines = [
            process.stderr.readline(),
            process.stderr.readline(),
        ]  # begun, and how far it has come
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate()
    assert re.search(r"refcount: [\d,]+ executions, [\d,]+ programs? done", lines[1])
    assert process.returncode == 130
    assert "refcount: " in out
    with pytest.raises(ProcessLookupError):  # the child is gone, too
        os.killpg(process.pid, 0)
