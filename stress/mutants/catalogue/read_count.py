"""Mistakes in structures/read_count.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/read_count.pxd"

MARK = """
seen = i32_load_relaxed(expected)
while seen > 0:
    if i32_cas_weak_relaxed(expected, &seen, seen - 1):
        return True
"""

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="M54",
        title="a read is marked by load and store",
        origin="port",
        file=FILE,
        old=MARK,
        new="""
seen = i32_load_relaxed(expected)
if seen > 0:
    i32_store_relaxed(expected, seen - 1)
    return True
""",
        suite="read_count",
        breaks="I67",
    ),
    Mutant(
        id="M55",
        title="a read below zero is stored as zero",
        origin="port",
        file=FILE,
        old=MARK,
        new="""
if i32_fetch_sub_relaxed(expected, 1) > 0:
    return True
i32_store_relaxed(expected, 0)
""",
        suite="read_count",
        breaks="I67",
    ),
    Mutant(
        id="EX-below",
        title="a read that was not expected takes the count below zero",
        origin="Pulsar before 5.0.1",
        file=FILE,
        old=MARK,
        new="""
i32_fetch_sub_relaxed(expected, 1)
return True
""",
        suite="read_count",
        breaks="EX-3",
    ),
)
