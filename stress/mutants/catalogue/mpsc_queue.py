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
        within=4_000,
    ),
    Mutant(
        id="Q02",
        title="a producer publishes the next chunk by a relaxed store of the tail",
        origin="port",
        file=FILE,
        old="u64_store_release(&queue.tail, tail + 2)",
        new="u64_store_relaxed(&queue.tail, tail + 2)",
        suite="mpsc_queue",
        breaks="MQ-1, MQ-3",
        cimports="from pulsar_ml.sync.atomics cimport u64_store_relaxed",
        mode="c11",
        within=4_000,
        strategy="random",
    ),
)
