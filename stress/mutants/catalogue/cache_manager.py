"""Mistakes in structures/cache_manager.pxd."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize
from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/cache_manager.pxd"

MARK = """
if u32_exchange_acq_rel(&manager.marker, 1) != 0:
    return False
"""

TASK_ENDS = """
if (not freed and i64_load_relaxed(&manager.inserted_entries) == inserted
        and i64_load_relaxed(&manager.changes) == changes):
    return
"""
# A put goes above the threshold while the task of another put ends.
CROSSING = ((("put", 0, 4, 0), ("put", 0, 3, 0)), (("put", 0, 9, 0),))
ONE_CACHE = {
    "caches": (1, 1),
    "keys": (16, 16),
    "policy": (0, 0),
    "max_requeue": (0, 0),
    "max_size": (100, 100),
    "watermark": (50, 50),
}

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="CM-look",
        title="a read of the size orders nothing",
        origin="port",
        file=FILE,
        old="""
if i64_fetch_add_acq_rel(&manager.size, 0) <= i64_load_relaxed(&manager.threshold):
    return False
""",
        new="""
if i64_fetch_add_relaxed(&manager.size, 0) <= i64_load_relaxed(&manager.threshold):
    return False
""",
        suite="cache_manager",
        breaks="I63, I65",
        mode="c11",
        # The first put fits by the new settings, the second one by the old ones.
        calls=((("put", 0, 4, 0), ("configure", 100, 50, 0)), (("put", 0, 9, 0),)),
        settings={**ONE_CACHE, "max_size": (200, 200)},
    ),
    Mutant(
        id="M40",
        title="a pass frees by a size that it read before it waited for the monitor",
        origin="port",
        file=FILE,
        old="""
monitor_enter(&manager.monitor)
size = i64_load_relaxed(&manager.size)
excess = size - i64_load_relaxed(&manager.low_mark)
""",
        new="""
size = i64_load_relaxed(&manager.size)
excess = size - i64_load_relaxed(&manager.low_mark)
monitor_enter(&manager.monitor)
""",
        suite="cache_manager",
        breaks="I53",
        programs=ControlledSize((2, 3), (4, 6), {"put": 5, "evict": 2}),
        settings={
            "caches": (1, 1),
            "keys": (16, 16),
            "max_size": (120, 240),
            "watermark": (10, 30),
        },
    ),
    Mutant(
        id="H14",
        title="a thread that finds the marker set clears it",
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
        title="the manager's size is reduced by each entry and again by the pass",
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
        title="the trigger comes one entry late",
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
        title="an insert that races with a finishing task triggers no eviction",
        origin="#24623; our own finding",
        file=FILE,
        old=TASK_ENDS,
        new="""
if not freed or freed:
    return
""",
        suite="cache_manager",
        breaks="I62, I63",
        mode="sc",
        within=12_000,
        calls=CROSSING,
        settings=ONE_CACHE,
    ),
    Mutant(
        id="CM-change",
        title="a change of the settings that races with a finishing task triggers no eviction",
        origin="our own finding",
        file=FILE,
        old=TASK_ENDS,
        new="""
if not freed and i64_load_relaxed(&manager.inserted_entries) == inserted:
    return
""",
        suite="cache_manager",
        breaks="I63",
        mode="sc",
        within=4_000,
        calls=(
            (("configure", 4096, 50, 1000), ("put", 0, 0, 0), ("tick",)),
            (("configure_policy", 0, 0), ("configure", 0, 10, 1000)),
        ),
        settings={"policy": (0, 0), "max_size": (4096, 4096)},
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
        calls=CROSSING,
        settings=ONE_CACHE,
    ),
    Mutant(
        id="ET-outside",
        title="the thread is started outside of the lock under which it is said to be there",
        origin="our own finding",
        file="structures/eviction_thread.pxd",
        old="""
if not manager.serving and not manager.stopping:
    manager.serving = thread_start(&manager.thread, eviction_body, manager) == 0
    status = PML_OK if manager.serving else PML_NO_MEMORY
condition_leave(&manager.work)
""",
        new="""
if not manager.serving and not manager.stopping:
    manager.serving = True
    status = PML_OK
condition_leave(&manager.work)
if status == PML_OK and thread_start(&manager.thread, eviction_body, manager) != 0:
    condition_enter(&manager.work)
    manager.serving = False
    condition_leave(&manager.work)
    status = PML_NO_MEMORY
""",
        suite="cache_manager",
        breaks="ET-3",
        within=2_000,
        calls=((("serve", 0, 0, 1), ("serve", 0, 0, 1)), (("serve", 0, 1, 1),)),
        settings=ONE_CACHE,
    ),
)
