"""The engine's outcomes and classes equal those of independent SC, TSO and RC11 models."""

from __future__ import annotations

import pytest

from pulsar_ml.harness.engine import SAMPLERS
from tests.memory_model.compare import Comparison, compare, faults_of_seed, shrunk
from tests.memory_model.generator import FEATURES, program_of_seed
from tests.memory_model.litmus import DEADLOCK, TIMED_WAIT, Litmus, Outcome, describe
from tests.memory_model.models import DEFECTS, MODES, allowed
from tests.memory_model.programs import (
    FAILED_ATTEMPT,
    JOIN_BEHIND_FENCE,
    JOIN_UNDER_LOCK,
    JOINED_STORE,
    LOCK_IN_TIME,
    LOCKED_MESSAGE,
    LOCKED_NOTIFICATION,
    LOST_NOTIFICATION,
    MESSAGE,
    MIXED_ORDERS,
    MUTEX_BEHIND_FENCE,
    NOTIFYING_STORE_BUFFERING,
    RELAXED_MESSAGE,
    SC_BEHIND_TIME_OUT,
    SC_STORE_BUFFERING,
    SEEN_BEFORE_UNLOCK,
    SPANS,
    STORE_ACROSS_SPAWN,
    STORE_BEFORE_SPAWN,
    STORE_BUFFERING,
    TEXTBOOK,
    TIME_OUT,
    TIME_OUT_IN_SECTION,
    TIME_OUTS_IN_ORDER,
    TWO_WAITS,
    UNLOCKED_IN_TIME,
)

# Two programs notice defects of the engine that the first 2,000 do not notice: in 2,964 two threads
# hold the mutex one after the other and wait until a deadline, and in 2,024 a thread stores, finds
# that, and stores again.
SEEDS = (*range(2_000), 2_024, 2_964)
PIECES = 25  # each has every row of FEATURES
EXECUTIONS = 5_000  # of a search: most programs need fewer


def outcome(*results: tuple[int, ...], finals: tuple[int, ...] = ()) -> Outcome:
    words = [sum(value << 4 * i for i, value in enumerate(row)) for row in results]
    first, second, third, fourth = (*words, *[0] * (4 - len(words)))
    return first, second, third, fourth, sum(value << 4 * i for i, value in enumerate(finals))


def deadlocks(program: Litmus, mode: str = "sc", faults: tuple[str, ...] = ()) -> int:
    found = compare(program, mode, faults=faults, samplers=SAMPLERS)
    assert found.agrees and found.exhausted, found
    return sum(each[4] & DEADLOCK != 0 for each in allowed(program, mode, faults=faults).outcomes)


@pytest.mark.parametrize("piece", range(PIECES))
def test_the_engine_agrees_with_the_models(piece: int) -> None:
    exhausted = 0
    for seed in SEEDS[piece::PIECES]:
        program = program_of_seed(seed)
        for mode in MODES:
            found = compare(
                program,
                mode,
                faults=faults_of_seed(seed, program),
                samplers=SAMPLERS,
                executions=EXECUTIONS,
                seed=seed,
            )
            assert found.agrees, f"program {seed}\n{shrunk(found)}"
            exhausted += found.exhausted
    assert exhausted > len(SEEDS) / PIECES * len(MODES) * 0.8, (
        "searches that end say what is missing"
    )


@pytest.mark.parametrize("program", TEXTBOOK, ids=str)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("faults", [(), ("timeout",), ("spurious",), ("timeout", "spurious")])
def test_the_engine_agrees_on_programs_of_the_textbooks(
    program: Litmus, mode: str, faults: tuple[str, ...]
) -> None:
    found = compare(program, mode, faults=faults, samplers=SAMPLERS)
    assert found.agrees and found.exhausted, found


def test_the_models_differ_where_the_textbooks_say() -> None:
    both_zero = outcome((0, 0), (0, 0), finals=(1, 1))
    assert both_zero not in allowed(STORE_BUFFERING, "sc").outcomes
    assert both_zero in allowed(STORE_BUFFERING, "tso").outcomes
    assert both_zero in allowed(STORE_BUFFERING, "c11").outcomes
    assert both_zero not in allowed(SC_STORE_BUFFERING, "c11").outcomes
    flag_without_data = outcome((0, 0), (1, 0), finals=(1, 1))
    assert flag_without_data not in allowed(MESSAGE, "c11").outcomes
    assert flag_without_data in allowed(RELAXED_MESSAGE, "c11").outcomes


def test_notifying_is_no_barrier_and_starting_a_thread_is_one() -> None:
    both_zero = outcome((0, 0, 0), (0, 0, 0), finals=(1, 1))
    assert both_zero in allowed(NOTIFYING_STORE_BUFFERING, "tso").outcomes
    started = outcome((0, 0, 0), (0, 0), finals=(1, 1))
    assert started not in allowed(STORE_ACROSS_SPAWN, "tso").outcomes
    assert started in allowed(STORE_ACROSS_SPAWN, "c11").outcomes


def test_starting_and_joining_order_memory() -> None:
    for mode in MODES:
        assert allowed(JOINED_STORE, mode).outcomes == {outcome((0, 0, 1), (0,), finals=(1,))}
        assert allowed(STORE_BEFORE_SPAWN, mode).outcomes == {outcome((0, 0), (1,), finals=(1,))}


def test_joining_and_locking_pass_on_what_fences_order() -> None:
    stale = {
        JOIN_BEHIND_FENCE: outcome((0, 0, 0), (0, 0), (0, 0), finals=(2, 1)),
        MUTEX_BEHIND_FENCE: outcome((0, 3, 0, 0), (0, 0), finals=(2, 1, 3)),
    }
    for program, forbidden in stale.items():
        assert forbidden not in allowed(program, "c11", strengthened=False).outcomes
        assert compare(program, "c11").agrees


def test_waits_that_nobody_ends_are_deadlocks() -> None:
    assert deadlocks(LOST_NOTIFICATION) == 1
    assert deadlocks(LOST_NOTIFICATION, faults=("spurious",)) == 1
    assert deadlocks(TIME_OUT) == 0
    assert deadlocks(JOIN_UNDER_LOCK) == 1
    # One notification ends one of two waits, or none when it comes first.
    assert deadlocks(TWO_WAITS) == 3


def test_a_wait_times_out_when_no_thread_can_go_on_or_as_a_fault() -> None:
    notified, timed_out = outcome((0, 0, 0), (0,)), outcome((0, 1, 0), (0,))
    assert allowed(TIME_OUT, "sc").outcomes == {notified, timed_out}
    first = outcome((0, 0, 0, 0), (0, 1, 0))
    assert first not in allowed(TIME_OUTS_IN_ORDER, "sc").outcomes, "the earliest comes first"


def test_an_unlock_is_a_step_and_so_is_a_look_at_the_clock() -> None:
    for mode in MODES:
        held = outcome((0, 0, 0), (1, 1, 0), finals=(1,))
        assert held in allowed(SEEN_BEFORE_UNLOCK, mode).outcomes
        later = outcome((0, 0, 1, 0), (0, 0, 0, 0, 0), (1, 0), finals=(1,))
        assert later in allowed(SPANS, mode).outcomes


@pytest.mark.parametrize(
    ("program", "stale"),
    [
        (MIXED_ORDERS, outcome((0, 0), (2, 0), finals=(2, 1))),
        (SC_BEHIND_TIME_OUT, outcome((0,), (0, 1, 0, 0), finals=(1,))),
    ],
    ids=["mixed orders", "behind a time-out"],
)
def test_the_engine_is_stronger_than_rc11_where_its_page_says(
    program: Litmus, stale: Outcome
) -> None:
    assert stale in allowed(program, "c11", strengthened=False).outcomes
    assert stale not in allowed(program, "c11").outcomes
    assert compare(program, "c11").agrees


# Negative controls: a model that is wrong in one rule disagrees with the engine.
NOTICED_BY: dict[str, tuple[Litmus, str, tuple[str, ...]]] = {
    "no release": (MESSAGE, "c11", ()),
    "no seq_cst": (SC_STORE_BUFFERING, "c11", ()),
    "no buffers": (STORE_BUFFERING, "tso", ()),
    "no join edge": (JOINED_STORE, "c11", ()),
    "no spawn edge": (STORE_BEFORE_SPAWN, "c11", ()),
    "deaf notify": (LOST_NOTIFICATION, "sc", ()),
    "time-out without the mutex": (TIME_OUT_IN_SECTION, "sc", ("timeout",)),
    "notify one is all": (TWO_WAITS, "sc", ()),
    "no mutex edge": (LOCKED_MESSAGE, "c11", ()),
    "latest time-out first": (TIME_OUTS_IN_ORDER, "sc", ()),
    "wait keeps the mutex": (LOCKED_NOTIFICATION, "sc", ()),
    "join does not wait": (JOINED_STORE, "sc", ()),
    "spawn keeps the buffer": (STORE_ACROSS_SPAWN, "tso", ()),
    "join leaves the buffer": (JOINED_STORE, "tso", ()),
    "try_lock waits": (SEEN_BEFORE_UNLOCK, "sc", ()),
    "failed try_lock acquires": (FAILED_ATTEMPT, "c11", ()),
    "late lock holds": (LOCK_IN_TIME, "sc", ()),
    "unlock wakes nobody": (UNLOCKED_IN_TIME, "sc", ()),
    "span is over at once": (UNLOCKED_IN_TIME, "sc", ()),
}


def test_each_defect_has_a_program_that_notices_it() -> None:
    assert set(NOTICED_BY) == set(DEFECTS)


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_model_with_a_defect_is_found_out(defect: str) -> None:
    program, mode, faults = NOTICED_BY[defect]
    assert compare(program, mode, faults=faults).agrees
    found = compare(program, mode, faults=faults, defect=defect)
    assert found.exhausted and (found.missing or found.forbidden), found


def noticed(defect: str) -> Comparison:
    """Return the first disagreement of random programs with a wrong model."""
    for seed in range(2_000):
        program = program_of_seed(seed)
        faults = faults_of_seed(seed, program)
        for mode in MODES:
            right = allowed(program, mode, faults=faults)
            if right != allowed(program, mode, faults=faults, defect=defect):
                found = compare(program, mode, faults=faults, executions=EXECUTIONS, defect=defect)
                if not found.agrees:
                    return found
    raise AssertionError(f"no random program notices {defect!r}")


@pytest.mark.parametrize("defect", DEFECTS)
def test_random_programs_find_each_defect(defect: str) -> None:
    small = shrunk(noticed(defect), defect=defect)
    assert not small.agrees
    assert sum(map(len, small.program.threads)) <= 8, f"it could be smaller:\n{small}"


def test_a_disagreement_is_printed_as_its_smallest_program() -> None:
    text = str(shrunk(noticed("deaf notify"), defect="deaf notify"))
    assert "lock" in text and "notify" in text and "wait" in text, text
    assert "forbidden outcome: thread 0: " in text, text
    stuck = next(each for each in allowed(LOST_NOTIFICATION, "sc").outcomes if each[4] & DEADLOCK)
    assert describe(LOST_NOTIFICATION, stuck) == (
        "deadlock; thread 0: 0, stuck at wait; thread 1: 0"
    )


def test_random_programs_tell_the_models_apart() -> None:
    programs = [program_of_seed(seed) for seed in range(400)]
    weaker = [
        sum(
            allowed(program, mode).outcomes != allowed(program, "sc").outcomes
            for program in programs
        )
        for mode in ("tso", "c11")
    ]
    assert weaker[0] >= 8 and weaker[1] >= 30, weaker


def test_random_programs_reach_each_construct() -> None:
    stuck = late = 0
    kinds: set[str] = set()
    for seed in range(200):
        program = program_of_seed(seed)
        kinds |= {call.kind for call in program.calls()}
        model = allowed(program, "sc", faults=faults_of_seed(seed, program)).outcomes
        stuck += any(each[4] & DEADLOCK for each in model)
        late += any(
            call.kind == TIMED_WAIT and any(each[t] >> 4 * i & 1 for each in model)
            for t, calls in enumerate(program.threads)
            for i, call in enumerate(calls)
        )
    assert len(FEATURES) == 8 and len(kinds) == 16, kinds
    assert stuck >= 10 and late >= 10, (stuck, late)
