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
found = wrapper_holds(wrapper, key, cache.number)
if found:
    range_cache_unlink(cache, key, handle, wrapper, &removed)
stamped_unlock_write(&wrapper.lock)
if found and cache.queue is NULL:
    wrapper_recycle(&cache.memory.wrappers, handle)
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
        within=10_000,
        # The entry that the reader has seen is that of the same position in the other cache when it retains.
        calls=((("put", 0, 1, 0), ("remove_range", 0, 1, 0), ("put", 1, 1, 0)), (("get", 0, 1),)),
        settings={"caches": (2, 2), "keys": (8, 8), "chunk_bits": (2, 2), "queue_chunk_bits": (2, 2)},
        strategy="preemptions",
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
removed.bytes += payload_length(entry_payload(entry_at(&memory.entries, entry)))
""",
        suite="range_cache",
        breaks="I44, I43",
        cimports="from pulsar_ml.structures.entry cimport payload_length",
    ),
    Mutant(
        id="H13",
        title="the wrapper is queued before the map is asked",
        origin="#24363 before it was merged",
        file=FILE,
        old=LINK,
        new="""
if cache.queue is not NULL:
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
found = wrapper_holds(wrapper, key, cache.number)
if found:
    range_cache_unlink(cache, key, handle, wrapper, &removed)
stamped_unlock_write(&wrapper.lock)
if found:
    wrapper_recycle(&cache.memory.wrappers, handle)
""",
        suite="removal_queue",
        breaks="I25, I22",
    ),
    Mutant(
        id="H37",
        title="the newer expected reads of a duplicate are thrown away",
        origin="#24623, changed on the main line",
        file=FILE,
        old="range_cache_adopt(cache, key, entry)\n",
        new="pass\n",
        suite="expected_reads",
        breaks="I71",
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
    Mutant(
        id="B06",
        title="a removed slice keeps its buffer in the books",
        origin="port",
        file=FILE,
        old="range_cache_unpin(memory, entry, removed.bytes - before)",
        new="pass",
        suite="range_cache",
        breaks="RB-2",
    ),
    Mutant(
        id="B07",
        title="the length of a cached slice is not in the books",
        origin="port",
        file=FILE,
        old="range_cache_pin(memory, entry, length)",
        new="range_cache_pin(memory, entry, 0)",
        suite="range_cache",
        breaks="RB-2, RB-3",
    ),
    Mutant(
        id="M50",
        title="a read of a range leaves out its last position",
        origin="port",
        file=FILE,
        old="return map_cursor(first, last)",
        new="return map_cursor(first, position(last.ledger_id, last.entry_id - 1))",
        suite="range_cache",
        breaks="I5, I7",
        cimports="from pulsar_ml.structures.position cimport position",
    ),
    Mutant(
        id="H06b",
        title="a read does not ask whether the cache still holds its reference",
        origin="before #22789",
        file=FILE,
        old="""
# The wrapper's reference and ours, and its position, unless somebody released too often.
if entry_references(&memory.entries, entry) > 1 and entry_matches(&memory.entries, entry, key):
    if cache.touch is not NULL:
        cache.touch(cache.intake, handle, wrapper)
    return entry
""",
        new="""
if entry_matches(&memory.entries, entry, key):
    if cache.touch is not NULL:
        cache.touch(cache.intake, handle, wrapper)
    return entry
""",
        suite="range_cache",
        breaks="I16",
        equivalent="The wrapper did not change while the entry was retained, so it held its reference; a "
        "count of 1 takes a caller that released too often, and then no answer is right.",
    ),
    Mutant(
        id="H06c",
        title="a read does not compare the position of the entry that it retained",
        origin="before #22789",
        file=FILE,
        old="""
# The wrapper's reference and ours, and its position, unless somebody released too often.
if entry_references(&memory.entries, entry) > 1 and entry_matches(&memory.entries, entry, key):
    if cache.touch is not NULL:
        cache.touch(cache.intake, handle, wrapper)
    return entry
""",
        new="""
if entry_references(&memory.entries, entry) > 1:
    if cache.touch is not NULL:
        cache.touch(cache.intake, handle, wrapper)
    return entry
""",
        suite="range_cache",
        breaks="I1, I10",
        equivalent="The wrapper did not change while the entry was retained, so the entry is the one that it "
        "was filled with, whose position the put compared.",
    ),
)
