"""Mistakes in structures/map_directory.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/map_directory.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="M09c",
        title="the branch of a directory's record is read relaxed",
        origin="found here by the engine in the position_map suite",
        file=FILE,
        old="return <uint32_t>u64_load_acquire(&array.records[index].branch)",
        new="return <uint32_t>u64_load_relaxed(&array.records[index].branch)",
        suite="position_map",
        breaks="I38",
        mode="c11",
    ),
)
