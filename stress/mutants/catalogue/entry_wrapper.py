"""Mistakes in structures/entry_wrapper.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/entry_wrapper.pxd"

STALE = 8  # from here on a place means the wrapper that was churned last

# The remover recycles the wrapper: the policy has no queue.
RECYCLED = {
    name: (value, value)
    for name, value in {
        "caches": 2,
        "keys": 8,
        "chunk_bits": 2,
        "queue_chunk_bits": 2,
        "policy": 3,
    }.items()
}

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
        id="EW-value",
        title="a read takes the handle of the entry that it will look at relaxed",
        origin="port",
        file=FILE,
        old="value = u32_load_acquire(&wrapper.value)",
        new="value = u32_load_relaxed(&wrapper.value)",
        suite="range_cache",
        breaks="I18",
        mode="c11",
        # The wrapper comes back at its place with an entry in memory that the reader does not know.
        calls=(
            (
                ("put", 0, 0, 0),
                ("put", 0, 2, 0),
                ("put", 0, 1, 0),
                ("hold", 0, 1, 0),
                ("remove_range", 0, 1, 0),
                ("put", 0, 1, 0),
            ),
            (("read_range", 0, 1, 0),),
        ),
        settings=RECYCLED,
    ),
    Mutant(
        id="EW-place",
        title="a wrapper's place is published by a relaxed store",
        origin="port",
        file=FILE,
        old="u32_store_release(&wrapper.place, place)",
        new="u32_store_relaxed(&wrapper.place, place)",
        suite="range_cache",
        breaks="I9",
        mode="c11",
        # The wrapper comes back in a page that a third thread made.
        calls=(
            (("put", 0, 0, 0), ("put", 0, 1, 0), ("remove_range", 0, 1, 0), ("put", 1, 1, 0)),
            (("read_range", 0, 1, 0),),
            (("put", 1, 0, 0),),
        ),
        settings=RECYCLED,
    ),
    Mutant(
        id="M31",
        title="a new incarnation keeps the requeue count",
        origin="port",
        file="structures/map_pages.pxd",
        old="page.requeues[slot] = 0",
        new="pass",
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
u32_store_relaxed(&wrapper_at(pool, handle).lock, 0)
pool_give(pool, handle)
""",
        suite="entry_wrapper",
        breaks="I29, I10",
        cimports="from pulsar_ml.sync.atomics cimport u32_store_relaxed",
    ),
)
