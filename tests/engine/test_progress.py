"""Lock-freedom on request: a thread that is held back must not stop the others."""

from __future__ import annotations

import pytest

from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.shrink import shrink
from tests.engine.programs.build_programs import explorer, program_of, programs

BUDGET = 2_000
BLOCKING = ("michael_scott", "spin_lock_stack", "mutex_stack")
LOCK_FREE = ("michael_scott_fixed", "lock_free_stack_fixed", "increments_3")


@pytest.mark.parametrize("name", BLOCKING)
@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
def test_every_seed_finds_what_a_held_thread_stops(name: str, mode: str) -> None:
    for seed in range(20):
        runs = explorer(name, mode=mode, seed=seed, lock_free=True)
        runs.run(0, BUDGET)
        assert runs.end() == "not lock-free", seed


@pytest.mark.parametrize("name", BLOCKING)
def test_nothing_is_said_unless_it_was_asked_for(name: str) -> None:
    runs = explorer(name, mode="c11")
    assert runs.run(0, BUDGET) == BUDGET


@pytest.mark.parametrize("name", LOCK_FREE)
@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
def test_a_lock_free_structure_stays_silent(name: str, mode: str) -> None:
    runs = explorer(name, mode=mode, lock_free=True)
    assert runs.run(0, 20_000) == 20_000, runs.failure()["message"]
    assert runs.statistics()["cut"] == 0


@pytest.mark.parametrize(("name", "fails"), [("michael_scott", True), ("increments_3", False)])
def test_a_search_holds_each_thread_at_each_step(name: str, fails: bool) -> None:
    runs = explorer(name, mode="sc", strategy="preemptions", bound=1, lock_free=True)
    runs.run(0, 100_000)
    assert runs.failed() == fails
    assert fails or runs.statistics()["exhausted"]


def test_a_report_names_the_held_thread_and_where_the_others_are() -> None:
    subject = programs().SUBJECTS["michael_scott"]
    found = explore(
        subject, program_of("michael_scott"), executions=BUDGET, mode="sc", seed=1, lock_free=True
    ).failure
    assert found is not None and found.kind == "not lock-free"
    assert "is held back, and the others cannot end without it" in found.message
    assert found.message.count("michael_scott_body programs/progress.h:") >= 2
    assert found.replay(subject).exact
    assert shrink(found, subject).kind == "not lock-free"
