"""Mistakes in structures/cache_manager.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/cache_manager.pxd"

MARK = """
if u32_exchange_acq_rel(&manager.marker, 1) != 0:
    return False
"""

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="H14",
        title="whoever finds the marker set clears it",
        origin="#24623, fixed by #25988",
        file=FILE,
        old=MARK,
        new="""
if u32_exchange_acq_rel(&manager.marker, 1) != 0:
    u32_exchange_acq_rel(&manager.marker, 0)
    return False
""",
        suite="cache_manager",
        breaks="I61",
    ),
    Mutant(
        id="M36",
        title="the manager's size is taken off by entry and by pass",
        origin="port",
        file=FILE,
        old="i64_fetch_sub_relaxed(&manager.size, removed.bytes)",
        new="i64_fetch_sub_relaxed(&manager.size, removed.bytes + removed.bytes // removed.entries)",
        suite="cache_manager",
        breaks="I42",
    ),
    Mutant(
        id="M37b",
        title="the manager's size is added by load and store",
        origin="port",
        file=FILE,
        old="size = i64_fetch_add_acq_rel(&manager.size, length) + length",
        new="""
size = i64_load_relaxed(&manager.size) + length
i64_store_relaxed(&manager.size, size)
""",
        suite="cache_manager",
        breaks="I42",
    ),
    Mutant(
        id="M38",
        title="removed bytes are counted in 32 bits",
        origin="port",
        file=FILE,
        old="i64_fetch_sub_relaxed(&manager.size, removed.bytes)",
        new="i64_fetch_sub_relaxed(&manager.size, <int32_t>removed.bytes)",
        suite="cache_manager",
        breaks="I49, I42",
    ),
    Mutant(
        id="M39",
        title="the trigger waits for one entry more",
        origin="port",
        file=FILE,
        old="""
if size > i64_load_relaxed(&manager.threshold):
    cache_manager_trigger(manager, now)
""",
        new="""
if size > i64_load_relaxed(&manager.threshold) + 64:
    cache_manager_trigger(manager, now)
""",
        suite="cache_manager",
        breaks="I63",
        mode="sc",
        within=12_000,
    ),
    Mutant(
        id="M41",
        title="the marker is cleared before the pass runs",
        origin="port",
        file=FILE,
        old="""
inserted = i64_load_acquire(&manager.inserted_entries)
""",
        new="""
u32_exchange_acq_rel(&manager.marker, 0)
inserted = i64_load_acquire(&manager.inserted_entries)
""",
        suite="cache_manager",
        breaks="I61",
    ),
    Mutant(
        id="L10",
        title="an insert that finds a task at its end is forgotten",
        origin="#24623; our own finding",
        file=FILE,
        old="""
if not freed and i64_load_relaxed(&manager.inserted_entries) == inserted:
    return
""",
        new="""
if not freed or freed:
    return
""",
        suite="cache_manager",
        breaks="I62, I63",
        mode="sc",
        within=12_000,
    ),
    Mutant(
        id="CM-marker",
        title="the marker is cleared by a plain release store",
        origin="port",
        file=FILE,
        old="u32_exchange_acq_rel(&manager.marker, 0)",
        new="u32_store_release(&manager.marker, 0)",
        suite="cache_manager",
        breaks="I62, I63",
        mode="c11",
        cimports="from pulsar_ml.sync.atomics cimport u32_store_release",
        within=12_000,
    ),
)
