"""The core's own weak-memory bugs: the engine finds each with every seed in mode c11, what they do cannot be
seen in mode sc, and the true core is silent. What the engine found in the core stays fixed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from stress.mutants.catalogue import CATALOGUE, Mutant
from stress.mutants.engine import SEEDS, find, hunt, mutants, size
from stress.mutants.hunted import BUDGETS
from stress.registry import SUITES

KNOWN = {mutant.id: mutant for mutant in CATALOGUE}
WEAK = [name for name in BUDGETS if KNOWN[name].mode == "c11"]
# An atomic access that is not ordered after the plain zeroing of its memory is reported as a race in every
# mode, with or without the detector of plain races.
RACES_ANYWAY = {"M06", "M09b", "M09c"}


@contextmanager
def active(mutant: Mutant | None) -> Iterator[None]:
    mutants().select_mutant(mutant.id if mutant else None)
    try:
        yield
    finally:
        mutants().select_mutant(None)


@pytest.mark.parametrize("name", BUDGETS)
def test_every_seed_finds_the_mutant_in_mode_c11(name: str) -> None:
    found = find(KNOWN[name], budget=BUDGETS[name])
    assert None not in found.executions
    assert found.smallest is not None
    measures = size(found.smallest)
    assert measures["threads"] == 2
    assert measures["operations"] <= 6


@pytest.mark.parametrize("name", [name for name in WEAK if name not in RACES_ANYWAY])
def test_what_a_weak_mutant_does_is_invisible_in_mode_sc(name: str) -> None:
    # The race detector judges by the orders in the source, so it may report them in every mode.
    with active(KNOWN[name]):
        for seed in SEEDS:
            done = hunt(
                mutants(), SUITES[KNOWN[name].suite], seed=seed, mode="sc", budget=BUDGETS[name], races=False
            )
            assert done.failure is None, done.failure.message


@pytest.mark.parametrize("name", ["M01", "M02"])
def test_a_missing_fence_between_atomics_shows_in_mode_sc_in_no_way(name: str) -> None:
    with active(KNOWN[name]):
        done = hunt(mutants(), SUITES[KNOWN[name].suite], seed=0, mode="sc", budget=10 * BUDGETS[name])
    assert done.failure is None, done.failure.message


@pytest.mark.parametrize("suite", sorted({KNOWN[name].suite for name in BUDGETS}))
def test_the_true_core_is_silent_over_ten_times_the_budget(suite: str) -> None:
    budget = 10 * max(BUDGETS[name] for name in BUDGETS if KNOWN[name].suite == suite)
    with active(None):
        done = hunt(mutants(), SUITES[suite], seed=0, mode="c11", budget=budget)
    assert done.failure is None, done.failure.message
    assert done.executions == budget
