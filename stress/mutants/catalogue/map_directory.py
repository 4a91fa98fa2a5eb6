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
        within=20_000,
    ),
    Mutant(
        id="M09e",
        title="a search is proved without the acquire fence",
        origin="port",
        file=FILE,
        old="fence_acquire()",
        new="pass",
        suite="position_map",
        breaks="I7, I38",
        mode="c11",
        within=10_000,
        # The thread's own branch stays while branches before and after it come and go.
        calls=(
            (
                ("put_own", 0, 0),
                ("put_own", 26, 0),
                ("remove_own", 0, 0),
                ("put_own", 0, 0),
                ("remove_own", 26, 0),
            ),
            (("put_own", 13, 0), ("find_own", 13, 0)),
        ),
        settings={"chunk_bits": (0, 0), "limit": (64, 64), "spread": (5, 5)},
    ),
)
