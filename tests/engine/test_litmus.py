"""Each memory mode reaches every outcome that it allows and none that it forbids."""

from __future__ import annotations

import math
import platform

import pytest

from tests.engine.programs.build_programs import explorer, programs

EXECUTIONS = 20_000

SB_SC = {1, 2, 3}
SB_ALL = {0, 1, 2, 3}
MP_SC = {0, 1, 3}
MP_ALL = {0, 1, 2, 3}
IRIW_SC = set(range(16)) - {10}
WRC_SC = set(range(8)) - {6}

# program: (outcomes under sc, tso, c11)
OUTCOMES: dict[str, tuple[set[int], set[int], set[int]]] = {
    "sb_relaxed": (SB_SC, SB_ALL, SB_ALL),
    "sb_acq_rel": (SB_SC, SB_ALL, SB_ALL),
    "sb_sc": (SB_SC, SB_SC, SB_SC),
    "sb_sc_fence": (SB_SC, SB_SC, SB_SC),
    "sb_acq_rel_fence": (SB_SC, SB_ALL, SB_ALL),
    "sb_sc_and_fence": (SB_SC, SB_SC, SB_SC),
    "sb_own": (SB_SC, SB_ALL, SB_ALL),
    "mp_relaxed": (MP_SC, MP_SC, MP_ALL),
    "mp_acq_rel": (MP_SC, MP_SC, MP_SC),
    "mp_release_only": (MP_SC, MP_SC, MP_ALL),
    "mp_acquire_only": (MP_SC, MP_SC, MP_ALL),
    "mp_fences": (MP_SC, MP_SC, MP_SC),
    "mp_release_fence_acquire": (MP_SC, MP_SC, MP_SC),
    # Load buffering is outside the model: 3 is allowed by C11 and never shown.
    "lb_relaxed": ({0, 1, 2}, {0, 1, 2}, {0, 1, 2}),
    "iriw_relaxed": (IRIW_SC, IRIW_SC, set(range(16))),
    "iriw_acq_rel": (IRIW_SC, IRIW_SC, set(range(16))),
    "iriw_sc": (IRIW_SC, IRIW_SC, IRIW_SC),
    "iriw_sc_fence": (IRIW_SC, IRIW_SC, IRIW_SC),
    "wrc_relaxed": (WRC_SC, WRC_SC, set(range(8))),
    "wrc_acq_rel": (WRC_SC, WRC_SC, WRC_SC),
    "two_plus_two_w_relaxed": ({0, 1, 2}, {0, 1, 2}, {0, 1, 2, 3}),
    "two_plus_two_w_release": ({0, 1, 2}, {0, 1, 2}, {0, 1, 2, 3}),
    "two_plus_two_w_sc": ({0, 1, 2}, {0, 1, 2}, {0, 1, 2}),
    "corr": ({0, 1, 3}, {0, 1, 3}, {0, 1, 3}),
    "corr2": ({0}, {0}, {0}),
    "coww": ({2}, {2}, {2}),
    "cowr": ({1, 2}, {1, 2}, {1, 2}),
    # a * 2 + b with a == 2 when the reader saw the read-modify-write: never the flag without the
    # data.
    "release_sequence_rmw": ({0, 1, 2, 3, 5}, {0, 1, 2, 3, 5}, {0, 1, 2, 3, 5}),
    "release_sequence_store": ({0, 1, 3, 4, 5}, {0, 1, 3, 4, 5}, {0, 1, 3, 4, 5}),
    "rmw_atomic": ({3}, {3}, {3}),
    "cas_atomic": ({1}, {1}, {1}),
}


@pytest.mark.parametrize("name", OUTCOMES)
@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
def test_a_mode_reaches_exactly_the_outcomes_it_allows(name: str, mode: str) -> None:
    expected = OUTCOMES[name][("sc", "tso", "c11").index(mode)]
    runs = explorer(name, mode=mode, strategy="random", seed=1)
    programs().outcomes(name)
    assert runs.run(0, EXECUTIONS) == EXECUTIONS
    seen = set(programs().outcomes(name))
    if (name, mode, platform.machine()) == ("sb_own", "tso", "aarch64"):
        assert SB_SC <= seen <= SB_ALL  # the end of a function may empty the buffer there
        return
    assert seen == expected


@pytest.mark.parametrize(
    "name", ["sb_acq_rel", "mp_relaxed", "two_plus_two_w_relaxed", "iriw_acq_rel", "wrc_relaxed"]
)
def test_exhaustive_search_reaches_exactly_the_outcomes_of_c11(name: str) -> None:
    runs = explorer(name, mode="c11", strategy="preemptions", bound=20)
    programs().outcomes(name)
    runs.run(0, 1_000_000)
    assert runs.statistics()["exhausted"] == 2
    assert set(programs().outcomes(name)) == OUTCOMES[name][2]


# What GenMC expects of its own test programs, in SC and in RC11: executions that differ in what
# reads from what or in modification order.
ORACLE = {
    "sb_acq_rel": (3, 4),
    "two_plus_two_w_relaxed": (3, 4),
    **{f"increments_{n}": (math.factorial(n), math.factorial(n)) for n in range(2, 8)},
    **{f"locked_increments_{n}": (math.factorial(n), math.factorial(n)) for n in range(2, 8)},
    "readers_2": (2**2, 2**2),
    "readers_4": (2**4, 2**4),
}


@pytest.mark.parametrize("name", ORACLE)
@pytest.mark.parametrize("mode", ["sc", "c11"])
@pytest.mark.parametrize("strategy", ["preemptions", "delays"])
def test_the_number_of_classes_equals_the_published_one(
    name: str, mode: str, strategy: str
) -> None:
    runs = explorer(name, mode=mode, strategy=strategy, bound=40)
    runs.run(0, 500_000)
    statistics = runs.statistics()
    assert statistics["exhausted"] == 2
    assert statistics["classes"] == ORACLE[name][mode == "c11"]


def test_eight_readers_have_two_to_the_eighth_executions() -> None:
    runs = explorer("readers_8", mode="sc", strategy="preemptions", bound=40)
    runs.run(0, 500_000)
    assert runs.statistics()["exhausted"] == 2
    assert runs.statistics()["classes"] == 2**8


# Where GenMC counts only the executions that pass its program's assumptions: those with outcome 1
# here.
@pytest.mark.parametrize(
    ("name", "mode", "expected"),
    [("seqlock_once", "sc", 2), ("seqlock_once", "c11", 2), ("szymanski", "sc", 6)],
)
def test_the_number_of_classes_that_pass_equals_the_published_one(
    name: str, mode: str, expected: int
) -> None:
    runs = explorer(name, mode=mode, strategy="preemptions", bound=40)
    programs().outcomes(name)
    passed, result = set(), 0
    while not runs.statistics()["exhausted"]:
        result += runs.run(result, 1)
        if 1 in programs().outcomes(name):
            passed.add(runs.hashes()[1])
    assert len(passed) == expected


@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
def test_what_a_function_left_on_the_stack_is_nothing_to_the_next(mode: str) -> None:
    """An execution was another one where that happened to be what the variable held before."""
    runs = explorer("own_twice", mode=mode, seed=3)
    for number in range(12):
        runs.run(number, 1)
        before = runs.hashes()
        runs.again(number)
        assert runs.hashes() == before
