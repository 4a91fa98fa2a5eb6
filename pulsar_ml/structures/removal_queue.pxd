# The order in which entries of all caches leave: a first-in first-out queue of wrappers and the passes
# that drop, requeue or stop at its head.
#
# Origin       RangeCacheRemovalQueue (Pulsar 4.1, PIP-430 final text). A pass can be cut into slices, so
#              that a caller can be interrupted; time is an argument.
# Threads      Inserting (through range_cache_put) takes no monitor. Passes and settings run under it.
# Invariants   RQ-1 (I22, I23) a wrapper is queued at most once and leaves for the pool once.
#              RQ-2 (I25, I26) only the consumer recycles queued wrappers, after polling them.
#              RQ-3 (I51, I52) a time pass removes nothing at or past its threshold and stops at the
#              first head that is not expired.
#              RQ-4 (I53, I54) a size pass stops as soon as enough bytes are free, or the queue is empty.
#              RQ-5 (I55, I56, I59) what is to be kept goes to the tail, marked in one write section.
#              RQ-6 (I60) a wrapper that was emptied meanwhile is dropped and counted nowhere.
#              RQ-7 (I61, I66, I101) one pass at a time; the monitor comes before wrapper locks.
# Ordering     See monitor.pxd, mpsc_queue.pxd, entry_wrapper.pxd.
# Reclamation  The consumer gives a wrapper back after the poll; it was emptied in a write section.
# Not promised The queue is only nearly sorted by time: an expired wrapper behind a younger head stays
#              until a later pass. One size pass can spend every extension of an entry; entries that
#              readers keep touching can keep a size pass busy. Both are the released behaviour.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsar_ml.structures.entry cimport entry_has_expected_reads
from pulsar_ml.structures.entry_wrapper cimport (
    NO_LEDGER, EntryWrapper, wrapper_at, wrapper_key, wrapper_mark_requeued, wrapper_recycle,
)
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.mpsc_queue cimport (
    MpscQueue, mpsc_destroy, mpsc_init, mpsc_offer, mpsc_peek, mpsc_poll,
)
from pulsar_ml.structures.position cimport Position
from pulsar_ml.structures.range_cache cimport (
    CacheMemory, RangeCache, Removed, range_cache_at, range_cache_unlink,
)
from pulsar_ml.structures.stamped_lock cimport stamped_lock_write, stamped_unlock_write
from pulsar_ml.structures.status cimport PML_OK, Status
from pulsar_ml.sync.atomics cimport (
    i64_fetch_sub_relaxed, i64_load_relaxed, pml_u32, u32_load_relaxed, u8_load_relaxed,
)


cdef enum Verdict:
    REMOVE = 0
    REQUEUE = 1
    STOP = 2
    MISSING = 3


cdef struct RemovalQueue:
    MpscQueue queue
    CacheMemory* memory
    pml_u32 monitor
    int32_t max_requeue_count   # under the monitor, like the next
    bint extend_recently_accessed


# One pass over the queue. A time pass has no byte target, a size pass no threshold.
cdef struct RemovalPass:
    bint by_time
    int64_t threshold       # nanoseconds; a time pass removes what is older
    int64_t target          # bytes a size pass wants free
    int64_t now             # nanoseconds; the timestamp of what is requeued
    Removed removed
    int64_t requeued
    int64_t missing


cdef inline Status removal_queue_init(
    RemovalQueue* queue, CacheMemory* memory, uint32_t chunk_bits, int32_t max_requeue_count,
    bint extend_recently_accessed
) noexcept nogil:
    memset(queue, 0, sizeof(RemovalQueue))
    queue.memory = memory
    queue.max_requeue_count = max_requeue_count
    queue.extend_recently_accessed = extend_recently_accessed
    return mpsc_init(&queue.queue, chunk_bits)


cdef inline void removal_queue_destroy(RemovalQueue* queue) noexcept nogil:
    mpsc_destroy(&queue.queue)


# In force for every decision taken after this returned (I65).
cdef inline void removal_queue_configure(
    RemovalQueue* queue, int32_t max_requeue_count, bint extend_recently_accessed
) noexcept nogil:
    monitor_enter(&queue.monitor)
    queue.max_requeue_count = max_requeue_count
    queue.extend_recently_accessed = extend_recently_accessed
    monitor_leave(&queue.monitor)


# Waits until no pass holds a wrapper that was emptied before this call.
cdef inline void removal_queue_synchronize(RemovalQueue* queue) noexcept nogil:
    monitor_enter(&queue.monitor)
    monitor_leave(&queue.monitor)


cdef inline RemovalPass time_pass(int64_t threshold, int64_t now) noexcept nogil:
    cdef RemovalPass made
    memset(&made, 0, sizeof(RemovalPass))
    made.by_time = True
    made.threshold = threshold
    made.now = now
    return made


cdef inline RemovalPass size_pass(int64_t target, int64_t now) noexcept nogil:
    cdef RemovalPass made
    memset(&made, 0, sizeof(RemovalPass))
    made.target = target
    made.now = now
    return made


# Inside the wrapper's write section, the wrapper holding a value.
cdef inline bint removal_keep(const RemovalQueue* queue, const EntryWrapper* wrapper) noexcept nogil:
    if queue.extend_recently_accessed and u8_load_relaxed(&wrapper.accessed):
        return True
    return (wrapper.requeue_count < queue.max_requeue_count
            and entry_has_expected_reads(&queue.memory.entries, u32_load_relaxed(&wrapper.value)))


cdef inline Verdict removal_judge(
    const RemovalQueue* queue, const EntryWrapper* wrapper, const RemovalPass* run
) noexcept nogil:
    cdef uint64_t age
    if run.by_time:
        # The difference, not the values, is compared: clocks may be negative or wrap.
        age = <uint64_t>run.threshold - <uint64_t>i64_load_relaxed(&wrapper.timestamp)
        if <int64_t>age <= 0:
            return STOP
    elif run.removed.bytes >= run.target:
        return STOP
    return REQUEUE if removal_keep(queue, wrapper) else REMOVE


# Handles the head of the queue; False when the pass is over. Under the monitor.
cdef inline bint removal_step(RemovalQueue* queue, RemovalPass* run) noexcept nogil:
    cdef uint32_t handle = mpsc_peek(&queue.queue)
    cdef EntryWrapper* wrapper
    cdef Position key
    cdef Verdict verdict
    if not handle:
        return False
    wrapper = wrapper_at(&queue.memory.wrappers, handle)
    stamped_lock_write(&wrapper.lock)
    key = wrapper_key(wrapper)
    if key.ledger_id == NO_LEDGER:
        verdict = MISSING
    else:
        verdict = removal_judge(queue, wrapper, run)
        if verdict == REMOVE:
            removal_remove(queue, key, handle, wrapper, &run.removed)
        elif verdict == REQUEUE:
            wrapper_mark_requeued(wrapper, run.now)
    stamped_unlock_write(&wrapper.lock)
    if verdict == STOP:
        return False
    mpsc_poll(&queue.queue)
    if verdict == REQUEUE:
        removal_requeue(queue, handle, wrapper, run)
        return True
    run.missing += verdict == MISSING
    wrapper_recycle(&queue.memory.wrappers, handle)
    return True


cdef inline void removal_remove(
    RemovalQueue* queue, Position key, uint32_t handle, EntryWrapper* wrapper, Removed* removed
) noexcept nogil:
    cdef RangeCache* cache = range_cache_at(queue.memory, u32_load_relaxed(&wrapper.owner))
    cdef int64_t before = removed.bytes
    range_cache_unlink(cache, key, handle, wrapper, removed)
    i64_fetch_sub_relaxed(&cache.size, removed.bytes - before)


# Puts a wrapper that was polled back at the tail. Without memory for that its entry is removed: a
# wrapper outside the queue would stay for ever.
cdef inline void removal_requeue(
    RemovalQueue* queue, uint32_t handle, EntryWrapper* wrapper, RemovalPass* run
) noexcept nogil:
    cdef Position key
    if mpsc_offer(&queue.queue, handle) == PML_OK:
        run.requeued += 1
        return
    stamped_lock_write(&wrapper.lock)
    key = wrapper_key(wrapper)
    if key.ledger_id != NO_LEDGER:
        removal_remove(queue, key, handle, wrapper, &run.removed)
    stamped_unlock_write(&wrapper.lock)
    wrapper_recycle(&queue.memory.wrappers, handle)


# Runs a pass for at most so many steps, under the monitor; True when it is not over yet. A size
# pass starts with a target above zero.
cdef inline bint removal_run(RemovalQueue* queue, RemovalPass* run, int64_t most_steps) noexcept nogil:
    cdef bint more = True
    monitor_enter(&queue.monitor)
    while more and most_steps > 0:
        more = removal_step(queue, run)
        most_steps -= 1
    monitor_leave(&queue.monitor)
    return more
