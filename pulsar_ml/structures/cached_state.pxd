# The cached entries of a range as their wrappers describe them, without a reference to any.
#
# Origin       The fields of RangeCacheEntryWrapper and of the read-count handler (Pulsar 4.1). Its
#              cache has no such view.
# Threads      Any thread.
# Invariants   I9 the fields of a state are of one read section of the wrapper.
#              I7 as a range read: ascending, without duplicates, inside the bounds.
# Ordering     See stamped_lock.pxd.
# Reclamation  Inside the section the wrapper keeps its reference to the entry.
# Not promised That the entry is still cached when the caller looks at its state.

from libc.stdint cimport int32_t, int64_t, uint32_t

from pulsar_ml.structures.entry cimport entry_expected_reads, entry_was_accessed
from pulsar_ml.structures.entry_wrapper cimport EntryWrapper, wrapper_at, wrapper_holds, wrapper_requeues
from pulsar_ml.structures.position cimport Position
from pulsar_ml.structures.position_map cimport MapCursor, map_next
from pulsar_ml.structures.range_cache cimport CacheMemory, RangeCache
from pulsar_ml.structures.stamped_lock cimport stamped_lock_read, stamped_unlock_read
from pulsar_ml.sync.atomics cimport i64_load_relaxed, u32_load_relaxed


# An entry as its wrapper describes it.
cdef struct CachedState:
    Position key
    int64_t length          # bytes
    int64_t timestamp       # nanoseconds
    int32_t requeues
    bint accessed           # since the last pass that requeued it
    int64_t expected_reads


# The next cached entry of the range as its wrapper describes it, without a reference; False at the
# end. No access is marked.
cdef inline bint range_cache_look(
    const RangeCache* cache, MapCursor* cursor, CachedState* state
) noexcept nogil:
    cdef CacheMemory* memory = cache.memory
    cdef EntryWrapper* wrapper
    cdef uint32_t handle
    cdef bint found = False
    while not found:
        handle = map_next(&cache.map, cursor, &state.key)
        if not handle:
            return False
        wrapper = wrapper_at(&memory.wrappers, handle)
        stamped_lock_read(&wrapper.lock)
        found = wrapper_holds(wrapper, &memory.map, cache, state.key)
        if found:
            state.length = wrapper.size
            state.timestamp = i64_load_relaxed(&wrapper.timestamp)
            state.requeues = wrapper_requeues(wrapper, &memory.map)
            # Inside the section the wrapper keeps its reference.
            state.accessed = entry_was_accessed(&memory.entries, u32_load_relaxed(&wrapper.value))
            state.expected_reads = entry_expected_reads(&memory.entries, u32_load_relaxed(&wrapper.value))
        stamped_unlock_read(&wrapper.lock)
    return True
