"""A known race is passed over by its place, counted, and hides no other one."""

from __future__ import annotations

import pytest

from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.search.symbols import bare_name
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from tests.engine.locks.test_locks import COMPILERS, built

EXECUTIONS = 2_000


def subject_of(name: str) -> tuple[Subject, Program]:
    native = built("owned", COMPILERS[0])
    subject = native.SUBJECTS[name]
    return subject, Program.generate(subject, 0, threads=2, operations=1, noise=False)


def search(name: str, *suppress: str, strategy: str = "portfolio") -> Exploration:
    subject, program = subject_of(name)
    return explore(
        subject, program, executions=EXECUTIONS, seed=1, strategy=strategy, suppress=suppress
    )


def race_of(name: str, *suppress: str) -> Failure:
    failure = search(name, *suppress).failure
    assert failure is not None
    assert failure.kind == "data race"
    return failure


@pytest.mark.parametrize("strategy", ["portfolio", "random", "preemptions", "delays"])
def test_a_function_suppresses_its_race_and_the_report_counts(strategy: str) -> None:
    assert race_of("known_race").where[0].startswith("counts_hits ")
    done = search("known_race", "counts_hits", strategy=strategy)
    assert done.verdict == "clean", done.failure
    assert done.statistics["suppressed"] >= done.executions > 1
    if strategy in ("preemptions", "delays"):
        assert done.exhausted
    else:
        assert done.executions == done.statistics["executions"] == EXECUTIONS


def test_a_line_suppresses_its_race() -> None:
    where = race_of("known_race").where[0].split()[-1]
    assert search("known_race", where).verdict == "clean"
    file, _, line = where.rpartition(":")
    assert search("known_race", f"{file}:{int(line) + 1}").verdict == "violation"


def test_another_name_suppresses_nothing() -> None:
    assert search("known_race", "counts", "hits", "counts_hits_too").verdict == "violation"


def test_the_race_behind_is_found_replayed_and_shrunk() -> None:
    found = race_of("known_race_and_more", "counts_hits")
    assert found.where[0].startswith("known_race_and_more_body ")
    assert found.suppress == ("counts_hits",)
    assert Failure.from_text(found.short()) == found
    subject, _ = subject_of("known_race_and_more")
    assert found.replay(subject).exact
    small = shrink(found, subject)
    assert small.where == found.where
    assert small.replay(subject).exact


def test_a_race_of_an_atomic_and_a_plain_access_is_suppressed_by_either() -> None:
    found = race_of("known_race_of_atomics")
    for place in {where.split()[-1] for where in found.where}:
        assert search("known_race_of_atomics", place).verdict == "clean"


def test_what_one_campaign_suppresses_another_one_finds() -> None:
    subject, program = subject_of("known_race")
    quiet = Explorer(subject, program, suppress=("counts_hits",))
    assert quiet.run(0, 50) == 50
    loud = Explorer(subject, program)
    loud.run(0, 50)
    assert loud.failed()
    assert quiet.run(50, 50) == 50
    assert not quiet.failed()


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("push", "push"),
        ("Ring<int, 4u>::push(int const&)", "Ring::push"),
        ("void Ring<std::atomic<int> >::pop<true>() const", "Ring::pop"),
        ("a::(anonymous namespace)::f(int)::{lambda(int)#1}::operator()(int) const", "a::::f::"),
    ],
)
def test_a_name_is_bare(function: str, name: str) -> None:
    assert bare_name(function).startswith(name)
