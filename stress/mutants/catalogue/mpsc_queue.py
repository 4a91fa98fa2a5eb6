"""Mistakes in structures/mpsc_queue.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/mpsc_queue.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="Q01",
        title="a producer fills its slot by a relaxed store",
        origin="port",
        file=FILE,
        old="u32_store_release(&chunk.slots[place], handle)",
        new="u32_store_relaxed(&chunk.slots[place], handle)",
        suite="mpsc_queue",
        breaks="MQ-1",
        mode="c11",
    ),
)
