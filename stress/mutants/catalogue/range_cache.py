"""Mistakes in structures/range_cache.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/range_cache.pxd"

LINK = """
status = map_put_if_absent(&cache.map, key, handle)
"""

REMOVE_ONE = """
wrapper = wrapper_at(&cache.memory.wrappers, handle)
stamped_lock_write(&wrapper.lock)
if wrapper_holds(wrapper, key, cache.number):
    range_cache_unlink(cache, key, handle, wrapper, &removed)
stamped_unlock_write(&wrapper.lock)
"""

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="H02",
        title="two removers give back the reference of one entry",
        origin="#10433, fixed by #22789",
        file=FILE,
        old=REMOVE_ONE,
        new="""
remove_whatever_is_there(cache, key, handle, wrapper_at(&cache.memory.wrappers, handle), &removed)
""",
        helper="""
cdef inline void remove_whatever_is_there(
    RangeCache* cache, Position key, uint32_t handle, EntryWrapper* wrapper, Removed* removed
) noexcept nogil:
    cdef uint32_t entry = u32_load_relaxed(&wrapper.value)
    cdef int64_t size
    if not entry:
        return
    stamped_lock_write(&wrapper.lock)
    map_remove(&cache.map, key, handle)
    size = wrapper_clear(wrapper, key, entry, cache.number)
    entry_release(&cache.memory.entries, entry, 1)
    if size >= 0:
        removed.bytes += size
        removed.entries += 1
    stamped_unlock_write(&wrapper.lock)
""",
        suite="range_cache",
        breaks="I16, I32, I14",
    ),
    Mutant(
        id="H03",
        title="put counts and reports success before it knows who won the position",
        origin="#21301, fixed by #21302",
        file=FILE,
        old=LINK,
        new="""
status = map_put_if_absent(&cache.map, key, handle)
if status == PML_EXISTS:
    i64_fetch_add_relaxed(&cache.size, length)
    wrapper_empty(wrapper)
    stamped_unlock_write(&wrapper.lock)
    wrapper_recycle(&memory.wrappers, handle)
    return PML_OK
""",
        suite="range_cache",
        breaks="I35, I17, I46",
    ),
    Mutant(
        id="H06",
        title="a read does not look at the wrapper again after it retained the entry",
        origin="like #22789; found here by the range_cache suite",
        file=FILE,
        old="""
if entry_retain(&memory.entries, entry):
    if wrapper_unchanged(wrapper, stamp):
        break
    entry_release(&memory.entries, entry, 1)
elif wrapper_unchanged(wrapper, stamp):
    return 0
""",
        new="""
if entry_retain(&memory.entries, entry):
    break
return 0
""",
        suite="broker_cache",
        breaks="I11, I1",
        rare=True,
    ),
    Mutant(
        id="H10",
        title="removal retains twice and releases once",
        origin="introduced by #23903, fixed by #23955",
        file=FILE,
        old="retained = entry_retain(&memory.entries, entry)",
        new="""
retained = entry_retain(&memory.entries, entry)
entry_retain(&memory.entries, entry)
""",
        suite="range_cache",
        breaks="I16, I17",
    ),
    Mutant(
        id="H12",
        title="the size is measured again at removal",
        origin="before #22789",
        file=FILE,
        old="removed.bytes += wrapper_clear(wrapper, key, entry, cache.number)",
        new="""
wrapper_clear(wrapper, key, entry, cache.number)
removed.bytes += entry_payload(entry_at(&memory.entries, entry)).length
""",
        suite="range_cache",
        breaks="I44, I43",
        cimports="from pulsar_ml.structures.entry cimport entry_at, entry_payload",
    ),
    Mutant(
        id="H13",
        title="the wrapper is queued before the map is asked",
        origin="#24363 before it was merged",
        file=FILE,
        old=LINK,
        new="""
mpsc_offer(cache.queue, handle)
status = map_put_if_absent(&cache.map, key, handle)
if status == PML_OK:
    i64_fetch_add_relaxed(&cache.size, length)
    stamped_unlock_write(&wrapper.lock)
    return PML_OK
""",
        suite="removal_queue",
        breaks="I22, I23, I24, I26",
    ),
    Mutant(
        id="M17",
        title="the remover recycles the wrapper instead of the queue's consumer",
        origin="port",
        file=FILE,
        old=REMOVE_ONE,
        new="""
wrapper = wrapper_at(&cache.memory.wrappers, handle)
stamped_lock_write(&wrapper.lock)
if wrapper_holds(wrapper, key, cache.number):
    range_cache_unlink(cache, key, handle, wrapper, &removed)
    stamped_unlock_write(&wrapper.lock)
    wrapper_recycle(&cache.memory.wrappers, handle)
else:
    stamped_unlock_write(&wrapper.lock)
""",
        suite="removal_queue",
        breaks="I25, I22",
    ),
    Mutant(
        id="M37",
        title="the size is added by load and store",
        origin="port",
        file=FILE,
        old="i64_fetch_add_relaxed(&cache.size, length)",
        new="i64_store_relaxed(&cache.size, i64_load_relaxed(&cache.size) + length)",
        suite="range_cache",
        breaks="I41, I45",
    ),
)
