"""Mistakes in structures/range_cache.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/range_cache.pxd"

RETAIN = """
if likely(refcount_retain_marked(&held.references)):
    if likely(wrapper_unchanged(wrapper, stamp)):
        break
    entry_release(&memory.entries, entry, 1)
elif wrapper_unchanged(wrapper, stamp):
    return 0
"""

LINK = """
status = map_put_if_absent(&cache.map, key, handle, &place)
"""

REMOVE_ONE = """
wrapper = wrapper_at(&cache.memory.wrappers, handle)
stamped_lock_write(&wrapper.lock)
found = wrapper_holds(wrapper, &cache.memory.map, cache, key)
if found:
    range_cache_unlink(cache, key, handle, wrapper, &removed)
stamped_unlock_write(&wrapper.lock)
if found and cache.queue is NULL:
    wrapper_recycle(&cache.memory.wrappers, handle)
"""

OWN_REFERENCE = "retained = refcount_retain(&held.references)"

HIT = """
# Its position, unless a holder released too often.
if likely(entry_is_at(held, key)):
    if unlikely(cache.touch is not NULL):
        range_cache_touch(cache, handle)
    return entry
"""

# A mistake of the caller that the cache survives.
OVER_RELEASED = ((("put", 0, 1, 0), ("over_release", 0, 1), ("clear", 0)),)

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
    size = wrapper_clear(wrapper, u32_load_relaxed(&wrapper.place), entry)
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
        title="put counts and reports success before it has won the position",
        origin="#21301, fixed by #21302",
        file=FILE,
        old=LINK,
        new="""
status = map_put_if_absent(&cache.map, key, handle, &place)
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
        title="a read does not check the wrapper again after it retained the entry",
        origin="like #22789; found here by the range_cache suite",
        file=FILE,
        old=RETAIN,
        new="""
if refcount_retain_marked(&held.references):
    break
return 0
""",
        suite="broker_cache",
        breaks="I11, I1",
        rare=True,
        within=10_000,
        # When the reader retains its entry, the entry is at the same position in the other cache.
        calls=(
            (("put", 0, 1, 0), ("remove_range", 0, 1, 0), ("put", 1, 1, 0)),
            (("read_range", 0, 1, 0),),
        ),
        settings={
            "caches": (2, 2),
            "keys": (8, 8),
            "chunk_bits": (2, 2),
            "queue_chunk_bits": (2, 2),
        },
        strategy="preemptions",
    ),
    Mutant(
        id="H06b",
        title="a read does not look again at what a page shows after it retained the entry",
        origin="like #22789",
        file=FILE,
        old="""
if likely(map_shows(page, key, entry, proof) and entry_is_at(held, key)):
    if unlikely(cache.touch is not NULL):
        range_cache_touch(cache, map_slot(page, key))
    return entry
""",
        new="""
if likely(entry_is_at(held, key)):
    if unlikely(cache.touch is not NULL):
        range_cache_touch(cache, map_slot(page, key))
    return entry
""",
        suite="broker_cache",
        breaks="I11, I1",
        rare=True,
        within=10_000,
        # As for H06, by the short way.
        calls=((("put", 0, 1, 0), ("remove_range", 0, 1, 0), ("put", 1, 1, 0)), (("get", 0, 1),)),
        settings={
            "caches": (2, 2),
            "keys": (8, 8),
            "chunk_bits": (2, 2),
            "queue_chunk_bits": (2, 2),
        },
        strategy="preemptions",
    ),
    Mutant(
        id="H03b",
        title="clear finally unlinks everything that is there",
        origin="#21301, fixed by #21302",
        file=FILE,
        old="i64_fetch_sub_relaxed(&cache.size, removed.bytes)",
        new="""
i64_fetch_sub_relaxed(&cache.size, removed.bytes)
if removed.entries < most_entries and most_entries < INT64_MAX:
    unlink_the_rest(cache)
""",
        helper="""
cdef inline void unlink_the_rest(RangeCache* cache) noexcept nogil:
    cdef MapCursor cursor = map_cursor(position(0, 0), position(INT64_MAX, INT64_MAX))
    cdef Position key
    cdef uint32_t handle = map_next(&cache.map, &cursor, &key)
    while handle:
        map_remove(&cache.map, key, handle)
        handle = map_next(&cache.map, &cursor, &key)
""",
        suite="range_cache",
        breaks="I42, I46, I47",
        cimports="from libc.stdint cimport INT64_MAX",
    ),
    Mutant(
        id="H06e",
        title="a removal holds no reference of its own",
        origin="before #22789",
        file=FILE,
        old=OWN_REFERENCE,
        new="""
removed.bytes += wrapper_clear(wrapper, u32_load_relaxed(&wrapper.place), entry)
removed.entries += 1
if cache.intake.merges_counts and entry_read_count(&memory.entries, entry):
    read_count_mark_evicted(&memory.entries.read_counts, entry_read_count(&memory.entries, entry))
range_cache_unpin(held, removed.bytes - before)
entry_release(&memory.entries, entry, 1)
return
""",
        suite="range_cache",
        breaks="I18",
    ),
    Mutant(
        id="H07",
        title="an entry is taken out of the map only if it could be retained",
        origin="#22814",
        file=FILE,
        function="range_cache_unlink",
        old="map_remove_near(&cache.map, key, handle, &removed.near)",
        new="""
if not entry_retain(&memory.entries, entry):
    return
entry_release(&memory.entries, entry, 1)
map_remove_near(&cache.map, key, handle, &removed.near)
""",
        suite="range_cache",
        breaks="I103, I43",
        calls=OVER_RELEASED,
    ),
    Mutant(
        id="L09",
        title="a value that was released too often keeps its bytes in the size",
        origin="Pulsar 4.1; our own finding",
        file=FILE,
        old=OWN_REFERENCE,
        new="""
retained = refcount_retain(&held.references)
if not retained:
    return
""",
        suite="range_cache",
        breaks="I43",
        calls=OVER_RELEASED,
    ),
    Mutant(
        id="M45",
        title="a put takes the queue's monitor inside the wrapper's write section",
        origin="port",
        file=FILE,
        old="""
if cache.queue is not NULL:
    status = mpsc_offer(cache.queue, handle)
""",
        new="""
monitor_enter(&cache.intake.monitor)
if cache.queue is not NULL:
    status = mpsc_offer(cache.queue, handle)
monitor_leave(&cache.intake.monitor)
""",
        suite="removal_queue",
        breaks="I101",
    ),
    Mutant(
        id="M46",
        title="a put that fails leaves its write section open",
        origin="port",
        file=FILE,
        old="""
if status != PML_OK:
    wrapper_empty(wrapper)
stamped_unlock_write(&wrapper.lock)
""",
        new="""
if status != PML_OK:
    wrapper_empty(wrapper)
else:
    stamped_unlock_write(&wrapper.lock)
""",
        suite="range_cache",
        breaks="I102",
    ),
    Mutant(
        id="M47",
        title="a removal enters the wrapper's section a second time",
        origin="port",
        file=FILE,
        old=OWN_REFERENCE,
        new="""
stamped_lock_write(&wrapper.lock)
retained = refcount_retain(&held.references)
stamped_unlock_write(&wrapper.lock)
""",
        suite="range_cache",
        breaks="I105",
    ),
    Mutant(
        id="M48",
        title="a hit is reported inside the wrapper's section",
        origin="port",
        file=FILE,
        old=HIT,
        new="""
if entry_is_at(held, key):
    if cache.touch is not NULL:
        stamped_lock_write(&wrapper.lock)
        cache.touch(cache.intake, handle, wrapper)
        stamped_unlock_write(&wrapper.lock)
    return entry
""",
        suite="removal_queue",
        breaks="I84, I101",
    ),
    Mutant(
        id="M49",
        title="a read that has to retry keeps its reference",
        origin="port",
        file=FILE,
        old=RETAIN,
        new="""
if refcount_retain_marked(&held.references):
    if wrapper_unchanged(wrapper, stamp):
        break
elif wrapper_unchanged(wrapper, stamp):
    return 0
""",
        suite="range_cache",
        breaks="I17",
    ),
    Mutant(
        id="M51",
        title="a removal omits its last position",
        origin="port",
        file=FILE,
        old="handle = map_next(&cache.map, cursor, &key)",
        new="""
handle = map_next(&cache.map, cursor, &key)
if key.ledger_id == cursor.last.ledger_id and key.entry_id == cursor.last.entry_id:
    break
""",
        suite="range_cache",
        breaks="I8, I43",
    ),
    Mutant(
        id="M53",
        title="a read of a range checks neither the wrapper nor the position after it retained",
        origin="port",
        file=FILE,
        old="entry = range_cache_retain(cache, handle, found)",
        new="entry = retain_what_it_says(cache, handle, found)",
        helper="""
cdef inline uint32_t retain_what_it_says(
    const RangeCache* cache, uint32_t handle, Position key
) noexcept nogil:
    cdef CacheMemory* memory = cache.memory
    cdef uint32_t stamp
    cdef uint32_t entry = wrapper_read(
        wrapper_at(&memory.wrappers, handle), &memory.map, cache, key, &stamp)
    return entry if entry and entry_retain(&memory.entries, entry) else 0
""",
        suite="range_cache",
        breaks="I10, I1",
        calls=(
            (("put", 0, 1, 0), ("remove_range", 0, 1, 0), ("put", 0, 5, 0)),
            (("read_range", 0, 0, 3),),
        ),
        settings={
            "caches": (1, 1),
            "keys": (8, 8),
            "chunk_bits": (2, 2),
            "queue_chunk_bits": (2, 2),
        },
        strategy="preemptions",
    ),
    Mutant(
        id="H10",
        title="removal retains twice and releases once",
        origin="introduced by #23903, fixed by #23955",
        file=FILE,
        old=OWN_REFERENCE,
        new="""
retained = refcount_retain(&held.references)
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
        old="removed.bytes += wrapper_clear(wrapper, u32_load_relaxed(&wrapper.place), entry)",
        new="""
wrapper_clear(wrapper, u32_load_relaxed(&wrapper.place), entry)
removed.bytes += payload_length(entry_payload(entry_at(&memory.entries, entry)))
""",
        suite="range_cache",
        breaks="I44, I43",
        cimports="from pulsar_ml.structures.entry cimport payload_length",
    ),
    Mutant(
        id="H13",
        title="the wrapper is queued before the map is searched",
        origin="#24363 before it was merged",
        file=FILE,
        old=LINK,
        new="""
if cache.queue is not NULL:
    mpsc_offer(cache.queue, handle)
status = map_put_if_absent(&cache.map, key, handle, &place)
if status == PML_OK:
    wrapper_fill(wrapper, place, entry, length, now)
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
found = wrapper_holds(wrapper, &cache.memory.map, cache, key)
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
        title="the newer expected reads of a duplicate are dropped",
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
        title="a removed slice keeps its buffer in the size",
        origin="port",
        file=FILE,
        old="range_cache_unpin(held, removed.bytes - before)",
        new="pass",
        suite="range_cache",
        breaks="RB-2",
    ),
    Mutant(
        id="B07",
        title="the length of a cached slice is not in the size",
        origin="port",
        file=FILE,
        old="range_cache_pin(entry_at(&memory.entries, entry), length)",
        new="range_cache_pin(entry_at(&memory.entries, entry), 0)",
        suite="range_cache",
        breaks="RB-2, RB-3",
    ),
    Mutant(
        id="M50",
        title="a read of a range omits its last position",
        origin="port",
        file=FILE,
        old="return map_cursor(first, last)",
        new="return map_cursor(first, position(last.ledger_id, last.entry_id - 1))",
        suite="range_cache",
        breaks="I5, I7",
        cimports="from pulsar_ml.structures.position cimport position",
    ),
    Mutant(
        id="H06c",
        title="a read does not compare the position of the entry that it retained",
        origin="before #22789",
        file=FILE,
        old=HIT,
        new="""
if cache.touch is not NULL:
    range_cache_touch(cache, handle)
return entry
""",
        suite="range_cache",
        breaks="I1, I10",
    ),
)
