"""Allocations that fail: every suite's model allows what the core answers, and no mistake more."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from pulsar_ml.campaign.trial.controlled import program_of
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import CHECKED, TrialOptions, load_native, select_mutant
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.sandbox import call
from pulsar_ml.suites.registry import SUITES
from stress.mutants.catalogue import WITHOUT_MEMORY, Mutant
from stress.mutants.hunting import mutants

FAULTS = ("no_memory",)
SEEDS = 6  # programs of each suite on the true core
MOST_SEEDS = 60  # programs in which a mutant must be found
EXECUTIONS = 500


# Those that a pool at its limit shows, too.
FULL_POOLS = {"N03"}


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


EVERY_FAULT = ("no_memory", "weak_failure", "spurious", "timeout")


@pytest.mark.parametrize(
    ("name", "seeds", "options"),
    [
        # A read met a fill that found no place in the queue and emptied its slot again.
        ("entry_wrapper", range(84000, 84020), {"threads": 3, "faults": FAULTS}),
        # A wrapper that was emptied before a pass without memory gave it up was counted nowhere.
        ("cache_manager", range(900104, 900105), {"threads": 2, "faults": FAULTS, "mode": "c11"}),
        # A thread that waited for its turn to look again was forgotten, and its end was reported
        # as a livelock.
        (
            "range_cache",
            range(72002, 72003),
            {"threads": 3, "faults": EVERY_FAULT, "mode": "tso", "strategy": "pct"},
        ),
    ],
)
def test_what_was_wrongly_reported_is_silent(
    name: str, seeds: range, options: dict[str, Any]
) -> None:
    suite = SUITES[name]
    threads = options.pop("threads")

    def work() -> str:
        subject = load_native(CHECKED).SUBJECTS[suite.subject]
        for seed in seeds:
            done = explore(
                subject,
                program_of(subject, suite, seed, TrialOptions(threads=threads)),
                executions=EXECUTIONS,
                seed=seeds.start,
                reuse="mixed",
                judge=judge_of(suite.model),
                **options,
            )
            if done.failure is not None:
                return f"{done.failure.kind} {done.failure.rule}: {done.failure.message}"
        return ""

    assert call(work) == ""


@pytest.mark.parametrize("mutant", WITHOUT_MEMORY, ids=lambda mutant: mutant.id)
def test_a_mistake_without_memory_is_found(mutant: Mutant) -> None:
    module, suite = mutants(), SUITES[mutant.suite]
    size = suite.controlled
    suite = replace(suite, controlled=replace(size, settings={**size.settings, **mutant.settings}))

    def work() -> tuple[bool, bool]:
        select_mutant(module, mutant.id)
        with_fault = search(module, suite, MOST_SEEDS, FAULTS)
        seeds = MOST_SEEDS if mutant.id in FULL_POOLS else SEEDS
        without = search(module, suite, seeds, ())
        return with_fault is not None, without is not None

    assert call(work) == (True, mutant.id in FULL_POOLS)
