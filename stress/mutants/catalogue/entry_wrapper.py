"""Mistakes in structures/entry_wrapper.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/entry_wrapper.pxd"

STALE = 8  # from here on a place means the wrapper that was churned last

VALIDATED = """
if not stamped_validate(&wrapper.lock, stamp):
    stamped_lock_read(&wrapper.lock)
    holds = wrapper_holds(wrapper, memory, owner, key)
    value = u32_load_relaxed(&wrapper.value)
    stamped_unlock_read(&wrapper.lock)
"""

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="H08",
        title="an optimistic read is used without validation",
        origin="the step from #22814 to #22818",
        file=FILE,
        old=VALIDATED,
        new="pass",
        suite="entry_wrapper",
        breaks="I9",
        within=20_000,
    ),
    Mutant(
        id="H08b",
        title="a read that fails to validate waits, and then uses its old copy",
        origin="the step from #22814 to #22818",
        file=FILE,
        old=VALIDATED,
        new="""
if not stamped_validate(&wrapper.lock, stamp):
    stamped_lock_read(&wrapper.lock)
    stamped_unlock_read(&wrapper.lock)
""",
        suite="entry_wrapper",
        breaks="I9",
    ),
    Mutant(
        id="H08d",
        title="the key is read after the validation",
        origin="the step from #22814 to #22818",
        file=FILE,
        old=VALIDATED,
        new=VALIDATED
        + """
else:
    holds = wrapper_holds(wrapper, memory, owner, key)
""".lstrip("\n"),
        suite="entry_wrapper",
        breaks="I9, I1",
        # Between the value and the key the wrapper comes to another key of the same owner.
        calls=((("churn", 0, 1), ("fill", 3)), (("read_stale", STALE, 3, 1),)),
        settings={"keys": (9, 9)},
        strategy="preemptions",
    ),
    Mutant(
        id="M31",
        title="a new incarnation keeps the requeue count",
        origin="port",
        file=FILE,
        old="""
wrapper.requeue_count = 0
u8_store_relaxed(&wrapper.visits, 0)
""",
        new="""
wrapper.requeue_count = 2
u8_store_relaxed(&wrapper.visits, 0)
""",
        suite="entry_wrapper",
        breaks="I30, I56",
    ),
    Mutant(
        id="M04",
        title="the version restarts when a wrapper is recycled",
        origin="port",
        file=FILE,
        old="pool_give(pool, handle)",
        new="""
u64_store_relaxed(&wrapper_at(pool, handle).lock, 0)
pool_give(pool, handle)
""",
        suite="entry_wrapper",
        breaks="I29, I10",
        cimports="from pulsar_ml.sync.atomics cimport u64_store_relaxed",
    ),
)
