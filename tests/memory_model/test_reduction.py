"""The search with partial-order reduction: one execution of each class, and the same claims."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from pulsar_ml.campaign.local.exploring import SuiteExploration
from pulsar_ml.campaign.local.failures import checked_subject
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.search.partition import Left, reasons
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.subjects.program import Program
from tests.engine.locks.test_locks import built
from tests.engine.programs.build_programs import explorer, program_of, programs
from tests.memory_model.compare import compare_bounded, compare_faulty
from tests.memory_model.engine import explored
from tests.memory_model.engine import program_of as cells_program_of
from tests.memory_model.generator import program_of_seed
from tests.memory_model.litmus import DEADLOCK, Litmus, Outcome

# What GenMC expects of its own test programs, in SC and in RC11; between them, in TSO. Threads with
# nothing in common have one class.
MODES = ("sc", "tso", "c11")
CLASSES = {
    "sb_acq_rel": (3, 4, 4),
    "two_plus_two_w_relaxed": (3, 3, 4),
    **{f"increments_{n}": (math.factorial(n),) * 3 for n in range(2, 8)},
    **{f"locked_increments_{n}": (math.factorial(n),) * 3 for n in range(2, 8)},
    **{f"readers_{n}": (2**n,) * 3 for n in (2, 4)},
    "readers_8": (2**8, 0, 2**8),  # nine threads, more than mode tso reduces
    **{
        f"exchanges_{n}": (count,) * 3
        for n, count in zip(range(4, 8), (14, 43, 144, 523), strict=True)
    },
    "treiber_two_push_one_assumes": (18,) * 3,
    "queue_two_do_both_assumes": (50,) * 3,
    "apart_5": (1, 1, 1),
}
# And within 0, 1, 2... preemptions, in SC.
BOUNDED = {
    "treiber_two_push_one_assumes": (6, 14, 18),
    "queue_two_do_both_assumes": (2, 12, 28, 42, 48, 50),
}
MOST = 4_000  # executions of a search whose histories are compared
Histories = set[tuple[tuple[int, ...], ...]]


def reduced(name: str, *, mode: str = "sc", **options: Any) -> Exploration:
    subject = programs().SUBJECTS[name]
    options = {"executions": 100_000, "strategy": "reduce", **options}
    return explore(subject, program_of(name), mode=mode, **options)


@pytest.mark.parametrize(
    ("name", "mode", "classes"),
    [
        (name, mode, count)
        for name, counts in CLASSES.items()
        for mode, count in zip(MODES, counts, strict=True)
        if count
    ],
)
def test_each_class_has_one_whole_execution(name: str, mode: str, classes: int) -> None:
    done = reduced(name, mode=mode)
    assert done.failure is None and done.exhausted == "completely"
    assert done.statistics["complete"] == done.statistics["classes"] == classes
    assert done.statistics["unreduced"] == 0
    assert done.statistics["blocked"] == 0 or name.endswith("assumes")


@pytest.mark.parametrize("name", BOUNDED)
def test_a_bound_of_preemptions_has_the_classes_that_genmc_expects(name: str) -> None:
    for bound, classes in enumerate(BOUNDED[name]):
        done = reduced(name, preemptions=bound)
        assert done.statistics["complete"] == done.statistics["classes"] == classes


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("reuse", "classes"), [("quarantine", 1), ("reuse", 3), ("mixed", 3)])
def test_a_class_says_which_block_is_handed_out_again(mode: str, reuse: str, classes: int) -> None:
    done = reduced("allocates_2", mode=mode, reuse=reuse)
    whole = explorer("allocates_2", mode=mode, strategy="enumerate", reuse=reuse)
    whole.run(0, 1_000)
    assert set(done.classes.tolist()) == set(whole.classes().tolist())
    assert done.statistics["classes"] == classes
    assert done.statistics["complete"] == {"quarantine": 1, "reuse": 4, "mixed": 6}[reuse]


@pytest.mark.parametrize("suite", ["refcount", "object_pool"])
@pytest.mark.parametrize("reuse", ["quarantine", "reuse", "mixed"])
def test_programs_that_allocate_have_the_classes_of_the_whole_search(
    suite: str, reuse: str
) -> None:
    subject = checked_subject(suite)
    compared = 0
    for seed in range(10):
        program = Program.generate(subject, seed, threads=2, operations=1 + seed % 2, noise=False)
        options: dict[str, Any] = {"mode": "sc", "reuse": reuse}
        whole, every = counted(Explorer(subject, program, strategy="enumerate", **options), 3_000)
        found, counts = counted(Explorer(subject, program, strategy="reduce", **options), 3_000)
        if every["exhausted"] == counts["exhausted"] == 2 and not counts["unreduced"]:
            assert found == whole and counts["complete"] < 1.2 * counts["classes"]
            compared += 1
    assert compared > 3


@pytest.mark.parametrize("mode", MODES)
def test_a_class_says_which_calls_had_returned_where_answers_are_judged(mode: str) -> None:
    subject = checked_subject("refcount")
    program = Program.generate(subject, 3, threads=2, operations=2, noise=False)
    runs = Explorer(subject, program, mode=mode, strategy="reduce", judged=True)
    histories = histories_of(runs)
    alone, counts = counted(Explorer(subject, program, mode=mode, strategy="reduce"), MOST)
    assert histories is not None
    judged = runs.statistics()
    assert judged["complete"] == judged["classes"] >= len(histories) > 1
    assert counts["complete"] == counts["classes"] == len(alone) < judged["classes"]


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("szymanski", "sc"),
        ("treiber_two_push_one_pops", "sc"),
        ("treiber_two_push_one_pops", "c11"),
        ("treiber_two_do_both", "sc"),
        *itertools.product(("seqlock_once", "exchanges_5"), MODES),
        ("iriw_acq_rel", "sc"),
        ("iriw_acq_rel", "c11"),
    ],
)
def test_the_classes_are_those_of_the_whole_search(name: str, mode: str) -> None:
    whole = explorer(name, mode=mode, strategy="preemptions", bound=60)
    whole.run(0, 500_000)
    assert whole.statistics()["exhausted"] == 2
    classes = set(whole.classes().tolist())
    found = reduced(name, mode=mode)
    assert found.exhausted == "completely" and found.statistics["unreduced"] == 0
    assert set(found.classes.tolist()) == classes and found.statistics["complete"] >= len(classes)


# Loops that wait, with and without a pause; sleeps; a deadline; a lock that sleeps.
WAITING = (
    "ticket_2_fixed",
    "clh_lock_fixed",
    "sleeps_for_data_fixed",
    "sleeping_lock_fixed",
    "deadline_of_1_fixed",
)
# One program of each kind of object.
OBJECTS = (
    "readers_share_fixed",
    "writer_writes_fixed",
    "semaphore_fixed",
    "semaphore_late_fixed",
    "semaphore_looks_fixed",
    "futex_fixed",
    "wake_late_fixed",
    "std_recursive_fixed",
    "std_notify_fixed",
    "std_shared_fixed",
)


def counted(runs: Explorer, most: int) -> tuple[set[int], dict[str, int]]:
    """Run a search; return its classes and its statistics."""
    runs.run(0, most)
    assert not runs.failed()
    return set(runs.classes().tolist()), runs.statistics()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WAITING)
def test_what_waits_is_reduced(name: str, mode: str) -> None:
    options: dict[str, Any] = {"mode": mode, "spins": 0, "bound": 60}
    whole, all_counts = counted(explorer(name, strategy="preemptions", **options), 20_000)
    found, counts = counted(explorer(name, strategy="reduce", **options), 20_000)
    assert counts["exhausted"] and not counts["unreduced"]
    assert whole <= found
    assert counts["complete"] == counts["classes"] or mode == "c11"
    if all_counts["exhausted"] == counts["exhausted"] == 2:
        assert whole == found


@pytest.mark.parametrize(
    ("name", "mode"),
    # In mode c11 the loop around the futex ends in no search.
    [(name, mode) for name in OBJECTS for mode in MODES if (name, mode) != ("futex_fixed", "c11")],
)
def test_each_kind_of_object_is_reduced(name: str, mode: str) -> None:
    module = built("locks_cpp" if name.startswith("std_") else "locks", "gcc")
    subject = module.SUBJECTS[name]
    threads = module.THREADS[name]
    program = Program.generate(subject, 0, threads=threads, operations=1, noise=False)
    options: dict[str, Any] = {"mode": mode, "spins": 0, "bound": 60}
    whole, all_counts = counted(
        Explorer(subject, program, strategy="preemptions", **options), 5_000
    )
    found, counts = counted(Explorer(subject, program, strategy="reduce", **options), 5_000)
    assert counts["exhausted"] and not counts["unreduced"]
    assert whole <= found
    assert counts["complete"] == counts["classes"] + (name == "futex_fixed")
    if all_counts["exhausted"] == counts["exhausted"] == 2:
        assert whole == found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["counter", "lost_wakeup", "use_after_free", "store_buffering"])
def test_a_failure_is_found_replays_and_shrinks(name: str, mode: str) -> None:
    if name == "store_buffering" and mode == "sc":
        assert reduced(name).exhausted == "completely"
        return
    found = reduced(name, reuse="mixed", mode=mode).failure
    assert found is not None and found.strategy == "reduce"
    subject = programs().SUBJECTS[name]
    again = found.replay(subject)
    assert again.exact and again.failure == found
    small = shrink(found, subject)
    assert small.replay(subject).exact and small.kind == found.kind


def histories_of(explorer: Explorer) -> Histories | None:
    """The histories of all executions: what each call returned, and which calls ended before it.

    None of a search that does not end within MOST executions.
    """
    found: Histories = set()
    done = 0
    while not explorer.statistics()["exhausted"]:
        if done == MOST:
            return None
        done += explorer.run(done, MOST - done)
        assert not explorer.failed()
        if explorer.unjudged():
            rows = explorer.answers().tolist()
            found.add(tuple((*row[3:], *(other[1] < row[0] for other in rows)) for row in rows))
            explorer.accept()
    return found


@pytest.mark.parametrize("suite", ["refcount", "position_map"])
@pytest.mark.parametrize("mode", MODES)
def test_the_histories_are_those_of_the_whole_search(suite: str, mode: str) -> None:
    subject = checked_subject(suite)
    compared = 0
    for seed in range(12):
        program = Program.generate(subject, seed, threads=2, operations=1 + seed % 2, noise=False)
        options: dict[str, Any] = {"mode": mode, "judged": True, "bound": 60}
        whole = histories_of(Explorer(subject, program, strategy="preemptions", **options))
        if whole is None:
            continue
        runs = Explorer(subject, program, strategy="reduce", **options)
        assert histories_of(runs) == whole
        compared += len(whole) > 1 and not runs.statistics()["unreduced"]
    assert compared > 1, "several orders of the calls, and reduced searches"


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("exchanges_4", {"races": False}, "races that are allowed or not detected"),
        ("exchanges_4", {"lock_free": True}, "a check of lock-freedom"),
        ("polls_fixed", {}, "a loop that yields again and again"),
    ],
)
def test_what_is_not_reduced_is_searched_whole(
    name: str, options: dict[str, Any], reason: str
) -> None:
    done = reduced(name, strategy="exhaust", **options)
    assert reason in reasons(done.statistics["unreduced"])
    said = f"searched without reduction, which does not cover the program: {reason}"
    assert said in " ".join(done.remarks)
    alone = reduced(name, **options)
    assert not alone.exhausted and alone.rest is None and alone.executions < done.executions
    assert "the search ended, because the reduction does not cover" in " ".join(alone.remarks)
    whole = reduced(name, strategy="enumerate", **options)
    assert done.executions >= whole.executions and done.exhausted == whole.exhausted
    assert set(done.classes.tolist()) >= set(whole.classes.tolist())


@pytest.mark.parametrize("mode", ["sc", "c11"])
def test_threads_run_on_where_an_execution_was_discarded(mode: str) -> None:
    """The first execution ends before the stores that its assumption needs."""
    whole = reduced("assumes_last", mode=mode, strategy="preemptions", bound=1_000)
    done = reduced("assumes_last", mode=mode)
    assert done.statistics["discarded"] > 0 and done.statistics["unreduced"] == 0
    assert set(done.classes.tolist()) == set(whole.classes.tolist()) and len(done.classes) >= 2


@pytest.mark.parametrize("mode", MODES)
def test_faults_are_branches_of_the_reduced_search(mode: str) -> None:
    """Weak exchanges that fail, and allocations that get no memory. Program 520 once missed a
    class, of an exchange that failed although another one had taken what it read.
    """
    ended = 0
    for seed in (*range(60), 520):
        program = program_of_seed(seed)
        if program.has("cas", "fence"):
            exhausted, difference = compare_faulty(program, mode, executions=1_500)
            assert not difference, f"program {seed}: {difference}"
            ended += exhausted
    assert ended > 10


@pytest.mark.parametrize("mode", MODES)
def test_a_bound_of_preemptions_loses_no_class_within_it(mode: str) -> None:
    compared = equal = fewer = 0
    for seed in range(120):
        program = program_of_seed(seed)
        every = explored(
            program, cells_program_of(program), mode=mode, strategy="reduce", executions=3_000
        )
        for bound in range(3):
            both, difference = compare_bounded(program, mode, bound, executions=3_000)
            assert not difference, f"program {seed}: {difference}"
            if both:
                whole, found = both
                assert found.hashes <= every.hashes
                compared += 1
                equal += found.hashes == whole.hashes
                fewer += len(found.hashes) < len(every.hashes)
    assert compared > 300 and equal > 0.8 * compared and fewer > 10


@pytest.mark.parametrize(("mode", "counts"), [("sc", (2, 8, 22, 40)), ("c11", (10, 30, 46, 46))])
def test_the_classes_of_each_bound_are_those_of_every_schedule(
    mode: str, counts: tuple[int, ...]
) -> None:
    for bound, count in enumerate(counts):
        done = reduced("treiber_two_do_both", mode=mode, preemptions=bound)
        whole = explorer("treiber_two_do_both", mode=mode, strategy="preemptions", bound=bound)
        whole.run(0, 100_000)
        assert set(done.classes.tolist()) == set(whole.classes().tolist())
        assert done.statistics["complete"] == len(done.classes) == count
        proof = f"within the stated bounds: preemption bound {bound}"
        assert done.exhausted == (proof if count < 46 else "completely")
        if bound == 3:
            assert done.executions < whole.statistics()["executions"]


def test_a_bound_of_preemptions_is_for_searches_with_reduction() -> None:
    with pytest.raises(UsageError, match="a bound of preemptions is for exhaust and reduce"):
        reduced("exchanges_4", strategy="random", preemptions=1)
    with pytest.raises(UsageError, match="the bound of preemptions is -1; it should be 0 or more"):
        reduced("exchanges_4", preemptions=-1)
    done = reduced("treiber_two_do_both", strategy="exhaust", preemptions=1, races=False)
    assert done.exhausted == "within the stated bounds: preemption bound 1", "and no reduction"
    assert done.statistics["unreduced"] and done.statistics["classes"] == 8


def test_an_unfinished_search_proves_nothing() -> None:
    done = reduced("increments_6", executions=100)
    assert done.executions == 100 and not done.exhausted and done.rest is not None
    assert done.residual_risk is None and done.unseen_mass is None


def test_the_report_counts_what_was_left() -> None:
    total = SuiteExploration("increments_4", "reduce")
    total.add(reduced("increments_4"))
    assert (
        "  reduced searches: 24 whole executions for 24 classes; 0 left early because they were "
        "like earlier ones"
    ) in total.lines()


def test_the_search_goes_on_where_a_run_stopped() -> None:
    runs = explorer("increments_5", mode="sc", strategy="reduce")
    counts = [runs.run(at, 7) for at in range(0, 126, 7)]
    assert sum(counts) == 120 and runs.statistics()["exhausted"] == 2


@pytest.mark.parametrize(
    ("name", "mode", "whole"),
    [("increments_6", "sc", 720), ("exchanges_7", "sc", 523), ("readers_4", "c11", 16)],
)
def test_an_unfinished_search_says_how_much_is_left(name: str, mode: str, whole: int) -> None:
    for count in range(whole // 4, whole, whole // 4):
        done = reduced(name, mode=mode, executions=count)
        assert done.left is not None
        assert abs(done.left.executions - (whole - count)) <= 2 * done.left.spread + 1
        assert f"the search did not end: about {done.left.executions:,.0f}" in done.remarks[0]
    assert reduced(name, mode=mode).left is None
    assert reduced(name, mode=mode, executions=whole // 2, strategy="enumerate").left is None


def test_the_estimate_is_exact_where_sisters_are_alike() -> None:
    estimates: list[Left] = []
    done = reduced("increments_6", mode="sc", executions=360, on_left=estimates.append)
    assert done.left == Left(360, 0)
    assert estimates and all(left.spread > 0 for left in estimates if left.executions != 360)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "count"), [("increments_5", 1), ("locked_increments_4", 1)])
def test_equal_threads_begin_in_one_order(name: str, count: int, mode: str) -> None:
    done = reduced(name, mode=mode, symmetry=True)
    assert done.exhausted == "completely, up to the names of equal threads"
    if mode != "c11" or name.startswith("locked"):  # there a store may come before earlier ones
        assert done.statistics["complete"] == done.statistics["classes"] == count
    with pytest.raises(UsageError, match="symmetry is for exhaust and reduce, not for 'random'"):
        reduced(name, strategy="random", symmetry=True)


def test_symmetry_is_not_for_code_that_asks_for_its_thread() -> None:
    """The control: the threads of these exchanges have equal calls, and are not equal."""
    assert reduced("exchanges_4").statistics["classes"] == 14
    assert reduced("exchanges_4", symmetry=True).statistics["classes"] < 14


def renamed(litmus: Litmus, outcomes: set[Outcome]) -> set[tuple[Any, ...]]:
    """The outcomes, where equal threads have no names."""
    found = set()
    for outcome in outcomes:
        deadlock, ended = outcome[4] & DEADLOCK, outcome[4]
        threads = [
            (str(calls), outcome[number], ended >> 5 * number & 31 if deadlock else 0)
            for number, calls in enumerate(litmus.threads)
        ]
        found.add((*sorted(threads), deadlock or ended))
    return found


@pytest.mark.parametrize("mode", MODES)
def test_symmetry_keeps_the_outcomes_up_to_names(mode: str) -> None:
    compared, fewer = 0, 0
    for seed in range(60):
        drawn = program_of_seed(seed)
        if drawn.roots < len(drawn.threads) or len(drawn.threads) > 3:
            continue
        threads = (drawn.threads[0], drawn.threads[0], *drawn.threads[1:2])
        litmus = Litmus(threads)
        calls = cells_program_of(litmus)
        options: dict[str, Any] = {"mode": mode, "strategy": "exhaust", "executions": 1_500}
        whole = explored(litmus, calls, **options)
        half = explored(litmus, calls, symmetry=True, **options)
        if whole.exhausted and half.exhausted and not whole.unreduced:
            assert renamed(litmus, half.outcomes) == renamed(litmus, whole.outcomes), f"seed {seed}"
            compared += 1
            fewer += half.executions < whole.executions
    assert compared > 15 and fewer > 5
