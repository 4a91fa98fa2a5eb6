"""Mistakes in structures/read_count.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/read_count.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="M54",
        title="a read is marked by load and store",
        origin="port",
        file=FILE,
        old="i32_fetch_sub_relaxed(&read_count_at(pool, handle).expected, 1)",
        new="""
i32_store_relaxed(&read_count_at(pool, handle).expected,
                  i32_load_relaxed(&read_count_at(pool, handle).expected) - 1)
""",
        suite="read_count",
        breaks="I67",
    ),
    Mutant(
        id="M55",
        title="a read below zero is stored as zero",
        origin="port",
        file=FILE,
        old="i32_fetch_sub_relaxed(&read_count_at(pool, handle).expected, 1)",
        new="""
if i32_fetch_sub_relaxed(&read_count_at(pool, handle).expected, 1) <= 0:
    i32_store_relaxed(&read_count_at(pool, handle).expected, 0)
""",
        suite="read_count",
        breaks="I67",
    ),
)
