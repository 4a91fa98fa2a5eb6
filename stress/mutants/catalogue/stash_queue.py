"""Mistakes in structures/stash_queue.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/stash_queue.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="P01",
        title="an entry that left the stash stays in it",
        origin="port",
        file=FILE,
        old="""
slot.value = 0
stash.holes += 1
""",
        new="""
if verdict == MISSING:
    slot.value = 0
    stash.holes += 1
""",
        suite="eviction_policy",
        breaks="I22, I23, I24",
    ),
)
