"""The core's own weak-memory bugs: the engine finds each with each of three seeds in mode c11,
what they do cannot be seen in mode sc, and the true core is silent. What the engine found in the
core stays fixed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pulsar_ml.campaign.trial.controlled import program_of
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.sandbox import call
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.suites.registry import SUITES
from stress.mutants.catalogue import CATALOGUE, Mutant
from stress.mutants.hunting import HUNTED, SEEDS, SHRINKING, find, hunt, mutants, size

KNOWN = {mutant.id: mutant for mutant in CATALOGUE}
NAMES = [mutant.id for mutant in HUNTED]
# Only a model of the answers sees these; the others break an invariant.
ANSWERED = {"AK14", "AK16", "DD06", "DD08", "DD10", "A01", "A02", "A03", "A04", "A05"}
WEAK = [mutant.id for mutant in HUNTED if mutant.mode == "c11"]
SOON = 5_000  # executions
SOME = SEEDS[:3]  # the table of hunts has them all
MOST_OPERATIONS = 6


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    """Builds before the children whose time is limited."""
    mutants()


@contextmanager
def active(mutant: Mutant | None) -> Iterator[None]:
    mutants().select_mutant(mutant.id if mutant else None)
    try:
        yield
    finally:
        mutants().select_mutant(None)


@pytest.mark.parametrize("name", NAMES)
def test_each_seed_finds_the_mutant_in_mode_c11(name: str) -> None:
    def smallest(shrinking: int) -> dict[str, int]:
        found = call(
            lambda: find(KNOWN[name], judged=name in ANSWERED, seeds=SOME, shrinking=shrinking)
        )
        assert None not in found.executions
        assert found.smallest is not None
        return size(found.smallest)

    measures = smallest(SOON)
    if measures["operations"] > MOST_OPERATIONS:  # few failures need the usual budget
        measures = smallest(SHRINKING)
    assert 1 <= measures["threads"] <= 3
    assert measures["operations"] <= MOST_OPERATIONS


def hunted_in_mode_sc(name: str) -> list[str]:
    mutant = KNOWN[name]
    with active(mutant):
        found = [
            hunt(mutants(), mutant, seed=seed, mode="sc", budget=mutant.within, races=False)
            for seed in SOME
        ]
    return [done.failure.message for done in found if done.failure is not None]


@pytest.mark.parametrize("name", WEAK)
def test_what_a_weak_mutant_does_is_invisible_in_mode_sc(name: str) -> None:
    # The race detector judges by the orders in the source, so it may report them in every mode.
    assert call(lambda: hunted_in_mode_sc(name)) == []


@pytest.mark.parametrize("name", ["M01", "M02", "M09e"])
def test_a_missing_fence_between_atomics_shows_in_mode_sc_in_no_way(name: str) -> None:
    with active(KNOWN[name]):
        done = hunt(mutants(), KNOWN[name], seed=0, mode="sc", budget=3 * KNOWN[name].within)
    assert done.failure is None, done.failure.message


def hunts_that_differ() -> list[str]:
    """Mutants hunted in the same programs share them: the one with the largest budget stands for
    all.
    """
    largest: dict[str, Mutant] = {}
    for mutant in HUNTED:
        key = repr((mutant.suite, mutant.programs, mutant.calls, mutant.settings))
        if key not in largest or largest[key].within < mutant.within:
            largest[key] = mutant
    return [mutant.id for mutant in largest.values()]


@pytest.mark.parametrize("name", hunts_that_differ())
def test_the_true_core_is_silent_over_twice_the_budget(name: str) -> None:
    with active(None):
        done = hunt(mutants(), KNOWN[name], seed=0, mode="c11", budget=2 * KNOWN[name].within)
    assert done.failure is None, done.failure.message


@pytest.mark.parametrize("mode", ["sc", "c11"])
def test_a_double_release_never_shrinks_to_a_leak_of_nothing(mode: str) -> None:
    def work() -> list[tuple[str, int]]:
        found = []
        suite = SUITES["range_cache"]
        subject = mutants().SUBJECTS[suite.subject]
        with active(KNOWN["H02"]):
            for seed in range(0, 100, 20):
                program = program_of(subject, suite, seed, TrialOptions())
                done = explore(subject, program, executions=2_000, seed=seed, mode=mode)
                if done.failure is None:
                    continue
                small = shrink(done.failure, subject, budget=5_000)
                assert small.signature == done.failure.signature
                found.append((small.kind, size(small)["operations"]))
        return found

    found = call(work)
    assert len(found) >= 3
    assert all(kind != "leak" and operations >= 1 for kind, operations in found), found
