# One interface to what decides which entries of all caches leave, and when: six policies side by side.
#
# Origin       RangeCacheRemovalQueue and EntryCacheDefaultEvictionPolicy (Pulsar), PIP-430 in its two
#              revisions, #24363; LRU and S3-FIFO are the alternatives. Each kind has a file of its own.
# Threads      init, destroy: alone. The rest: any thread; passes and settings take the monitor. Range
#              caches know the policy as its intake (range_cache_new(memory, &policy.base.intake)).
# Invariants   EP-1 (I23, I25, I26) a wrapper that was put leaves for its pool once, after the policy let
#              go of it.
#              EP-2 (I46, I47) a pass answers what it removed.
#              EP-3 (I51, I53) a time pass removes nothing at or past its threshold; a size pass removes
#              nothing once enough bytes are free.
#              EP-4 (I60) a wrapper that was emptied meanwhile is dropped and counted nowhere.
#              EP-5 (I61, I65, I66, I101) one slice at a time, no settings change inside one.
# Ordering     See monitor.pxd, mpsc_queue.pxd, entry_wrapper.pxd.
# Reclamation  Nodes and lists of the policies go with the policy; wrappers with the cache memory.
# Not promised The order of victims beyond what the kind says; that a pass frees what it was asked to.

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from pulsar_ml.structures.entry_wrapper cimport EntryWrapper
from pulsar_ml.structures.ledger_scan cimport ScanPlan, scan_step
from pulsar_ml.structures.lru cimport LruList, lru_destroy, lru_init, lru_step, lru_use
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.mpsc_queue cimport mpsc_destroy, mpsc_init, mpsc_size
from pulsar_ml.structures.policy_intake cimport PolicyIntake, intake_synchronize
from pulsar_ml.structures.policy_pass cimport (
    LEDGER_SCAN, LRU, S3_FIFO, STASH_QUEUE, EvictionPass, PolicyBase, PolicyKind, PolicySettings,
)
from pulsar_ml.structures.range_cache cimport CacheMemory
from pulsar_ml.structures.removal_queue cimport removal_step
from pulsar_ml.structures.s3_fifo cimport S3Fifo, s3_destroy, s3_step, s3_touch
from pulsar_ml.structures.stash_queue cimport Stash, stash_step
from pulsar_ml.structures.status cimport PML_NO_MEMORY, PML_OK, Status
from pulsar_ml.structures.value_ring cimport ring_count, ring_destroy
from pulsar_ml.sync.memory cimport release


cdef enum:
    HIT_WAITS = 64          # most steps that a hit under lru waits for


# What range caches see comes first: a touch finds the policy by it.
cdef struct EvictionPolicy:
    PolicyBase base
    Stash stash             # of its kind only, like the next three
    ScanPlan plan
    LruList list
    S3Fifo s3


cdef inline void eviction_touch_list(
    PolicyIntake* intake, uint32_t handle, EntryWrapper* wrapper
) noexcept nogil:
    lru_use(intake, &(<EvictionPolicy*>intake).list, handle)


# chunk_bits: see mpsc_init.
cdef inline Status eviction_init(
    EvictionPolicy* policy, PolicyKind kind, CacheMemory* memory, uint32_t chunk_bits,
    PolicySettings settings
) noexcept nogil:
    memset(policy, 0, sizeof(EvictionPolicy))
    policy.base.memory = memory
    policy.base.kind = kind
    policy.base.settings = settings
    policy.base.intake.queued = kind != LEDGER_SCAN
    policy.base.intake.merges_counts = kind == STASH_QUEUE
    if kind == LRU:
        policy.base.intake.touch = eviction_touch_list
        if not lru_init(&policy.list, memory.wrappers.chunk_bits, memory.wrappers.limit):
            return PML_NO_MEMORY
    elif kind == S3_FIFO:
        policy.base.intake.touch = s3_touch
    cdef Status status = mpsc_init(&policy.base.intake.queue, chunk_bits)
    if status != PML_OK:
        eviction_destroy(policy)
    return status


# Nobody else inside, and the caches were deleted. What is still queued is forgotten.
cdef inline void eviction_destroy(EvictionPolicy* policy) noexcept nogil:
    mpsc_destroy(&policy.base.intake.queue)
    ring_destroy(&policy.stash.ring)
    release(policy.plan.shares)
    lru_destroy(&policy.list)
    s3_destroy(&policy.s3)


# In force for every decision taken after this returned (I65).
cdef inline void eviction_configure(EvictionPolicy* policy, PolicySettings settings) noexcept nogil:
    monitor_enter(&policy.base.intake.monitor)
    policy.base.settings = settings
    monitor_leave(&policy.base.intake.monitor)


# Waits until no pass holds a wrapper that was emptied before this call.
cdef inline void eviction_synchronize(EvictionPolicy* policy) noexcept nogil:
    intake_synchronize(&policy.base.intake)


# One step of a pass made by time_pass or size_pass: at most one entry removed. False when the pass is over.
# Under the monitor.
cdef inline bint eviction_step(EvictionPolicy* policy, EvictionPass* run) noexcept nogil:
    if policy.base.kind == STASH_QUEUE:
        return stash_step(&policy.base, &policy.stash, run)
    if policy.base.kind == LEDGER_SCAN:
        return scan_step(&policy.base, &policy.plan, run)
    if policy.base.kind == LRU:
        return lru_step(&policy.base, &policy.list, run)
    if policy.base.kind == S3_FIFO:
        return s3_step(&policy.base, &policy.s3, run)
    return removal_step(&policy.base, run)


# Runs a pass for at most so many steps, in slices where hits wait; True when it is not over yet.
cdef inline bint eviction_run(
    EvictionPolicy* policy, EvictionPass* run, int64_t most_steps
) noexcept nogil:
    cdef bint more = True
    cdef int64_t left
    while more and most_steps > 0:
        left = HIT_WAITS if policy.base.kind == LRU and most_steps > HIT_WAITS else most_steps
        most_steps -= left
        monitor_enter(&policy.base.intake.monitor)
        while more and left > 0:
            more = eviction_step(policy, run)
            left -= 1
        monitor_leave(&policy.base.intake.monitor)
    return more


# Wrappers that the policy holds, empty ones too; exact at quiescence.
cdef inline int64_t eviction_held(const EvictionPolicy* policy) noexcept nogil:
    return <int64_t>(
        mpsc_size(&policy.base.intake.queue) + ring_count(&policy.stash.ring) - policy.stash.holes
        + policy.list.count + ring_count(&policy.s3.small) + ring_count(&policy.s3.main))
