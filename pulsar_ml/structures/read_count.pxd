# The number of reads of an entry that are still expected: one atomic count that copies of the entry
# share.
#
# Origin       EntryReadCountHandlerImpl (PIP-430) of Pulsar 5.0.1, and with `below_zero` that of
#              4.2.4. The original leaves the object to the collector; here entries that share it
#              count their references.
# Threads      Any thread that holds a reference, directly or through an entry.
# Invariants   EX-1 (I67) the value changes by +1 for an entry queued for replay, by -1 for a
#              counting copy that is deallocated, and by nothing else; stash_queue also raises it
#              for a duplicate and marks it when its entry leaves.
#              EX-2 (I70) the handler outlives every entry that shares it.
#              EX-3 (I67) a read that was not expected takes nothing: the value stops at zero, but
#              under released_queue, where it may go below.
# Ordering     The value orders nothing: relaxed. References: see refcount.pxd.
# Reclamation  Back to its pool with the last reference.
# Not promised That a value read is still true: eviction decides on a snapshot.

from libc.stdint cimport INT32_MAX, int32_t, uint32_t

from pulsar_ml.structures.object_pool cimport Pool, pool_give, pool_init, pool_place, pool_take
from pulsar_ml.structures.refcount cimport (
    RELEASED_LAST, refcount_publish, refcount_release, refcount_retain,
)
from pulsar_ml.structures.status cimport Status
from pulsar_ml.sync.atomics cimport (
    i32_cas_weak_relaxed, i32_fetch_add_relaxed, i32_fetch_sub_relaxed, i32_load_relaxed,
    i32_store_relaxed, pml_i32, pml_i64,
)


cdef enum:
    READS_EVICTED = -(1 << 30)  # so far below zero that no increment brings the value back


cdef struct ReadCount:
    pml_i32 expected
    pml_i32 references
    pml_i64 link            # next free handler while pooled


cdef inline Status read_count_pool_init(Pool* pool, uint32_t chunk_bits, uint32_t limit) noexcept nogil:
    return pool_init(pool, sizeof(ReadCount), <size_t>&(<ReadCount*>NULL).link, chunk_bits, limit)


cdef inline ReadCount* read_count_at(const Pool* pool, uint32_t handle) noexcept nogil:
    return <ReadCount*>pool_place(pool, handle, sizeof(ReadCount))


# A handler with one reference, or 0 when memory ran out.
cdef inline uint32_t read_count_new(Pool* pool, int32_t expected) noexcept nogil:
    cdef uint32_t handle = pool_take(pool)
    if handle:
        i32_store_relaxed(&read_count_at(pool, handle).expected, expected)
        refcount_publish(&read_count_at(pool, handle).references)
    return handle


cdef inline bint read_count_retain(Pool* pool, uint32_t handle) noexcept nogil:
    return refcount_retain(&read_count_at(pool, handle).references)


cdef inline void read_count_release(Pool* pool, uint32_t handle) noexcept nogil:
    if refcount_release(&read_count_at(pool, handle).references, 1) == RELEASED_LAST:
        pool_give(pool, handle)


# Adds `more`, 0 or more, unless the sum is beyond 32 bits: then the value stays, instead of one far
# below zero.
cdef inline void read_count_raise(pml_i32* expected, int32_t more) noexcept nogil:
    if i32_fetch_add_relaxed(expected, more) > INT32_MAX - more:
        i32_fetch_sub_relaxed(expected, more)


cdef inline void read_count_increment(Pool* pool, uint32_t handle) noexcept nogil:
    read_count_raise(&read_count_at(pool, handle).expected, 1)


# Takes one off; False if no read was expected, and then the value stays. With `below_zero` it
# always takes one off: a later replay is then swallowed (Pulsar 4.2.4).
cdef inline bint read_count_mark_read(Pool* pool, uint32_t handle, bint below_zero) noexcept nogil:
    cdef pml_i32* expected = &read_count_at(pool, handle).expected
    cdef int32_t seen
    if below_zero:
        i32_fetch_sub_relaxed(expected, 1)
        return True
    seen = i32_load_relaxed(expected)
    while seen > 0:
        # Fails when another thread changed the value.
        if i32_cas_weak_relaxed(expected, &seen, seen - 1):
            return True
    return False


# stash_queue: more reads are expected of an entry that is still cached.
cdef inline void read_count_add(Pool* pool, uint32_t handle, int32_t more) noexcept nogil:
    if i32_load_relaxed(&read_count_at(pool, handle).expected) > READS_EVICTED // 2:
        read_count_raise(&read_count_at(pool, handle).expected, more)


# stash_queue: the entry left the cache.
cdef inline void read_count_mark_evicted(Pool* pool, uint32_t handle) noexcept nogil:
    i32_store_relaxed(&read_count_at(pool, handle).expected, READS_EVICTED)


cdef inline int32_t read_count_value(const Pool* pool, uint32_t handle) noexcept nogil:
    return i32_load_relaxed(&read_count_at(pool, handle).expected)
