"""Loops that wait: each bug behind a pause is found by every seed, each fixed twin stays silent,
and a search names the bound that its pauses met.
"""

from __future__ import annotations

import pytest

from pulsar_ml.harness.search.explore import Exploration, explore
from tests.engine.programs.build_programs import explorer, program_of, programs

SEEDS = range(20)
BUDGET = 3_000  # executions; every seed needs fewer
MODES = ("sc", "tso", "c11")

# program: kind of failure, the modes that show it, the turns that a search must let go on, None:
# never.
WRONG: dict[str, tuple[str, tuple[str, ...], int | None]] = {
    "retried": ("invariant", MODES, 1),
    "four_turns": ("deadlock", MODES, 4),
    "monitor": ("deadlock", MODES, None),  # 64 turns: more than a search can afford
    "sleeping_lock": ("deadlock", MODES, None),
    "sleeping_lock_silent": ("deadlock", MODES, 0),
    "behind_a_pause": ("invariant", ("c11",), 1),
    "backs_off_torn": ("data race", MODES, 0),
    "backs_off_kept": ("livelock", MODES, 0),
    "ticket_backoff": ("data race", MODES, 0),
    "queue_lock": ("data race", MODES, 0),
    "spins_by_exchange": ("data race", MODES, 0),
    "spins_by_load": ("data race", MODES, 0),
    "sleeps_for_data": ("invariant", MODES, 1),
    "sleeps_for_nothing": ("livelock", MODES, 0),
}
# The fixed twins, and what else is right: searches of them that end within a while.
SEARCHED = {
    "retried_fixed": MODES,
    "four_turns_fixed": MODES,
    "monitor_fixed": MODES,
    "sleeping_lock_fixed": MODES,
    "sleeping_lock_silent_fixed": MODES,
    "behind_a_pause_fixed": MODES,
    "backs_off_fixed": MODES,
    "ticket_backoff_fixed": ("sc", "c11"),
    "queue_lock_fixed": ("sc", "c11"),
    "holder_sleeps_fixed": MODES,
    "holder_spins_fixed": MODES,
    "spins_by_exchange_fixed": MODES,
    "spins_by_load_fixed": ("sc", "tso"),
    "polls_and_counts_fixed": MODES,
    "sleeps_for_data_fixed": MODES,
    "polls_fixed": MODES,
}


def searched(name: str, mode: str, spins: int, bound: int = 2) -> Exploration:
    return explore(
        programs().SUBJECTS[name],
        program_of(name),
        executions=300_000,
        strategy="preemptions",
        mode=mode,
        bound=bound,
        spins=spins,
    )


@pytest.mark.parametrize("name", WRONG)
def test_every_seed_finds_the_bug_behind_a_wait(name: str) -> None:
    kind, modes, _ = WRONG[name]
    for mode in modes:
        for seed in SEEDS:
            runs = explorer(name, mode=mode, seed=seed)
            runs.run(0, BUDGET)
            assert runs.end() == kind, (mode, seed)


@pytest.mark.parametrize("name", WRONG)
def test_a_failure_behind_a_wait_replays_step_by_step(name: str) -> None:
    subject = programs().SUBJECTS[name]
    found = explore(subject, program_of(name), executions=BUDGET, seed=3).failure
    assert found is not None
    assert found.replay(subject).exact


@pytest.mark.parametrize("name", [name for name, (_, _, turns) in WRONG.items() if turns])
def test_a_search_finds_the_bug_with_as_many_turns_as_it_needs(name: str) -> None:
    kind, modes, turns = WRONG[name]
    assert turns is not None
    short, enough = (searched(name, modes[0], spins) for spins in (turns - 1, turns))
    assert short.failure is None
    assert f"spin bound {turns - 1}" in short.exhausted
    assert enough.failure is not None and enough.failure.kind == kind


@pytest.mark.parametrize("name", ["monitor", "sleeping_lock"])
def test_a_search_that_cannot_find_the_bug_does_not_say_completely(name: str) -> None:
    done = searched(name, "c11", 2, bound=20)
    assert done.failure is None
    assert done.exhausted == "within the stated bounds: spin bound 2"


@pytest.mark.parametrize(("name", "modes"), SEARCHED.items())
def test_a_search_of_a_right_program_ends(name: str, modes: tuple[str, ...]) -> None:
    for mode in modes:
        done = searched(name, mode, 2)
        assert done.failure is None
        assert done.exhausted, (mode, done.executions)


def test_a_pause_may_be_short_and_may_be_long() -> None:
    for strategy in ("preemptions", "random", "portfolio"):
        runs = explorer("pause_between", mode="sc", strategy=strategy, bound=20)
        programs().outcomes("pause_between")
        runs.run(0, 2_000)
        assert set(programs().outcomes("pause_between")) == {0, 1, 2}


def test_a_wait_without_choices_left_is_complete() -> None:
    done = searched("retried_fixed", "c11", 2)
    assert done.exhausted == "completely"


@pytest.mark.parametrize("strategy", ["random", "pct", "pos", "surw", "delays", "preemptions"])
@pytest.mark.parametrize(
    "name", ["holder_sleeps_fixed", "holder_spins_fixed", "spins_by_exchange_fixed"]
)
def test_spinning_threads_do_not_starve_the_one_they_wait_for(name: str, strategy: str) -> None:
    for mode in MODES:
        runs = explorer(name, mode=mode, strategy=strategy, bound=1)
        runs.run(0, 2_000)
        assert not runs.failed(), (mode, runs.failure()["message"])
        assert runs.statistics()["cut"] == 0
