"""volatile is plain or relaxed, as the build says; assertions count."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.subjects.program import Program
from tests import ROOT

HERE = Path(__file__).parent
EXECUTIONS = 3_000
FLAGS = ["-std=gnu11", "-Wno-unused"]


@cache
def built(volatile: str) -> ModuleType:
    into = ROOT / "build" / "programs" / f"volatile-{volatile}"
    source = HERE / "volatile_words.pyx"
    return load_checked(
        build_extension(source, into=into, checked=True, flags=FLAGS, volatile=volatile)
    )


def run(name: str, volatile: str, **options: Any) -> Exploration:
    subject = built(volatile).SUBJECTS[name]
    program = Program.generate(subject, 0, threads=2, operations=1, noise=False)
    done = explore(subject, program, executions=EXECUTIONS, seed=1, **options)
    if done.failure is not None:
        assert done.failure.replay(subject).exact
    return done


@pytest.mark.parametrize("name", ["word_unfenced", "word_half", "word_fixed", "words_apart"])
def test_plain_volatile_accesses_race(name: str) -> None:
    failure = run(name, "plain").failure
    assert failure is not None
    assert failure.kind == "data race"


@pytest.mark.parametrize("name", ["word_unfenced", "word_half"])
def test_a_missing_fence_is_found_where_volatile_is_relaxed(name: str) -> None:
    failure = run(name, "relaxed").failure
    assert failure is not None
    assert failure.kind == "data race"
    assert failure.race is not None
    assert {failure.race.first.what[:5], failure.race.second.what[:5]} <= {"read ", "write"}


@pytest.mark.parametrize("strategy", ["portfolio", "preemptions"])
@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
@pytest.mark.parametrize("name", ["word_fixed", "word_synchronised_fixed"])
def test_fences_order_volatile_accesses(name: str, mode: str, strategy: str) -> None:
    done = run(name, "relaxed", mode=mode, strategy=strategy)
    assert done.verdict == "clean", done.failure


# program and mode: the outcomes that are allowed.
OUTCOMES = {
    ("words_apart", "sc"): {0},
    ("words_apart", "tso"): {0},
    ("words_apart", "c11"): {0, 1},
    ("words_fenced", "sc"): {0},
    ("words_fenced", "tso"): {0},
    ("words_fenced", "c11"): {0},
    ("words_crossed", "sc"): {0},
    ("words_crossed", "tso"): {0, 1},
    ("words_crossed", "c11"): {0, 1},
    ("words_counted", "sc"): {1},
    ("words_counted", "tso"): {1},
    ("words_counted", "c11"): {1},
}


@pytest.mark.parametrize("strategy", ["random", "preemptions"])
@pytest.mark.parametrize(("name", "mode"), OUTCOMES)
def test_relaxed_volatile_has_the_outcomes_of_its_mode(name: str, mode: str, strategy: str) -> None:
    built("relaxed").outcomes(name)
    assert run(name, "relaxed", mode=mode, strategy=strategy).verdict == "clean"
    assert set(built("relaxed").outcomes(name)) == OUTCOMES[name, mode]


def test_an_assertion_fails_with_its_text_and_place() -> None:
    failure = run("asserts", "plain").failure
    assert failure is not None
    assert failure.kind == "assertion"
    assert "only one thread comes here" in failure.message
    assert "volatile_words.h:" in failure.message
    assert failure.where[0].startswith("asserts_body unseen/volatile_words.h:")
