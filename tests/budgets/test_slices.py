"""Slices of one test: disjoint executions, classes that add up, and known failures on the way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pulsar_ml.harness.budgets import passing
from pulsar_ml.harness.budgets.slices import MOST_CRASHES, Course
from pulsar_ml.harness.functions.check import build_tests, explore_test, finish_test
from pulsar_ml.harness.functions.source import TestSource, read_source
from pulsar_ml.harness.search.explore import Exploration
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.subjects.subject import Subject
from tests import ROOT

SOURCE = Path(__file__).with_name("slices.c")


@pytest.fixture(scope="module")
def source() -> TestSource:
    return read_source(SOURCE)


@pytest.fixture(scope="module")
def subjects(source: TestSource) -> dict[str, Subject]:
    return build_tests(source, into=ROOT / "build" / "functions")


Of = Callable[..., Course]


@pytest.fixture
def course(source: TestSource, subjects: dict[str, Subject]) -> Of:
    def of(name: str, is_known: passing.IsKnown | None = None, **options: Any) -> Course:
        test = next(test for test in source.tests if test.name == name)
        return Course(partial(explore_test, test, subjects[name], **options), is_known)

    return of


def is_race(failure: Failure) -> bool:
    return failure.kind == "data race"


def test_slices_of_a_sample_are_the_executions_of_one_exploration(course: Of) -> None:
    whole = course("test_many").run({}, 1_200)
    sliced = course("test_many")
    for executions in (200, 300, 700):
        done = sliced.explored(executions, None)
    assert (done.executions, done.seed) == (1_200, 0)
    assert done.statistics["classes"] == whole.statistics["classes"] > 200
    assert sorted(done.classes) == sorted(whole.classes)
    assert done.statistics["executions"] == 1_200
    assert done.statistics["longest"] == whole.statistics["longest"]
    again = sliced.explored(1_200, None)
    assert again.statistics["classes"] < 2 * whole.statistics["classes"]
    assert sliced.new == again.statistics["classes"] - whole.statistics["classes"]


@pytest.mark.parametrize(("strategy", "executions"), [("exhaust", 1), ("preemptions", 9)])
def test_slices_of_a_search_are_its_parts_and_end(
    course: Of, strategy: str, executions: int
) -> None:
    whole = course("test_few", strategy=strategy).run({}, 100_000)
    sliced = course("test_few", strategy=strategy)
    slices = 0
    while not sliced.ended:
        sliced.explored(executions, None)
        slices += 1
    assert sliced.done is not None and whole.exhausted
    assert slices > 1 and sliced.done.exhausted == whole.exhausted
    assert sliced.done.executions == whole.executions
    assert sliced.done.statistics["classes"] == whole.statistics["classes"]
    sliced.go_on(0.01)
    assert sliced.last is None


def test_a_known_failure_hides_no_new_one(course: Of) -> None:
    assert found(course("test_two").run({}, 1_000)).kind == "data race"
    done = course("test_two", is_race).run({}, 1_000)
    assert found(done).kind == "assertion"
    (met,) = done.met
    assert met.failure.kind == "data race"
    assert met.at <= met.executions < done.executions < 1_000


def test_a_known_failure_alone_is_the_result_of_all_executions(
    course: Of, source: TestSource, subjects: dict[str, Subject]
) -> None:
    one = course("test_race", is_race)
    done = one.run({}, 300)
    assert (found(done).kind, done.executions) == ("data race", 300)
    (met,) = done.met
    assert 0 < met.executions <= 300 and not one.ended
    result = finish_test(SOURCE, source.tests[0], subjects["test_race"], done)
    assert result.describe() == (
        f"data race at execution {met.at} of seed 0; {met.executions} executions of 300 ended in a "
        "known failure (data race)"
    )
    search = course("test_race", is_race, strategy="preemptions")
    assert found(search.run({}, 300)).kind == "data race"  # a search ends: it would prove nothing
    assert search.ended and search.done is not None and not search.done.met


def test_an_end_is_set_to_executions_of_known_failures(
    course: Of, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "MOST_MET", 20)
    one = course("test_race", is_race)
    done = one.run({}, 1_000)
    assert one.ended and done.executions < 1_000
    assert passing.met_words(done.met, done.executions).endswith("no more were made behind them")


def test_a_known_end_of_the_process_hides_no_new_failure(course: Of) -> None:
    def is_crash(failure: Failure) -> bool:
        return failure.ended_process

    done = course("test_crash", is_crash, strategy="random").run({}, 3_000)
    assert found(done).kind == "assertion"
    assert sum(met.executions for met in done.met) >= 1
    assert all(met.failure.ended_process for met in done.met)
    always = course("test_always", is_crash, strategy="random")
    done = always.run({}, 3_000)
    assert always.ended and sum(met.executions for met in done.met) == MOST_CRASHES
    learning = course("test_always", is_crash)  # a portfolio learns first, and ends there each time
    assert found(learning.run({}, 3_000)).ended_process and learning.ended


def found(done: Exploration) -> Failure:
    assert done.failure is not None
    return done.failure
