"""Mistakes in structures/ack_state.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/ack_state.pxd"

LOOK_AGAIN = """
fence_seq_cst()
if not u32_load_relaxed(&state.open):
    return False
"""
WAKE = """
fence_seq_cst()
if u32_load_relaxed(&state.open) and u32_load_relaxed(&state.paused):
    return ack_state_unpause(state)
"""

# A dispatcher that meets the acknowledgement after which the state fits. Ledger 1 is acknowledged from its
# second entry on; what fills the gap lets the mark pass it.
MEETING = (
    (("ack_entry", 0, 2), ("dispatch", 0)),
    (("ack_entry", 0, 1), ("ack_entry", 0, 0)),
)
NO_RANGES = {"by_bytes": (0, 0), "max_ranges": (0, 0), "max_batches": (3, 3)}

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="AK09",
        title="the dispatcher does not look again after it paused",
        origin="port; evaluation and flag of the original may cross",
        file=FILE,
        old=LOOK_AGAIN,
        new="return False",
        suite="ack_state",
        breaks="I99",
        # A moment that real threads hardly meet.
        mode="sc",
        within=8_000,
        calls=MEETING,
        settings=NO_RANGES,
    ),
    Mutant(
        id="AK10",
        title="no fence between pausing and the second look",
        origin="port",
        file=FILE,
        old=LOOK_AGAIN,
        new="""
if not u32_load_relaxed(&state.open):
    return False
""",
        suite="ack_state",
        breaks="I99",
        mode="c11",
        within=8_000,
        calls=MEETING,
        settings=NO_RANGES,
    ),
    Mutant(
        id="AK11",
        title="no fence between opening and the look at the dispatcher",
        origin="port",
        file=FILE,
        old=WAKE,
        new="""
if u32_load_relaxed(&state.open) and u32_load_relaxed(&state.paused):
    return ack_state_unpause(state)
""",
        suite="ack_state",
        breaks="I99",
        mode="c11",
        within=8_000,
        calls=MEETING,
        settings=NO_RANGES,
    ),
    Mutant(
        id="AK12",
        title="a mark read under a stamp is used without validation",
        origin="port",
        file=FILE,
        old="""
if not stamped_validate(&state.lock, stamp):
    stamped_lock_read(&state.lock)
    mark = acks_mark(&state.acks)
    stamped_unlock_read(&state.lock)
""",
        new="pass",
        suite="ack_state",
        breaks="AR-3",
        mode="sc",
        within=8_000,
        calls=(
            (("ack_up_to", 0, 5), ("ack_up_to", 1, 0)),
            (("is_acked", 1, 5, 0), ("is_acked", 1, 5, 1), ("is_acked", 1, 4, 1)),
        ),
    ),
    Mutant(
        id="AK13",
        title="whoever opens dispatch does not let the dispatcher go on",
        origin="port",
        file=FILE,
        old=WAKE,
        new="pass",
        suite="ack_state",
        breaks="I99",
        # Long programs have acknowledged the small log soon.
        mode="sc",
        within=8_000,
    ),
)
