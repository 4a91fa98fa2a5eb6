"""Mistakes in structures/stamped_lock.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/stamped_lock.pxd"

UNCHANGED = """
return (not stamp & STAMPED_WRITER
        and not ((u32_load_relaxed(lock) ^ stamp) & ~<uint32_t>STAMPED_READERS))
"""

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="H08c",
        title="a stamp taken inside a write section is valid until the section ends",
        origin="the step from #22814 to #22818",
        file=FILE,
        old=UNCHANGED,
        new="return not ((u32_load_relaxed(lock) ^ stamp) & ~<uint32_t>STAMPED_READERS)",
        suite="stamped_lock",
        breaks="I9, SL-3",
    ),
    Mutant(
        id="M05",
        title="the version has two bits (with sixteen, 32,768 write sections would have to fit in one read)",
        origin="port",
        file=FILE,
        old=UNCHANGED,
        new="""
return (not stamp & STAMPED_WRITER
        and not ((u32_load_relaxed(lock) ^ stamp) & (7 * STAMPED_WRITER)))
""",
        suite="stamped_lock",
        breaks="I29, SL-1",
    ),
    # For the engine ----------------------------------------------------------------------
    Mutant(
        id="M01",
        title="an optimistic read is validated without the acquire fence",
        origin="port",
        file=FILE,
        old="fence_acquire()",
        new="pass",
        suite="stamped_lock",
        breaks="I9",
        mode="c11",
        within=4_000,
    ),
    Mutant(
        id="M02",
        title="a write section begins without the release fence",
        origin="port",
        file=FILE,
        old="fence_release()",
        new="pass",
        suite="stamped_lock",
        breaks="I9",
        mode="c11",
        within=4_000,
    ),
    Mutant(
        id="M02b",
        title="a write section ends with a relaxed store",
        origin="port",
        file=FILE,
        old="u32_store_release(lock, u32_load_relaxed(lock) + STAMPED_WRITER)",
        new="u32_store_relaxed(lock, u32_load_relaxed(lock) + STAMPED_WRITER)",
        suite="stamped_lock",
        breaks="I9, SL-2",
        cimports="from pulsar_ml.sync.atomics cimport u32_store_relaxed",
        mode="c11",
        within=4_000,
    ),
)
