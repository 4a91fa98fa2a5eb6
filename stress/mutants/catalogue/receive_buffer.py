"""Mistakes in structures/receive_buffer.pxd."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize
from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/receive_buffer.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="B01",
        title="every cached slice pins its buffer again",
        origin="port",
        file=FILE,
        old="""
if i32_fetch_add_relaxed(&buffer.cached, 1) == 0:
    i64_fetch_add_relaxed(&buffer.books.pinned, buffer.capacity)
""",
        new="i64_fetch_add_relaxed(&buffer.books.pinned, buffer.capacity)",
        suite="receive_buffer",
        breaks="RB-2",
    ),
    Mutant(
        id="B02",
        title="the last slice is detected by a load and a store",
        origin="port",
        file=FILE,
        old="""
if i32_fetch_sub_relaxed(&buffer.cached, 1) == 1:
    i64_fetch_sub_relaxed(&buffer.books.pinned, buffer.capacity)
""",
        new="""
i32_store_relaxed(&buffer.cached, i32_load_relaxed(&buffer.cached) - 1)
if i32_load_relaxed(&buffer.cached) == 0:
    i64_fetch_sub_relaxed(&buffer.books.pinned, buffer.capacity)
""",
        suite="receive_buffer",
        breaks="RB-2",
        cimports="from pulsar_ml.sync.atomics cimport i32_load_relaxed",
        # Two threads take slices of one buffer out of the cache.
        programs=ControlledSize(operations=(6, 9), mix={"cut": 4, "cache": 8, "uncache": 8}),
    ),
    Mutant(
        id="B03",
        title="bytes are appended over the last ones",
        origin="port",
        file=FILE,
        old="buffer.filled += length",
        new="buffer.filled += length // 2",
        suite="receive_buffer",
        breaks="I2, RB-1",
    ),
)
