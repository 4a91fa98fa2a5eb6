# The cached entries of one managed ledger, by position: reads that take no lock beside inserts,
# invalidation and eviction.
#
# Origin       RangeCache (Pulsar 4.1) over pages as on its main line. Mended here: a value that
#              a holder released too often no longer leaves its bytes in the counters; a failed
#              insert leaves nothing behind.
# Threads      put, get, exists, ranges, removal, size: any thread. delete: alone, after everything
#              was removed; it waits for a pass that is inside.
# Invariants   RC-1 (I1-I5) a read answers the entry of that position with one reference for the
#              caller, or nothing and changes no count; a range is ascending, without duplicates,
#              inside its bounds.
#              RC-2 (I31) a position has at most one live wrapper.
#              RC-3 (I40, I44, I45) the size is never negative; each incarnation is added once and
#              taken off once, by the size stored at insertion.
#              RC-4 (I21, I22) a wrapper is linked in the map before it is queued, both inside one
#              write section; under a policy without a queue it is linked only.
#              RC-5 (I101) no monitor and no second wrapper lock is taken inside a write section.
# Ordering     See entry_wrapper.pxd, position_map.pxd, refcount.pxd. `size` orders nothing.
# Reclamation  Removal takes the wrapper out of the map and empties it; the eviction policy recycles
#              it, or the remover where nothing is queued. Cached entries give back the wrapper's
#              reference at once; for their memory, at most UNSETTLED of them wait for each other.
# Not promised A range is not a snapshot: entries put or removed meanwhile may or may not be in it.
#              A hit does not mean that the entry is still cached when the caller looks at it.
#              A read that comes too late may leave its mark on a later incarnation of the entry:
#              a spurious "recently used".

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsar_ml.structures.entry cimport (
    Entry, EntryChain, EntryPool, entry_adopt_reads, entry_at, entry_forget_access, entry_give_chain,
    entry_hold_reads, entry_is_at, entry_matches, entry_payload,
    entry_pool_destroy, entry_pool_init, entry_read_count, entry_references, entry_release,
    entry_release_chained, entry_retain, payload_source,
)
from pulsar_ml.structures.entry_wrapper cimport (
    EntryWrapper, wrapper_at, wrapper_clear, wrapper_empty, wrapper_fill, wrapper_holds, wrapper_look,
    wrapper_pool_init, wrapper_read, wrapper_recycle, wrapper_unchanged,
)
from pulsar_ml.structures.map_pages cimport (
    MapMemory, MapPage, map_memory_destroy, map_memory_init, place_owner,
)
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.mpsc_queue cimport MpscQueue, mpsc_offer
from pulsar_ml.structures.object_pool cimport (
    Pool, pool_at, pool_destroy, pool_give, pool_init, pool_take,
)
from pulsar_ml.structures.policy_intake cimport PolicyIntake, Touch
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.position_map cimport (
    MapCursor, MapNear, PositionMap, map_cursor, map_destroy, map_find, map_init, map_leave_near,
    map_next, map_put_if_absent, map_recall, map_remove, map_remove_near, map_show, map_shown,
    map_shows, map_slot,
)
from pulsar_ml.structures.read_count cimport (
    read_count_add, read_count_mark_evicted, read_count_release, read_count_value,
)
from pulsar_ml.structures.receive_buffer cimport (
    BufferBooks, ReceiveBuffer, receive_buffer_pin, receive_buffer_unpin,
)
from pulsar_ml.structures.refcount cimport refcount_retain, refcount_retain_marked, refcount_value
from pulsar_ml.structures.stamped_lock cimport stamped_lock_write, stamped_unlock_write
from pulsar_ml.structures.status cimport (
    PML_DEALLOCATED, PML_EXISTS, PML_MISMATCH, PML_NO_MEMORY, PML_OK, Status,
)
from pulsar_ml.sync.atomics cimport (
    i64_fetch_add_relaxed, i64_fetch_sub_relaxed, i64_load_relaxed, i64_store_relaxed, pml_i64, pml_u32,
    u32_load_relaxed, u32_store_relaxed, u32_store_release,
)
from pulsar_ml.sync.branch cimport likely, unlikely


cdef enum:
    UNSETTLED = 64          # most entries that a removal holds back from their pool


# The type-stable memory that the range caches of one manager share. It grows with use and goes as a
# whole; handles of one memory mean nothing in another.
cdef struct CacheMemory:
    EntryPool entries
    Pool wrappers
    MapMemory map
    Pool caches
    BufferBooks buffers


cdef struct RangeCache:
    PositionMap map         # first: the map that a page names is a cache
    CacheMemory* memory
    # of the policy that all caches of a manager share; NULL: nothing is queued
    MpscQueue* queue
    Touch touch             # the policy's
    PolicyIntake* intake
    uint32_t number         # this cache's handle in the memory
    pml_u32 open            # set (release) once the cache can be scanned; cleared under the monitor
    char[56] apart          # keeps the size off the lines that readers use
    pml_i64 size            # bytes
    pml_i64 link            # next free cache while pooled
    char[48] apart_too


# The entries and bytes that a removal took out, and what range_cache_settle has to give back.
cdef struct Removed:
    int64_t entries
    int64_t bytes
    MapNear near
    EntryChain released     # entries whose last reference was the cache's


# Memory and life ---------------------------------------------------------------------------------

# chunk_bits: objects of a chunk as a power of two; limit: most objects of a kind. On failure
# everything is given back.
cdef inline Status cache_memory_init(CacheMemory* memory, uint32_t chunk_bits, uint32_t limit) noexcept nogil:
    cdef Status status
    memset(memory, 0, sizeof(CacheMemory))
    status = entry_pool_init(&memory.entries, chunk_bits, limit)
    if status == PML_OK:
        status = wrapper_pool_init(&memory.wrappers, chunk_bits, limit)
    if status == PML_OK:
        status = map_memory_init(&memory.map, chunk_bits, limit)
    if status == PML_OK:
        status = pool_init(&memory.caches, sizeof(RangeCache), <size_t>&(<RangeCache*>NULL).link, 4, limit)
    if status != PML_OK:
        cache_memory_destroy(memory)
    return status


# When no cache, no queue and no entry of the memory is left.
cdef inline void cache_memory_destroy(CacheMemory* memory) noexcept nogil:
    entry_pool_destroy(&memory.entries)
    pool_destroy(&memory.wrappers)
    map_memory_destroy(&memory.map)
    pool_destroy(&memory.caches)


cdef inline RangeCache* range_cache_at(const CacheMemory* memory, uint32_t number) noexcept nogil:
    return <RangeCache*>pool_at(&memory.caches, number)


# Inside the write section of a wrapper that is not empty: its cache.
cdef inline RangeCache* range_cache_of(const CacheMemory* memory, const EntryWrapper* wrapper) noexcept nogil:
    return <RangeCache*>place_owner(&memory.map, u32_load_relaxed(&wrapper.place))


# An empty cache, or NULL when memory ran out.
cdef inline RangeCache* range_cache_new(CacheMemory* memory, PolicyIntake* intake) noexcept nogil:
    cdef uint32_t number = pool_take(&memory.caches)
    cdef RangeCache* cache
    if not number:
        return NULL
    cache = range_cache_at(memory, number)
    cache.memory = memory
    cache.queue = &intake.queue if intake.queued else NULL
    cache.touch = intake.touch
    cache.intake = intake
    cache.number = number
    i64_store_relaxed(&cache.size, 0)
    if map_init(&cache.map, &memory.map) != PML_OK:
        pool_give(&memory.caches, number)
        return NULL
    # Pairs with the acquire of a pass that scans all caches.
    u32_store_release(&cache.open, 1)
    return cache


# Nobody else inside, and everything was removed. A pass may still hold a wrapper of this cache, or
# scan it: the monitor waits for it, and a later one does not find the cache.
cdef inline void range_cache_delete(RangeCache* cache) noexcept nogil:
    monitor_enter(&cache.intake.monitor)
    u32_store_relaxed(&cache.open, 0)
    monitor_leave(&cache.intake.monitor)
    map_destroy(&cache.map)
    pool_give(&cache.memory.caches, cache.number)


cdef inline int64_t range_cache_size(const RangeCache* cache) noexcept nogil:
    return i64_load_relaxed(&cache.size)


# Insertion ---------------------------------------------------------------------------------------

# Caches the entry under its position; `length` bytes are counted for it until it is removed.
# The caller holds a reference. PML_OK: it belongs to the cache now. Otherwise the caller keeps it
# and nothing changed: PML_EXISTS (taken; but the cached entry has the newer expected reads, unless
# the policy is released_queue), PML_MISMATCH (the entry's own position differs), PML_DEALLOCATED
# (an entry without a reference), PML_NO_MEMORY.
cdef inline Status range_cache_put(
    RangeCache* cache, Position key, uint32_t entry, uint32_t length, int64_t now
) noexcept nogil:
    cdef CacheMemory* memory = cache.memory
    cdef Status status
    # The caller's reference is enough: once the entry is visible, an evictor may take the cache's
    # at any time, but nothing below looks at the entry after that.
    if entry_references(&memory.entries, entry) <= 0:
        return PML_DEALLOCATED
    if not entry_matches(&memory.entries, entry, key):
        return PML_MISMATCH
    # A duplicate is seen before a wrapper is made for it; one that comes meanwhile, by the map.
    status = PML_EXISTS if range_cache_exists(cache, key) else range_cache_link(
        cache, key, entry, length, now)
    if status == PML_EXISTS:
        if cache.intake.merges_counts:
            range_cache_merge(cache, key, entry)
        elif not memory.entries.counts_of_4:
            range_cache_adopt(cache, key, entry)
    return status


# The cached entry shares the expected reads of a duplicate from here on: the newest put knows best
# which reads will come. Copies that were made before keep what they share.
cdef inline void range_cache_adopt(RangeCache* cache, Position key, uint32_t entry) noexcept nogil:
    cdef CacheMemory* memory = cache.memory
    cdef uint32_t handle = map_find(&cache.map, key)
    cdef EntryWrapper* wrapper
    cdef uint32_t cached
    # It left meanwhile. Wrapper 0 holds no position, and nobody needs its lock.
    if not handle:
        return
    wrapper = wrapper_at(&memory.wrappers, handle)
    stamped_lock_write(&wrapper.lock)
    if wrapper_holds(wrapper, &memory.map, cache, key):
        cached = u32_load_relaxed(&wrapper.value)
        if entry_retain(&memory.entries, cached):
            if entry_matches(&memory.entries, cached, key):
                entry_adopt_reads(&memory.entries, cached, entry)
            entry_release(&memory.entries, cached, 1)
    stamped_unlock_write(&wrapper.lock)


# A duplicate's expected reads are added to those of the cached entry.
cdef inline void range_cache_merge(const RangeCache* cache, Position key, uint32_t entry) noexcept nogil:
    cdef CacheMemory* memory = cache.memory
    cdef uint32_t more = entry_read_count(&memory.entries, entry)
    cdef uint32_t cached = range_cache_get(cache, key) if more else 0
    cdef uint32_t count
    if not cached:
        return
    count = entry_hold_reads(&memory.entries, cached, True)
    if count:
        read_count_add(&memory.entries.read_counts, count,
                       read_count_value(&memory.entries.read_counts, more))
        read_count_release(&memory.entries.read_counts, count)
    entry_release(&memory.entries, cached, 1)


cdef inline Status range_cache_link(
    RangeCache* cache, Position key, uint32_t entry, uint32_t length, int64_t now
) noexcept nogil:
    cdef CacheMemory* memory = cache.memory
    cdef uint32_t handle = pool_take(&memory.wrappers)
    cdef EntryWrapper* wrapper
    cdef uint32_t place
    cdef Status status
    if not handle:
        return PML_NO_MEMORY
    wrapper = wrapper_at(&memory.wrappers, handle)
    # One write section around linking and filling: a thread that finds the wrapper in the map waits
    # until it is queued and counted, so size is never taken off before it was added.
    stamped_lock_write(&wrapper.lock)
    entry_forget_access(&memory.entries, entry)
    # The map first: a wrapper that lost its position must not be in the queue (#24363).
    status = map_put_if_absent(&cache.map, key, handle, &place)
    if status == PML_OK:
        wrapper_fill(wrapper, place, entry, length, now)
        if cache.queue is not NULL:
            status = mpsc_offer(cache.queue, handle)
        if status == PML_OK:
            i64_fetch_add_relaxed(&cache.size, length)
            range_cache_pin(entry_at(&memory.entries, entry), length)
            map_show(&memory.map, place, entry)
        else:
            map_remove(&cache.map, key, handle)
    if status != PML_OK:
        wrapper_empty(wrapper)
    stamped_unlock_write(&wrapper.lock)
    if status != PML_OK:
        wrapper_recycle(&memory.wrappers, handle)
    return status


# The books of receive buffers when an entry is cached or removed; nothing for bytes of its own. The
# caller holds a reference of the entry.
cdef inline void range_cache_pin(const Entry* entry, int64_t length) noexcept nogil:
    cdef ReceiveBuffer* source = payload_source(entry_payload(entry))
    if source is not NULL:
        receive_buffer_pin(source, length)


cdef inline void range_cache_unpin(const Entry* entry, int64_t length) noexcept nogil:
    cdef ReceiveBuffer* source = payload_source(entry_payload(entry))
    if source is not NULL:
        receive_buffer_unpin(source, length)


# Reads -------------------------------------------------------------------------------------------

# The entry a wrapper holds under the key, with a reference for the caller, or 0. A miss leaves
# every count as it was.
#
# Between copying the handle and retaining it the entry may be removed and its memory hold another
# one, which may even have the same position in another cache. So the wrapper is looked at again: if
# it did not change, it kept its own reference meanwhile and the entry is the right one.
cdef inline uint32_t range_cache_retain(
    const RangeCache* cache, uint32_t handle, Position key
) noexcept nogil:
    cdef CacheMemory* memory = cache.memory
    cdef EntryWrapper* wrapper = wrapper_at(&memory.wrappers, handle)
    cdef Entry* held
    cdef uint32_t stamp
    cdef uint32_t entry
    # Turns when a write section came between: a removal, which ends in a miss, or a requeue.
    while True:
        entry = wrapper_read(wrapper, &memory.map, cache, key, &stamp)
        if unlikely(not entry):
            return 0
        held = entry_at(&memory.entries, entry)
        if likely(refcount_retain_marked(&held.references)):
            if likely(wrapper_unchanged(wrapper, stamp)):
                break
            entry_release(&memory.entries, entry, 1)
        elif wrapper_unchanged(wrapper, stamp):
            return 0
    # Its position, unless a holder released too often.
    if likely(entry_is_at(held, key)):
        if unlikely(cache.touch is not NULL):
            range_cache_touch(cache, handle)
        return entry
    entry_release(&memory.entries, entry, 1)
    return 0


# The entry that a recalled page shows under the key, with a reference for the caller, or 0, which
# says nothing. No wrapper is looked at: what is shown was queued and counted, and a removal hides
# it before it gives the reference back. So what is shown after it was retained is the right one.
cdef inline uint32_t range_cache_retain_shown(
    const RangeCache* cache, const MapPage* page, Position key, uint64_t proof
) noexcept nogil:
    cdef CacheMemory* memory = cache.memory
    cdef uint32_t entry = map_shown(page, key)
    cdef Entry* held = entry_at(&memory.entries, entry)
    if unlikely(not entry):
        return 0
    if unlikely(not refcount_retain_marked(&held.references)):
        return 0
    # Its position, unless a holder released too often.
    if likely(map_shows(page, key, entry, proof) and entry_is_at(held, key)):
        if unlikely(cache.touch is not NULL):
            range_cache_touch(cache, map_slot(page, key))
        return entry
    entry_release(&memory.entries, entry, 1)
    return 0


# The policy hears of a hit, unless the entry is removed already (0).
cdef inline void range_cache_touch(const RangeCache* cache, uint32_t handle) noexcept nogil:
    if handle:
        cache.touch(cache.intake, handle, wrapper_at(&cache.memory.wrappers, handle))


cdef inline uint32_t range_cache_get(const RangeCache* cache, Position key) noexcept nogil:
    cdef uint64_t proof
    cdef const MapPage* page = map_recall(&cache.map, key, &proof)
    cdef uint32_t handle, entry
    if likely(page is not NULL):
        entry = range_cache_retain_shown(cache, page, key, proof)
        if likely(entry != 0):
            return entry
    handle = map_find(&cache.map, key)
    return range_cache_retain(cache, handle, key) if handle else 0


cdef inline bint range_cache_exists(const RangeCache* cache, Position key) noexcept nogil:
    cdef uint32_t handle = map_find(&cache.map, key)
    # Its page may serve another range by now: the wrapper's key shows that.
    return handle != 0 and wrapper_look(
        wrapper_at(&cache.memory.wrappers, handle), &cache.memory.map, cache, key) != 0


# Starts a read of [first, last].
cdef inline MapCursor range_cache_cursor(Position first, Position last) noexcept nogil:
    return map_cursor(first, last)


# The next cached entry of the range, with a reference for the caller, or 0 at the end.
cdef inline uint32_t range_cache_next(const RangeCache* cache, MapCursor* cursor) noexcept nogil:
    cdef Position found
    cdef uint32_t handle, entry
    while True:
        handle = map_next(&cache.map, cursor, &found)
        if not handle:
            return 0
        entry = range_cache_retain(cache, handle, found)
        if entry:
            return entry


# Removal -----------------------------------------------------------------------------------------

# remove-entry, inside the wrapper's write section, the wrapper holding a value under `key`: takes
# it out of the map, empties it and gives the cache's reference back. The caller takes removed.bytes
# off the cache's size.
cdef inline void range_cache_unlink(
    RangeCache* cache, Position key, uint32_t handle, EntryWrapper* wrapper, Removed* removed
) noexcept nogil:
    cdef CacheMemory* memory = cache.memory
    cdef uint32_t entry = u32_load_relaxed(&wrapper.value)
    cdef Entry* held = entry_at(&memory.entries, entry)
    cdef int64_t before = removed.bytes
    cdef bint retained
    # Always first, so that clear makes progress in any state of the value (#22814).
    map_remove_near(&cache.map, key, handle, &removed.near)
    retained = refcount_retain(&held.references)
    removed.bytes += wrapper_clear(wrapper, u32_load_relaxed(&wrapper.place), entry)
    removed.entries += 1
    if not retained:
        return
    if cache.intake.merges_counts and entry_read_count(&memory.entries, entry):
        read_count_mark_evicted(&memory.entries.read_counts, entry_read_count(&memory.entries, entry))
    # Without our own, at least the cache's reference is left, unless a holder released too often.
    if refcount_value(&held.references) > 1 and entry_is_at(held, key):
        range_cache_unpin(held, removed.bytes - before)
        entry_release_chained(&memory.entries, entry, 2, &removed.released)
    else:
        entry_release_chained(&memory.entries, entry, 1, &removed.released)


# Gives back the places in the map and the entries of a removal: many by one exchange.
cdef inline void range_cache_settle(CacheMemory* memory, Removed* removed) noexcept nogil:
    map_leave_near(&memory.map, &removed.near)
    entry_give_chain(&memory.entries, &removed.released)


# Removes up to most_entries of [first, last] and takes them off the size; the cursor goes on from
# where this ended.
cdef inline Removed range_cache_remove(
    RangeCache* cache, MapCursor* cursor, int64_t most_entries
) noexcept nogil:
    cdef Removed removed
    cdef Position key
    cdef uint32_t handle
    cdef EntryWrapper* wrapper
    cdef bint found
    memset(&removed, 0, sizeof(Removed))
    while removed.entries < most_entries:
        handle = map_next(&cache.map, cursor, &key)
        if not handle:
            break
        wrapper = wrapper_at(&cache.memory.wrappers, handle)
        stamped_lock_write(&wrapper.lock)
        found = wrapper_holds(wrapper, &cache.memory.map, cache, key)
        if found:
            range_cache_unlink(cache, key, handle, wrapper, &removed)
        stamped_unlock_write(&wrapper.lock)
        if found and cache.queue is NULL:
            wrapper_recycle(&cache.memory.wrappers, handle)
        if removed.entries % UNSETTLED == 0:
            range_cache_settle(cache.memory, &removed)
    range_cache_settle(cache.memory, &removed)
    i64_fetch_sub_relaxed(&cache.size, removed.bytes)
    return removed
