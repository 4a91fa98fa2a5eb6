"""Mistakes in structures/s3_fifo.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/s3_fifo.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="P04",
        title="a wrapper found empty is recycled and stays in its queue",
        origin="port",
        file=FILE,
        old="slot = ring_pop(ring)",
        new="slot = ring_at(ring, ring.head)[0] if verdict == MISSING else ring_pop(ring)",
        suite="eviction_policy",
        breaks="I23, I24, I60",
    ),
)
