"""Mistakes in structures/map_pages.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant
from stress.mutants.catalogue.position_map import BACK

FILE = "structures/map_pages.pxd"

START = """
fence_release()
ptr_store_relaxed(&node.owner, <void*>owner)
i64_store_relaxed(&node.ledger_id, ledger_id)
i64_store_relaxed(&node.first_id, first_id)
u32_store_relaxed(&node.parent, 0)
# Pairs with the acquire in map_recall.
u64_store_release(&node.version, u64_load_relaxed(&node.version) + 1)
"""

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="M63",
        title="an empty page is sealed by a plain store",
        origin="port",
        file=FILE,
        old="""
if i32_cas_weak_acq_rel(&node.count, &seen, after):
    return after == SEALED
""",
        new="""
if after == SEALED:
    i32_store_release(&node.count, SEALED)
    return True
if i32_cas_weak_acq_rel(&node.count, &seen, after):
    return False
""",
        suite="position_map",
        breaks="I39, I7",
    ),
    Mutant(
        id="MP-early",
        title="the version of a page is published before its label",
        origin="port",
        file=FILE,
        old=START,
        new="""
fence_release()
u64_store_release(&node.version, u64_load_relaxed(&node.version) + 1)
ptr_store_relaxed(&node.owner, <void*>owner)
i64_store_relaxed(&node.ledger_id, ledger_id)
i64_store_relaxed(&node.first_id, first_id)
u32_store_relaxed(&node.parent, 0)
""",
        suite="position_map",
        breaks="I11",
        rare=True,
    ),
    Mutant(
        id="MP-version",
        title="the version of a page is published by a relaxed store",
        origin="port",
        file=FILE,
        old=START,
        new="""
fence_release()
ptr_store_relaxed(&node.owner, <void*>owner)
i64_store_relaxed(&node.ledger_id, ledger_id)
i64_store_relaxed(&node.first_id, first_id)
u32_store_relaxed(&node.parent, 0)
u64_store_relaxed(&node.version, u64_load_relaxed(&node.version) + 1)
""",
        suite="position_map",
        breaks="I11",
        mode="c11",
        cimports="from pulsar_ml.sync.atomics cimport u64_store_relaxed",
    ),
    Mutant(
        id="MP-fence",
        title="a page is labelled anew without the release fence",
        origin="port",
        file=FILE,
        old=START,
        new="""
ptr_store_relaxed(&node.owner, <void*>owner)
i64_store_relaxed(&node.ledger_id, ledger_id)
i64_store_relaxed(&node.first_id, first_id)
u32_store_relaxed(&node.parent, 0)
u64_store_release(&node.version, u64_load_relaxed(&node.version) + 1)
""",
        suite="position_map",
        breaks="I11",
        mode="c11",
        calls=BACK,
        settings={"limit": (8, 8), "spread": (5, 5)},
    ),
)
