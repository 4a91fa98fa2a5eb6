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
        old="""
    if i32_cas_weak_relaxed(expected, &seen, seen - 1):
        return True
""",
        new="""
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
        old="""
seen = i32_load_relaxed(expected)
while seen > 0:
""",
        new="""
if i32_fetch_sub_relaxed(expected, 1) > 0:
    return True
i32_store_relaxed(expected, 0)
seen = 0
while seen > 0:
""",
        suite="read_count",
        breaks="I67",
    ),
    Mutant(
        id="EX-below",
        title="a read that was not expected takes the count below zero",
        origin="Pulsar before 5.0.1",
        file=FILE,
        old="while seen > 0:",
        new="while True:",
        suite="read_count",
        breaks="EX-3",
    ),
)
