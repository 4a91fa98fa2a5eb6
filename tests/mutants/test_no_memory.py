"""Allocations that fail: every suite's model allows what the core answers, and no mistake more."""

from __future__ import annotations

from functools import cache
from types import ModuleType

import pytest

from pulsar_ml.campaign.trial.controlled import load_checked, program_of
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import CHECKED, TrialOptions, load_native, select_mutant
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.sandbox import call
from pulsar_ml.suites.registry import SUITES
from stress.mutants.build import ROOT, build
from stress.mutants.catalogue import Mutant
from tests.mutants.memory_mutants import MUTANTS

FAULTS = ("no_memory",)
SEEDS = 6  # programs of each suite on the true core
MOST_SEEDS = 60  # programs in which a mutant must be found
EXECUTIONS = 500


def search(module: ModuleType, suite: Suite, seeds: int, faults: tuple[str, ...]) -> Failure | None:
    """Return the first failure of the suite's programs."""
    subject = module.SUBJECTS[suite.subject]
    for seed in range(seeds):
        done = explore(
            subject,
            program_of(subject, suite, seed, TrialOptions()),
            executions=EXECUTIONS,
            seed=seed,
            faults=faults,
            reuse="mixed",
            judge=judge_of(suite.model),
        )
        if done.failure is not None:
            return done.failure
    return None


@pytest.mark.parametrize("name", sorted(SUITES))
@pytest.mark.parametrize("mode", ["sc", "c11"])
def test_the_true_core_is_silent(name: str, mode: str) -> None:
    suite = SUITES[name]

    def work() -> str:
        subject = load_native(CHECKED).SUBJECTS[suite.subject]
        for seed in range(SEEDS):
            done = explore(
                subject,
                program_of(subject, suite, seed, TrialOptions()),
                executions=EXECUTIONS,
                seed=seed,
                mode=mode,
                faults=FAULTS,
                reuse="mixed",
                judge=judge_of(suite.model),
            )
            if done.failure is not None:
                return f"{done.failure.kind} {done.failure.rule}: {done.failure.message}"
        return ""

    assert call(work) == ""


@cache
def mutants() -> ModuleType:
    path = build(ROOT / "build" / "memory_mutants", MUTANTS, checked=True)
    return load_checked(str(path))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_a_mistake_without_memory_is_found(mutant: Mutant) -> None:
    module, suite = mutants(), SUITES[mutant.suite]

    def work() -> tuple[bool, bool]:
        select_mutant(module, mutant.id)
        with_fault = search(module, suite, MOST_SEEDS, FAULTS)
        without = search(module, suite, SEEDS, ())
        return with_fault is not None, without is not None

    assert call(work) == (True, False)
