"""Answers that are wrong only beside other calls are seen by the model of the suite, and by nothing
else.
"""

from __future__ import annotations

import dataclasses

import pytest

from pulsar_ml.campaign.trial.suite import ControlledSize
from pulsar_ml.harness.search.failure import WRONG_ANSWERS
from stress.mutants.catalogue.concurrent_answers import MUTANTS
from stress.mutants.catalogue.mutant import Mutant
from stress.mutants.hunting import SEEDS, hunt, mutants

# A pass over what another call emptied before it is wrong on one thread as well.
ALONE_TOO = frozenset({"AE1"})
LEAST = 200


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_the_model_sees_it_and_nothing_else_does(mutant: Mutant) -> None:
    module = mutants()
    module.select_mutant(mutant.id)
    try:
        found = [
            hunt(
                module,
                mutant,
                seed=seed,
                mode="c11",
                budget=mutant.executions,
                explained=False,
            )
            for seed in SEEDS[:3]
        ]
        most = max(LEAST, *(one.executions for one in found))
        unseen = hunt(module, mutant, seed=SEEDS[0], mode="c11", budget=most, judged=False)
    finally:
        module.select_mutant(None)
    assert {one.failure.kind if one.failure else "" for one in found} == {WRONG_ANSWERS}
    assert unseen.failure is None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_the_true_core_is_silent_in_the_same_programs(mutant: Mutant) -> None:
    done = hunt(mutants(), mutant, seed=SEEDS[0], mode="c11", budget=mutant.executions)
    assert done.failure is None, done.failure.message


@pytest.mark.parametrize(
    "mutant",
    [mutant for mutant in MUTANTS if mutant.id not in ALONE_TOO],
    ids=lambda mutant: mutant.id,
)
def test_one_thread_gets_right_answers(mutant: Mutant) -> None:
    module = mutants()
    size = ControlledSize(threads=(1, 1), operations=(12, 20), mix=mutant.programs.mix)
    alone = dataclasses.replace(mutant, programs=size, calls=mutant.calls[:1])
    module.select_mutant(mutant.id)
    try:
        assert hunt(module, alone, seed=1, mode="c11", budget=LEAST).failure is None
    finally:
        module.select_mutant(None)
