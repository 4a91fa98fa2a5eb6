"""Mistakes in structures/map_pages.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/map_pages.pxd"

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
)
