"""Programs with a bug and their mended versions: the bug is found, the mended one is silent."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.pythreads import our_bug
from pulsar_ml.harness.pythreads.check import explore_python

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = sorted(
    ".".join(path.relative_to(FOLDER).with_suffix("").parts) for path in FOLDER.glob("*/[a-z]*.py")
)
SEEDS = range(3)  # `python -m tests.pythreads` takes twenty
MENDED_EXECUTIONS = 300
# Its correct version publishes by one unlocked store, which the semantics `free` count as a race.
RACES_WHEN_MENDED = {"data.double_checked_lock"}


def program(name: str) -> ModuleType:
    return import_module(f"tests.pythreads.programs.{name}")


def test_there_are_thirty_programs() -> None:
    assert len(PROGRAMS) == 30


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_bug_is_found(name: str, seed: int) -> None:
    done, _ = explore_python(program(name).test_buggy, isolated=False, shrinks=False, seed=seed)
    assert done.failure is not None


def test_the_benchmark_measures_the_time_to_a_bug() -> None:
    assert 0 < our_bug("waiting/queue_shutdown") < math.inf


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_mended_program_is_silent(name: str) -> None:
    mended = program(name).test_mended
    done, text = explore_python(mended, isolated=False, executions=MENDED_EXECUTIONS)
    assert done.verdict == "clean", text


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_mended_program_has_no_race(name: str) -> None:
    mended = program(name).test_mended
    done, text = explore_python(
        mended, isolated=False, executions=MENDED_EXECUTIONS, semantics="free", shrinks=False
    )
    expected = "violation" if name in RACES_WHEN_MENDED else "clean"
    assert done.verdict == expected, text
