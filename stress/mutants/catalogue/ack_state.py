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
    return u32_exchange_acq_rel(&state.paused, 0)
"""

# A dispatcher meets the acknowledgement after which the state fits. Ledger 1 is acknowledged from
# its second entry on; filling the gap lets the mark pass it.
MEETING = (
    (("ack_entry", 0, 2), ("dispatch", 0)),
    (("ack_entry", 0, 1), ("ack_entry", 0, 0)),
)
NO_RANGES = {"by_bytes": (0, 0), "max_ranges": (0, 0), "max_batches": (3, 3)}

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="AK09",
        title="the dispatcher does not check again after it paused",
        origin="port; evaluation and flag of the original may cross",
        file=FILE,
        old=LOOK_AGAIN,
        new="return False",
        suite="ack_state",
        breaks="I99",
        # A schedule that is rare on real threads.
        mode="sc",
        within=8_000,
        calls=MEETING,
        settings=NO_RANGES,
    ),
    Mutant(
        id="AK10",
        title="no fence between pausing and the second check",
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
        title="no fence between opening and the check of the dispatcher",
        origin="port",
        file=FILE,
        old=WAKE,
        new="""
if u32_load_relaxed(&state.open) and u32_load_relaxed(&state.paused):
    return u32_exchange_acq_rel(&state.paused, 0)
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
        title="the thread that opens dispatch does not resume the dispatcher",
        origin="port",
        file=FILE,
        old=WAKE,
        new="pass",
        suite="ack_state",
        breaks="I99",
        # Long programs soon have acknowledged the whole small log.
        mode="sc",
        within=32_000,
    ),
    Mutant(
        id="AK14",
        title="two acknowledgements see the same pause",
        origin="port; the original compares and swaps a flag",
        file=FILE,
        old=WAKE,
        new="""
fence_seq_cst()
if u32_load_relaxed(&state.open) and u32_load_relaxed(&state.paused):
    return ack_state_take_in_two_steps(state)
""",
        helper="""
cdef inline uint32_t ack_state_take_in_two_steps(AckState* state) noexcept nogil:
    cdef uint32_t seen = u32_load_relaxed(&state.paused)
    u32_store_relaxed(&state.paused, 0)
    return seen
""",
        suite="ack_state",
        breaks="AS-3",
        mode="sc",
        within=8_000,
        calls=(
            (("ack_entry", 0, 1), ("dispatch", 0), ("ack_entry", 0, 0)),
            (("is_acked", 0, 1, 0), ("ack_entry", 0, 2)),
        ),
        settings=NO_RANGES,
    ),
    Mutant(
        id="AK15",
        title="a resumed dispatcher takes the wake-up of one that waits for another kind of message",
        origin="port; the original has one flag for all kinds",
        file=FILE,
        old="""
while not u32_cas_weak_acq_rel(&state.paused, &seen, seen | bit if waits else seen & ~bit):
    pass
""",
        new="""
while not u32_cas_weak_acq_rel(&state.paused, &seen, seen | bit if waits else 0):
    pass
""",
        suite="ack_state",
        breaks="I99",
        mode="sc",
        within=8_000,
        calls=(
            (("ack_entry", 0, 1), ("dispatch", 0), ("ack_entry", 0, 0)),
            (("dispatch", 2), ("dispatch", 2)),
        ),
        settings=NO_RANGES,
    ),
    Mutant(
        id="AK16",
        title="messages that are due are not held back",
        origin="port; replays of the original include them",
        file=FILE,
        old="""
if kind == DISPATCH_REPLAY:
    return True
""",
        new="""
if kind != DISPATCH_NORMAL:
    return True
""",
        suite="ack_state",
        breaks="AS-4",
        mode="sc",
        within=8_000,
    ),
    Mutant(
        id="AK-all",
        title="of many entries those known before count as new",
        origin="port",
        file=FILE,
        old="added[0] += change == ACK_NEW",
        new="added[0] += 1",
        suite="ack_state",
        breaks="linearizability",
        rare=True,
    ),
)
