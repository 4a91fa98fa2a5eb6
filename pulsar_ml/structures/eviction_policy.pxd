# The eviction policies in one table: each decides which entries of all caches leave, and when.
#
# Origin       RangeCacheRemovalQueue and EntryCacheDefaultEvictionPolicy (Pulsar), PIP-430 in its
#              two revisions, #24363; priority_queue, LRU and S3-FIFO are alternatives. Each policy
#              is a file and one row of eviction_row.
# Threads      init, destroy: alone. The rest: any thread; passes and settings take the monitor.
#              Range caches know the policy as its intake (range_cache_new(memory,
#              &policy.base.intake)).
# Invariants   EP-1 (I23, I25, I26) a wrapper that was put leaves for its pool once, after the
#              policy let go of it.
#              EP-2 (I46, I47) a pass answers the entries and bytes that it removed.
#              EP-3 (I51, I53) a time pass removes nothing at or past its threshold; a size pass
#              removes nothing once enough bytes are free (ledger_scan: for each cache's part).
#              EP-4 (I60) a wrapper that was emptied meanwhile is dropped and counted nowhere.
#              EP-5 (I61, I65, I66, I101) slices exclude each other and changes of settings; the
#              monitor comes before wrapper locks.
#              EP-6 the counts, bytes and links of a policy's lists are those of what is in them.
# Ordering     See monitor.pxd, mpsc_queue.pxd, entry_wrapper.pxd.
# Reclamation  Nodes and lists of the policies go with the policy; wrappers with the cache memory.
# Not promised An order of victims beyond that of the policy; that a size pass reaches its target.

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from pulsar_ml.structures.fewest_reads cimport priority_queue_row
from pulsar_ml.structures.ledger_scan cimport ledger_scan_row
from pulsar_ml.structures.lru cimport lru_row
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.mpsc_queue cimport mpsc_destroy, mpsc_init, mpsc_size
from pulsar_ml.structures.policy_pass cimport (
    EvictionPass, PolicyBase, PolicyRow, PolicySettings, pass_settle,
)
from pulsar_ml.structures.range_cache cimport UNSETTLED, CacheMemory
from pulsar_ml.structures.removal_queue cimport (
    central_queue_row, released_5_row, released_queue_row,
)
from pulsar_ml.structures.s3_fifo cimport s3_fifo_row
from pulsar_ml.structures.stash_queue cimport stash_queue_row
from pulsar_ml.structures.status cimport PML_NO_MEMORY, PML_OK, Status
from pulsar_ml.sync.memory cimport allocate_zeroed, release


ctypedef PolicyRow (*PolicyRowMaker)() noexcept nogil


# The table of policies. The place of a row is the number of its policy; the first one is the
# default. False past the last row.
cdef inline bint eviction_row(int64_t number, PolicyRow* row) noexcept nogil:
    cdef PolicyRowMaker* rows = [
        central_queue_row,
        released_queue_row,
        stash_queue_row,
        ledger_scan_row,
        lru_row,
        s3_fifo_row,
        released_5_row,
        priority_queue_row,
        NULL,
    ]
    cdef int64_t i
    for i in range(number):
        if rows[i] is NULL:
            return False
    if rows[number] is NULL:
        return False
    row[0] = rows[number]()
    return True


cdef inline int64_t eviction_policies() noexcept nogil:
    cdef PolicyRow row
    cdef int64_t count = 0
    while eviction_row(count, &row):
        count += 1
    return count


# The base comes first: range caches see its intake, and a touch finds the policy by it.
cdef struct EvictionPolicy:
    PolicyBase base
    PolicyRow row


# `number` is that of a row; chunk_bits: see mpsc_init.
cdef inline Status eviction_init(
    EvictionPolicy* policy, int64_t number, CacheMemory* memory, uint32_t chunk_bits,
    PolicySettings settings
) noexcept nogil:
    memset(policy, 0, sizeof(EvictionPolicy))
    eviction_row(number, &policy.row)
    policy.base.memory = memory
    policy.base.settings = settings
    policy.base.most_keeps = policy.row.most_keeps
    policy.base.one_budget = policy.row.one_budget
    memory.entries.counts_of_4 = policy.row.counts_of_4
    policy.base.intake.queued = policy.row.queued
    policy.base.intake.merges_counts = policy.row.merges_counts
    policy.base.intake.touch = policy.row.touch
    if policy.row.state_bytes:
        policy.base.state = allocate_zeroed(1, policy.row.state_bytes)
        if policy.base.state is NULL:
            return PML_NO_MEMORY
        if policy.row.init is not NULL and not policy.row.init(&policy.base):
            eviction_destroy(policy)
            return PML_NO_MEMORY
    cdef Status status = mpsc_init(&policy.base.intake.queue, chunk_bits)
    if status != PML_OK:
        eviction_destroy(policy)
    return status


# Alone, after the caches were deleted. Wrappers that are still queued are forgotten.
cdef inline void eviction_destroy(EvictionPolicy* policy) noexcept nogil:
    mpsc_destroy(&policy.base.intake.queue)
    if policy.base.state is not NULL:
        if policy.row.destroy is not NULL:
            policy.row.destroy(&policy.base)
        release(policy.base.state)
        policy.base.state = NULL


# In force for every decision taken after this returned (I65).
cdef inline void eviction_configure(EvictionPolicy* policy, PolicySettings settings) noexcept nogil:
    monitor_enter(&policy.base.intake.monitor)
    policy.base.settings = settings
    monitor_leave(&policy.base.intake.monitor)


# Handles at most one wrapper for a pass made by time_pass or size_pass; False when the pass is
# over. Under the monitor.
cdef inline bint eviction_step(EvictionPolicy* policy, EvictionPass* run) noexcept nogil:
    cdef bint more = policy.row.step(&policy.base, run)
    pass_settle(&policy.base, run)
    return more


# Runs a pass for at most so many steps, in slices where hits wait; True when it is not over yet.
cdef inline bint eviction_run(
    EvictionPolicy* policy, EvictionPass* run, int64_t most_steps
) noexcept nogil:
    cdef int64_t slice_steps = policy.row.slice_steps
    cdef bint more = True
    cdef int64_t left
    while more and most_steps > 0:
        left = slice_steps if slice_steps and most_steps > slice_steps else most_steps
        most_steps -= left
        monitor_enter(&policy.base.intake.monitor)
        while more and left > 0:
            more = policy.row.step(&policy.base, run)
            left -= 1
            # Others may need the memory of what left: it is not held back for long.
            if left % UNSETTLED == 0:
                pass_settle(&policy.base, run)
        pass_settle(&policy.base, run)
        monitor_leave(&policy.base.intake.monitor)
    return more


# Wrappers that the policy holds, empty ones too; exact at quiescence.
cdef inline int64_t eviction_held(const EvictionPolicy* policy) noexcept nogil:
    cdef int64_t held = <int64_t>mpsc_size(&policy.base.intake.queue)
    return held if policy.row.held is NULL else held + policy.row.held(&policy.base)
