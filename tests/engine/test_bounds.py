"""The claims of a run hold: exhausted, within which bounds, and how likely PCT missed a bug."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from pulsar_ml.errors import LimitsError, NondeterminismError, UsageError
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.interleave import interleave
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.subjects.program import Program
from tests import ROOT
from tests.engine.programs.build_programs import explorer, program_of, programs


def searched(
    name: str, *, bound: int = 20, executions: int = 200_000, **options: Any
) -> Exploration:
    done = explore(
        programs().SUBJECTS[name],
        program_of(name),
        executions=executions,
        strategy="preemptions",
        bound=bound,
        **options,
    )
    assert done.failure is None
    return done


@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
@pytest.mark.parametrize("strategy", ["preemptions", "delays"])
def test_a_search_that_left_nothing_out_is_complete(mode: str, strategy: str) -> None:
    done = explore(
        programs().SUBJECTS["seven_stores"],
        program_of("seven_stores"),
        executions=200_000,
        strategy=strategy,
        bound=20,
        mode=mode,
    )
    assert done.exhausted == "completely"


@pytest.mark.parametrize(
    ("name", "options", "bound"),
    [
        ("ticket_2_fixed", {"mode": "sc", "bound": 1}, "preemption bound 1, spin bound 2"),
        ("nine_stores", {"mode": "c11"}, "8 stores remembered of a location"),
        (
            "two_widths",
            {"mode": "c11", "races": False},
            "stores forgotten at an access of another width or kind",
        ),
        ("seven_stores", {"mode": "c11", "stores": 4}, "4 stores remembered of a location"),
        (
            "polls_fixed",
            {"mode": "sc", "bound": 1, "spins": 64, "turns": 3},
            "preemption bound 1, 3 turns of loops in an operation",
        ),
        (
            "nine_stores",
            {"mode": "tso", "bound": 0},
            "preemption bound 0, 8 stores in a thread's buffer",
        ),
    ],
)
def test_a_search_states_the_bound_that_left_something_out(
    name: str, options: dict[str, Any], bound: str
) -> None:
    assert searched(name, **options).exhausted == f"within the stated bounds: {bound}"


def test_enough_stores_make_a_search_complete() -> None:
    assert searched("nine_stores", mode="c11", stores=10).exhausted == "completely"


def test_a_store_that_nobody_could_read_any_more_is_not_missed() -> None:
    assert searched("nine_stores_alone", mode="c11", stores=3).exhausted == "completely"


@pytest.mark.parametrize(("stores", "oldest"), [(8, 4), (10, 2), (11, 1), (64, 1)])
def test_a_load_reads_as_far_back_as_the_location_remembers(stores: int, oldest: int) -> None:
    programs().outcomes("first_of_eleven")
    done = searched("first_of_eleven", mode="c11", stores=stores)
    seen = set(programs().outcomes("first_of_eleven")) - {0}
    assert seen == set(range(oldest, 12))
    left_out = f"within the stated bounds: {stores} stores remembered of a location"
    assert done.exhausted == ("completely" if oldest == 1 else left_out)


def test_every_seed_of_a_sampler_names_the_stores_that_were_forgotten() -> None:
    subject, program = programs().SUBJECTS["first_of_eleven"], program_of("first_of_eleven")
    for seed in range(20):
        few = explore(subject, program, executions=500, seed=seed)
        assert few.bounds["8 stores remembered of a location"] > 0
        assert explore(subject, program, executions=500, seed=seed, stores=11).bounds == {}
    found = interleave(subject, program=program, executions=500)
    assert "8 stores remembered of a location" in found.describe()


@pytest.mark.parametrize("stores", [2, 65])
def test_a_number_of_stores_out_of_range_is_refused(stores: int) -> None:
    with pytest.raises(UsageError, match=f"3 to 64 stores, not {stores}"):
        explorer("seven_stores", stores=stores)


def test_a_failure_replays_with_the_stores_that_it_was_found_with() -> None:
    subject = programs().SUBJECTS["first_is_broken"]
    program = program_of("first_is_broken")
    assert explore(subject, program, executions=5_000, stores=8).failure is None
    found = explore(subject, program, executions=5_000, stores=12).failure
    assert found is not None and found.stores == 12
    assert found.replay(subject).exact
    small = shrink(found, subject)
    assert small.stores == 12 and small.replay(subject).exact
    assert Failure.from_text(small.short()) == small
    assert not dataclasses.replace(found, stores=8).replay(subject).exact


def test_an_execution_cut_by_the_step_limit_is_a_bound_too() -> None:
    subject = programs().SUBJECTS["bench_store_load"]
    program = Program.generate(subject, 0, threads=2, operations=6, noise=False)
    done = explore(
        subject,
        program,
        executions=200_000,
        strategy="preemptions",
        bound=1,
        mode="sc",
        step_limit=20,
    )
    assert done.failure is None and done.statistics["cut"] == done.executions
    assert done.exhausted == "within the stated bounds: preemption bound 1, step limit 20"


def test_a_search_ends_and_is_not_begun_again() -> None:
    done = searched("seven_stores", mode="sc")
    assert done.executions < 100


def test_a_search_takes_both_policies_of_the_allocator() -> None:
    alone = searched("race_release_fixed", mode="sc", reuse="quarantine")
    both = searched("race_release_fixed", mode="sc", reuse="mixed")
    assert alone.exhausted == both.exhausted == "completely"
    assert both.executions == 2 * alone.executions


def test_a_sampler_exhausts_nothing() -> None:
    done = explore(
        programs().SUBJECTS["seven_stores"], program_of("seven_stores"), executions=1_000
    )
    assert done.exhausted == ""


def test_a_program_that_is_too_large_has_no_verdict() -> None:
    with pytest.raises(LimitsError, match="use a smaller program"):
        explore(programs().SUBJECTS["too_large"], program_of("too_large"), executions=10)


@pytest.mark.parametrize("strategy", ["preemptions", "random"])
def test_what_the_engine_does_not_decide_is_an_error(strategy: str) -> None:
    with pytest.raises(NondeterminismError):
        explore(
            programs().SUBJECTS["uncontrolled"],
            program_of("uncontrolled"),
            executions=10_000,
            strategy=strategy,
            races=False,
        )


@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
def test_an_execution_that_failed_leaves_no_static_lock_held(mode: str) -> None:
    subject, program = programs().SUBJECTS["static_lock_left_out"], program_of("static_lock_fixed")
    wrong = dataclasses.replace(program, subject=subject.name)
    for seed in range(20):
        found = explore(subject, wrong, executions=1_000, seed=seed, mode=mode).failure
        assert found is not None and found.kind == "data race", found
        assert found.replay(subject).exact
        done = explore(
            programs().SUBJECTS["static_lock_fixed"], program, executions=100, seed=seed, mode=mode
        )
        assert done.verdict == "clean", done.failure


def test_the_bound_of_pct_is_the_published_one() -> None:
    done = explore(
        programs().SUBJECTS["seven_stores"],
        program_of("seven_stores"),
        executions=500,
        strategy="pct",
        depth=2,
    )
    counts = done.statistics
    assert (counts["pct_1"], counts["pct_2"], counts["pct_3"]) == (0, 500, 0)
    assert (counts["threads"], counts["pct_steps"]) == (2, 8)
    assert done.missed(2) == pytest.approx((1 - 1 / (2 * 8)) ** 500)
    assert done.missed(1) == done.missed(3) == 1.0, "no execution had that depth"


def test_the_bound_of_pct_counts_only_what_it_was_given() -> None:
    subject, program = programs().SUBJECTS["seven_stores"], program_of("seven_stores")
    portfolio = explore(subject, program, executions=5_000).statistics
    assert 0 < portfolio["pct_1"] < portfolio["pct_2"] and portfolio["pct_3"] < 1_000
    assert explore(subject, program, executions=500, strategy="pos").missed(1) == 1.0


def test_pct_finds_what_its_bound_promises() -> None:
    # 100 seeds with N executions each, enough that a miss has a probability of 5 % at most.
    subject, program = programs().SUBJECTS["ticket_2"], program_of("ticket_2")
    missed = 0
    for seed in range(100):
        done = explore(
            subject, program, executions=4_000, seed=seed, strategy="pct", depth=3, mode="sc"
        )
        missed += done.failure is None
        if done.failure is None:
            assert done.missed(3) < 0.05
    assert missed <= 5


STRATEGIES = ("random", "pct", "pos", "surw", "portfolio", "delays")


@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_store_that_is_waited_for_arrives(strategy: str, mode: str) -> None:
    for name, kind in (("handshake", None), ("handshake_once", "livelock")):
        done = explore(
            programs().SUBJECTS[name],
            program_of(name),
            executions=1_000,
            mode=mode,
            strategy=strategy,
            seed=4,
        )
        assert (done.failure and done.failure.kind) == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [("judge_waits", "livelock"), ("judge_spins", "endless loop"), ("plain_spin", "endless loop")],
)
def test_a_wait_that_has_no_end_ends_the_execution(name: str, kind: str) -> None:
    runs = explorer(name, mode="c11", races=False)
    runs.run(0, 10)
    assert runs.end() == kind
    assert runs.statistics()["executions"] == 1


def test_the_trace_of_a_loop_of_plain_accesses_is_bounded() -> None:
    for _ in range(2):
        runs = explorer("plain_spin", mode="c11", races=False)
        runs.again(0)
        assert runs.end() == "endless loop"
        operations = [one["op"] for one in runs.trace()]
        assert operations == ["call", *["read"] * (len(operations) - 1)]
        assert len(operations) - (1 << 16) in (1, 2)  # the signal may come before the last


# docs/engine.md, Limits, names these numbers.
@pytest.mark.parametrize(
    ("name", "mode", "bound", "spins", "executions"),
    [
        ("spins_with_pause_fixed", "c11", 2, 2, 44_208),
        ("spins_by_load_fixed", "c11", 2, 0, 14_634),
        ("spins_by_load_fixed", "c11", 2, 2, 1_331_034),
        ("mcs_lock_of_three_fixed", "sc", 2, 2, 5_202),
        ("mcs_lock_of_three_fixed", "c11", 1, 2, 5_796),
        ("mcs_lock_of_three_fixed", "tso", 1, 0, 2_526_948),
    ],
)
def test_searches_of_spinning_locks_end_where_the_page_says(
    name: str, mode: str, bound: int, spins: int, executions: int
) -> None:
    done = searched(name, bound=bound, mode=mode, spins=spins, executions=executions + 1)
    assert done.executions == executions
    assert done.exhausted
    assert f"{executions:,}" in (ROOT / "docs/engine.md").read_text()


def test_answers_alone_are_not_searched_behind_an_execution_without_end() -> None:
    done = explore(
        programs().SUBJECTS["plain_spin"],
        program_of("plain_spin"),
        executions=100,
        races=False,
        answers_only=True,
    )
    assert done.failure is None
    assert done.executions < 20
