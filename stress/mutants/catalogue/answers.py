"""Wrong answers that break no bookkeeping: only a comparison with the model sees them."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize
from stress.mutants.catalogue.mutant import Mutant

BREAKS = "linearizability"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="A01",
        title="the last object of a pool is never handed out",
        origin="port",
        file="structures/object_pool.pxd",
        old="""
while handle < pool.limit:
    if not pool_ensure_chunk(pool, handle >> pool.chunk_bits):
        return 0
    if u32_cas_weak_relaxed(&pool.used, &handle, handle + 1):
        return handle
""",
        new="""
while handle + 1 < pool.limit:
    if not pool_ensure_chunk(pool, handle >> pool.chunk_bits):
        return 0
    if u32_cas_weak_relaxed(&pool.used, &handle, handle + 1):
        return handle
""",
        suite="object_pool",
        breaks=BREAKS,
        within=4_000,
    ),
    Mutant(
        id="A02",
        title="one expected read is reported as none",
        origin="port",
        file="structures/entry.pxd",
        old="return read_count != 0 and read_count_value(&pool.read_counts, read_count) >= 1",
        new="return read_count != 0 and read_count_value(&pool.read_counts, read_count) > 1",
        suite="entry",
        breaks=BREAKS,
        within=20_000,
        programs=ControlledSize(mix={"new": 2, "expected": 3, "release": 1}),
    ),
    Mutant(
        id="A03",
        title="a put at the last position of a page reports that it was taken",
        origin="port",
        file="structures/position_map.pxd",
        old="""
if page is NULL:
    return PML_NO_MEMORY
# Pairs with the readers' acquire of the slot.
""",
        new="""
if page is NULL:
    return PML_NO_MEMORY
if map_entry_slot(at.entry_id) == SLOTS - 1:
    page_leave(map.memory, page, page_handle, 1)
    return PML_EXISTS
# Pairs with the readers' acquire of the slot.
""",
        suite="position_map",
        breaks=BREAKS,
        within=4_000,
    ),
    Mutant(
        id="A04",
        title="a put into ledger 1 reports that memory ran out",
        origin="port",
        file="structures/position_map.pxd",
        old="""
if page is NULL:
    return PML_NO_MEMORY
# Pairs with the readers' acquire of the slot.
""",
        new="""
if page is NULL:
    return PML_NO_MEMORY
if at.ledger_id == 1:
    page_leave(map.memory, page, page_handle, 1)
    return PML_NO_MEMORY
# Pairs with the readers' acquire of the slot.
""",
        suite="position_map",
        breaks=BREAKS,
        within=4_000,
    ),
    Mutant(
        id="A05",
        title="a copy that does not count its read reports that memory ran out",
        origin="port",
        file="structures/entry.pxd",
        old="""
if not read_count and not pool.counts_of_4:
    return 0
copy = pool_take_chained(&pool.entries, &chain.entries)
""",
        new="""
if not read_count and not pool.counts_of_4:
    return 0
if read_count and not counts_read:
    read_count_release(&pool.read_counts, read_count)
    return 0
copy = pool_take_chained(&pool.entries, &chain.entries)
""",
        suite="entry",
        breaks=BREAKS,
        within=20_000,
    ),
)
