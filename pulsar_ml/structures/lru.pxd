# Least recently used first, in exact order of use.
#
# Origin       The alternative that PIP-430 rejects. A doubly linked list of wrappers, the newest
#              use first.
# Threads      Steps: under the monitor. A hit (lru_touch): any thread, outside wrapper locks; it
#              takes the monitor, and so waits for a slice of a pass.
# Invariants   LR-1 (I22, I23) a wrapper is in the queue or in the list, at most once.
#              LR-2 the list is ordered by last use, and a put counts as a use.
#              LR-3 (I51, I53) a time pass goes by the time of the put: it ends at the least
#              recently used entry that is not older than the threshold.
# Ordering     See monitor.pxd and mpsc_queue.pxd.
# Reclamation  Nodes are kept for each handle of a wrapper that was ever listed, and go with the
#              policy.
# Not promised That expected reads or the settings of the queues matter. A hit may be noted after
#              its wrapper was emptied or used again, which then counts as a use of what it holds.

from libc.stdint cimport int64_t, uint32_t

from pulsar_ml.structures.entry_wrapper cimport EntryWrapper, wrapper_at, wrapper_is_empty, wrapper_recycle
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.mpsc_queue cimport mpsc_peek, mpsc_poll
from pulsar_ml.structures.policy_intake cimport PolicyIntake
from pulsar_ml.structures.policy_pass cimport (
    MISSING, REMOVE, STOP, EvictionPass, PolicyBase, PolicyRow, PassVerdict, pass_is_before, pass_remove,
    policy_row,
)
from pulsar_ml.structures.stamped_lock cimport stamped_lock_write, stamped_unlock_write
from pulsar_ml.sync.atomics cimport i64_load_relaxed
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    LRU_SLICE = 64          # most steps that a hit waits for


cdef struct LruNode:
    uint32_t older
    uint32_t newer
    bint listed


cdef struct LruList:
    LruNode** chunks        # by handle, in chunks as the pool of wrappers
    uint32_t end_chunks     # those made are below
    uint32_t chunk_bits
    uint32_t newest
    uint32_t oldest
    uint32_t count


# False without memory.
cdef inline bint lru_init(PolicyBase* base) noexcept nogil:
    cdef LruList* list = <LruList*>base.state
    list.chunk_bits = base.memory.wrappers.chunk_bits
    list.chunks = <LruNode**>allocate_zeroed(
        (base.memory.wrappers.limit >> list.chunk_bits) + 1, sizeof(LruNode*))
    return list.chunks is not NULL


cdef inline void lru_destroy(PolicyBase* base) noexcept nogil:
    cdef LruList* list = <LruList*>base.state
    cdef uint32_t i
    for i in range(list.end_chunks):
        release(list.chunks[i])
    release(list.chunks)
    list.chunks = NULL


# The node of a handle, or NULL where none was made.
cdef inline LruNode* lru_node(const LruList* list, uint32_t handle) noexcept nogil:
    cdef LruNode* chunk = list.chunks[handle >> list.chunk_bits]
    return NULL if chunk is NULL else &chunk[handle & ((<uint32_t>1 << list.chunk_bits) - 1)]


cdef inline void lru_link(LruList* list, uint32_t handle) noexcept nogil:
    cdef LruNode* node = lru_node(list, handle)
    node.older = list.newest
    node.newer = 0
    node.listed = True
    if list.newest:
        lru_node(list, list.newest).newer = handle
    else:
        list.oldest = handle
    list.newest = handle
    list.count += 1


cdef inline void lru_unlink(LruList* list, uint32_t handle) noexcept nogil:
    cdef LruNode* node = lru_node(list, handle)
    if node.newer:
        lru_node(list, node.newer).older = node.older
    else:
        list.newest = node.older
    if node.older:
        lru_node(list, node.older).newer = node.newer
    else:
        list.oldest = node.newer
    node.listed = False
    list.count -= 1


# Lists what was put meanwhile; False when memory ran out before all of it was. Under the monitor.
cdef inline bint lru_collect(PolicyIntake* intake, LruList* list) noexcept nogil:
    cdef uint32_t handle
    cdef LruNode** chunk
    while True:
        handle = mpsc_peek(&intake.queue)
        if not handle:
            return True
        chunk = &list.chunks[handle >> list.chunk_bits]
        if chunk[0] is NULL:
            chunk[0] = <LruNode*>allocate_zeroed(<size_t>1 << list.chunk_bits, sizeof(LruNode))
            if chunk[0] is NULL:
                return False
            if list.end_chunks <= handle >> list.chunk_bits:
                list.end_chunks = (handle >> list.chunk_bits) + 1
        mpsc_poll(&intake.queue)
        lru_link(list, handle)


# A hit: the wrapper becomes the most recently used.
cdef inline void lru_touch(PolicyIntake* intake, uint32_t handle, EntryWrapper* wrapper) noexcept nogil:
    # The intake is the first field of its policy.
    cdef LruList* list = <LruList*>(<PolicyBase*>intake).state
    cdef LruNode* node
    monitor_enter(&intake.monitor)
    lru_collect(intake, list)
    node = lru_node(list, handle)
    if node is not NULL and node.listed and list.newest != handle:
        lru_unlink(list, handle)
        lru_link(list, handle)
    monitor_leave(&intake.monitor)


# Handles the least recently used; False when the pass is over. Under the monitor.
cdef inline bint lru_step(PolicyBase* base, EvictionPass* run) noexcept nogil:
    cdef LruList* list = <LruList*>base.state
    cdef bint collected = lru_collect(&base.intake, list)
    cdef uint32_t handle = list.oldest
    cdef EntryWrapper* wrapper
    cdef PassVerdict verdict = REMOVE
    cdef bint queued = not handle and not collected
    if queued:
        # Without memory for a node the oldest of the queue is the least recently used.
        handle = mpsc_peek(&base.intake.queue)
    if not handle:
        return False
    wrapper = wrapper_at(&base.memory.wrappers, handle)
    stamped_lock_write(&wrapper.lock)
    if wrapper_is_empty(wrapper):
        verdict = MISSING
    elif run.by_time:
        if not pass_is_before(i64_load_relaxed(&wrapper.timestamp), run.threshold):
            verdict = STOP
    elif run.removed.bytes >= run.target:
        verdict = STOP
    if verdict == REMOVE:
        pass_remove(base, run, handle, wrapper)
    stamped_unlock_write(&wrapper.lock)
    if verdict == STOP:
        return False
    if queued:
        mpsc_poll(&base.intake.queue)
    else:
        lru_unlink(list, handle)
    run.missing += verdict == MISSING
    wrapper_recycle(&base.memory.wrappers, handle)
    return True


cdef inline int64_t lru_held(const PolicyBase* base) noexcept nogil:
    return (<const LruList*>base.state).count


cdef inline PolicyRow lru_row() noexcept nogil:
    cdef PolicyRow row = policy_row(b"lru", b"least recently used", lru_step)
    row.state_bytes = sizeof(LruList)
    row.init = lru_init
    row.destroy = lru_destroy
    row.held = lru_held
    row.touch = lru_touch
    row.slice_steps = LRU_SLICE
    return row
