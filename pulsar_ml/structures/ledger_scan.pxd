# The policy before the removal queue: every pass visits every cache.
#
# Origin       ManagedLedgerFactoryImpl.doCacheEviction and RangeCache.evictLEntriesBeforeTimestamp
#              (time), EntryCacheDefaultEvictionPolicy (size), as #24363 shows them before it
#              replaces both.
# Threads      Steps: under the monitor. Nothing is queued: the thread that removes an entry
#              recycles its wrapper.
# Invariants   LS-1 (I51) a time pass walks each cache from its first position and leaves it at the
#              first entry that is not older than the threshold.
#              LS-2 a size pass takes the largest caches that together hold half of all bytes, and
#              removes from the front of each its part of the target; a part is done once it is
#              reached. Without memory for that plan the pass takes its target from the front of the
#              caches, in the order of their numbers.
#              LS-3 (I32) the thread that empties a wrapper recycles it, and no other.
# Ordering     A cache's `open` (release) -> the scan (acquire).
# Reclamation  The list of shares goes with the policy.
# Not promised The oldest entries of all caches: a size pass goes by the sizes of caches, and a
#              position need not be old because it is low. That a size pass reaches its target:
#              parts are rounded down, and a part of 0 is left out; and a cache's part may be bytes
#              that another thread is just removing, so that the caches stay above their threshold
#              until the next insert or tick. Its first step costs as much as there are caches.

from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t
from libc.stdlib cimport qsort

from pulsar_ml.structures.entry_wrapper cimport EntryWrapper, wrapper_at, wrapper_holds, wrapper_recycle
from pulsar_ml.structures.policy_pass cimport (
    EvictionPass, PolicyBase, PolicyRow, pass_is_before, pass_remove, policy_row,
)
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.position_map cimport map_cursor, map_next
from pulsar_ml.structures.range_cache cimport CacheMemory, RangeCache, range_cache_at, range_cache_size
from pulsar_ml.structures.stamped_lock cimport stamped_lock_write, stamped_unlock_write
from pulsar_ml.sync.atomics cimport (
    i64_load_relaxed, ptr_load_acquire, u32_load_acquire, u32_load_relaxed,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef struct ScanShare:
    uint32_t number         # of the cache
    int64_t bytes           # its size, then its part of what is to be freed


# The caches that a size pass takes from, and how much of each. The plan belongs to the pass that
# made it last.
cdef struct ScanPlan:
    ScanShare* shares
    uint64_t capacity
    uint64_t count
    uint64_t serial


# The open cache of a number, or NULL.
cdef inline RangeCache* scan_cache(const CacheMemory* memory, uint32_t number) noexcept nogil:
    cdef RangeCache* cache
    if ptr_load_acquire(&memory.caches.chunks[number >> memory.caches.chunk_bits]) is NULL:
        return NULL
    cache = range_cache_at(memory, number)
    return cache if u32_load_acquire(&cache.open) else NULL


# Numbers of caches are below it.
cdef inline uint32_t scan_end(const CacheMemory* memory) noexcept nogil:
    return u32_load_relaxed(&memory.caches.used)


cdef inline int scan_compare(const void* a, const void* b) noexcept nogil:
    cdef const ScanShare* one = <const ScanShare*>a
    cdef const ScanShare* other = <const ScanShare*>b
    if one.bytes != other.bytes:
        return -1 if one.bytes > other.bytes else 1
    return -1 if one.number < other.number else 1


# Asks the largest caches for parts of `target`. False without memory; the last plan stays.
cdef inline bint scan_make_plan(const CacheMemory* memory, ScanPlan* plan, int64_t target) noexcept nogil:
    cdef uint32_t end = scan_end(memory)
    cdef uint32_t number
    cdef uint64_t i
    cdef RangeCache* cache
    cdef ScanShare* shares
    cdef int64_t total = 0, chosen = 0, half
    if plan.capacity < end:
        shares = <ScanShare*>allocate_zeroed(end, sizeof(ScanShare))
        if shares is NULL:
            return False
        release(plan.shares)
        plan.shares = shares
        plan.capacity = end
    plan.count = 0
    plan.serial += 1
    for number in range(1, end):
        cache = scan_cache(memory, number)
        if cache is not NULL:
            plan.shares[plan.count] = ScanShare(number, range_cache_size(cache))
            total += plan.shares[plan.count].bytes
            plan.count += 1
    qsort(plan.shares, plan.count, sizeof(ScanShare), scan_compare)
    half = <int64_t>(<double>total * 0.5)
    for i in range(plan.count):
        if chosen >= half:
            plan.count = i
            break
        chosen += plan.shares[i].bytes
    for i in range(plan.count):
        plan.shares[i].bytes = <int64_t>(<double>target * (<double>plan.shares[i].bytes / <double>chosen))
    return True


# Turns to the next cache; False when there is none.
cdef inline bint scan_next(const PolicyBase* base, const ScanPlan* plan, EvictionPass* run) noexcept nogil:
    run.index += 1
    run.cursor = map_cursor(position(0, 0), position(INT64_MAX, INT64_MAX))
    if run.by_time:
        return run.index < scan_end(base.memory)
    if run.unplanned:
        run.quota = run.target - run.removed.bytes
        return run.quota > 0 and run.index < scan_end(base.memory)
    if run.index > plan.count:
        return False
    run.quota = plan.shares[run.index - 1].bytes
    return True


# Handles one entry, or turns to the next cache; False when the pass is over. Under the monitor.
cdef inline bint scan_step(PolicyBase* base, EvictionPass* run) noexcept nogil:
    cdef ScanPlan* plan = <ScanPlan*>base.state
    cdef RangeCache* cache
    cdef EntryWrapper* wrapper
    cdef Position key
    cdef uint32_t handle
    cdef bint found, due = False
    if not run.begun or (not run.by_time and not run.unplanned and run.serial != plan.serial):
        # Another pass made a plan meanwhile: begin again for what is left.
        run.begun = True
        run.index = 0
        if not run.by_time:
            if run.removed.bytes >= run.target:
                return False
            run.unplanned = not scan_make_plan(base.memory, plan, run.target - run.removed.bytes)
        run.serial = plan.serial
        return scan_next(base, plan, run)
    cache = scan_cache(
        base.memory,
        <uint32_t>run.index if run.by_time or run.unplanned else plan.shares[run.index - 1].number)
    if cache is NULL or (not run.by_time and run.quota <= 0):
        return scan_next(base, plan, run)
    handle = map_next(&cache.map, &run.cursor, &key)
    if not handle:
        return scan_next(base, plan, run)
    wrapper = wrapper_at(&base.memory.wrappers, handle)
    stamped_lock_write(&wrapper.lock)
    found = wrapper_holds(wrapper, &base.memory.map, cache, key)
    if found:
        due = not run.by_time or pass_is_before(i64_load_relaxed(&wrapper.timestamp), run.threshold)
        if due:
            pass_remove(base, run, handle, wrapper)
    stamped_unlock_write(&wrapper.lock)
    if due:
        run.quota -= run.last.size
        wrapper_recycle(&base.memory.wrappers, handle)
    elif found:
        return scan_next(base, plan, run)
    return True


cdef inline void scan_destroy(PolicyBase* base) noexcept nogil:
    release((<ScanPlan*>base.state).shares)


cdef inline PolicyRow ledger_scan_row() noexcept nogil:
    cdef PolicyRow row = policy_row(
        b"ledger_scan", b"the policy before PIP-430: a scan of every ledger", scan_step)
    row.state_bytes = sizeof(ScanPlan)
    row.destroy = scan_destroy
    row.queued = False
    row.frees_target = False
    return row
