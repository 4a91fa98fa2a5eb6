"""Failures that the engine found in the core, each with its program: silent now, and found again in
the mutant that undoes the fix.
"""

from __future__ import annotations

import pytest

from pulsar_ml.campaign.trial.controlled import program_of
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.suites.registry import SUITES
from stress.mutants.catalogue import CATALOGUE
from stress.mutants.hunting import hunt, mutants

SETTINGS = {"limit": (8, 128), "chunk_bits": (0, 1), "spread": (0, 2)}
MIX = {
    "put": 5,
    "remove": 9,
    "find": 4,
    "put_own": 4,
    "remove_own": 7,
    "find_own": 8,
    "remove_foreign": 1,
    "iterate": 2,
    "iterate_all": 1,
}


def run(seed: int, executions: int) -> Exploration:
    subject = mutants().SUBJECTS["position_map"]
    program = Program.generate(
        subject,
        seed,
        threads=2 + seed % 2,
        operations=3 + seed % 4,
        mix=MIX,
        settings=SETTINGS,
        noise=False,
    )
    return explore(
        subject,
        program,
        executions=executions,
        seed=seed,
        mode="c11",
        reuse="mixed",
        faults=("weak_failure", "spurious"),
    )


# A put took a reserved page (D01) or branch (D02) for the linked one because the label was right.
# It was one taken for the same ids again: not in the directory yet, so that the thread's own read
# missed what it had put (100075), or never to be, so that the position was lost (100167).
@pytest.mark.parametrize(
    ("seed", "mutant", "rule"),
    [(100171, "D01", "I7"), (100891, "D01", "I36"), (100075, "D02", "I7"), (100167, "D02", "I7")],
)
def test_a_put_goes_to_a_node_that_is_linked(seed: int, mutant: str, rule: str) -> None:
    mutants().select_mutant(mutant)
    try:
        failure = run(seed, 10_000).failure
    finally:
        mutants().select_mutant(None)
    assert failure is not None
    assert rule in failure.rule
    assert run(seed, 20_000).failure is None


# A clear by a stale handle met a churned incarnation under its key, which is linked nowhere: the
# oracle was wrong, not the wrapper.
@pytest.mark.parametrize("seed", [100161, 100907])
def test_a_stale_clear_leaves_a_churned_wrapper_alone(seed: int) -> None:
    subject = mutants().SUBJECTS["entry_wrapper"]
    settings = {"keys": (1, 4), "chunk_bits": (0, 1), "queue_chunk_bits": (2, 2)}
    program = Program.generate(
        subject, seed, threads=2 + seed % 2, operations=3 + seed % 4, settings=settings, noise=False
    )
    done = explore(
        subject,
        program,
        executions=20_000,
        seed=seed,
        mode="c11",
        reuse="mixed",
        faults=("weak_failure", "spurious"),
    )
    assert done.failure is None


# The check of a hit's mark followed the handle in a wrapper that another thread was filling, to an
# entry in memory that this thread had not acquired: the check was wrong, not the cache.
def test_the_check_of_a_mark_looks_at_the_entry_that_its_caller_holds() -> None:
    suite = SUITES["cache_manager"]
    subject = mutants().SUBJECTS[suite.subject]
    done = explore(
        subject,
        program_of(subject, suite, 2000061, TrialOptions(threads=3)),
        executions=500,
        seed=2000061,
        mode="c11",
        reuse="mixed",
    )
    assert done.failure is None


# A time pass of released_5 keeps what comes while it runs, and was held to the bound of a size
# pass: the check was wrong, not the policy.
def test_a_time_pass_may_keep_what_comes_while_it_runs() -> None:
    suite = SUITES["eviction_policy"]
    subject = mutants().SUBJECTS[suite.subject]
    done = explore(
        subject,
        program_of(subject, suite, 3100027, TrialOptions(threads=3)),
        executions=100,
        seed=3100027,
        mode="c11",
        reuse="mixed",
        faults=("no_memory",),
    )
    assert done.failure is None


# A task that could free nothing ended while the settings changed: the change found the task's
# marker set and left the eviction to it, and the task looked only for inserts (suite cache_manager,
# seed 7).
def test_a_change_of_settings_is_seen_by_the_task_that_it_is_left_to() -> None:
    mutant = next(one for one in CATALOGUE if one.id == "CM-change")
    mutants().select_mutant(mutant.id)
    try:
        failure = hunt(mutants(), mutant, seed=0, mode="c11", budget=mutant.within).failure
    finally:
        mutants().select_mutant(None)
    assert failure is not None
    assert failure.rule == "I63"
    assert hunt(mutants(), mutant, seed=0, mode="c11", budget=mutant.within).failure is None
