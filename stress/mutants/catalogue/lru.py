"""Mistakes in structures/lru.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/lru.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="P03",
        title="a hit lists a wrapper again that a pass dropped meanwhile",
        origin="port",
        file=FILE,
        old="""
if node is not NULL and node.listed and list.newest != handle:
    lru_unlink(list, handle)
    lru_link(list, handle)
""",
        new="""
if node is not NULL and list.newest != handle:
    if node.listed:
        lru_unlink(list, handle)
    lru_link(list, handle)
""",
        suite="eviction_policy",
        breaks="I22, I23, I24",
    ),
)
