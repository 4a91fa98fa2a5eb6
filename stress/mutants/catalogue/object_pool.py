"""Mistakes in structures/object_pool.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/object_pool.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="M06",
        title="an object is given back by a relaxed exchange",
        origin="port",
        file=FILE,
        old="""
if u64_cas_weak_release(&pool.head, &seen, ((seen >> 32) + 1) << 32 | first):
    return
""",
        new="""
if u64_cas_weak_relaxed(&pool.head, &seen, ((seen >> 32) + 1) << 32 | first):
    return
""",
        suite="object_pool",
        breaks="OP-2, I34",
        cimports="from pulsar_ml.sync.atomics cimport u64_cas_weak_relaxed",
        mode="c11",
        within=4_000,
    ),
)
