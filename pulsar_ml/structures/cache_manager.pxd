# The books of a broker's cache: its size, its counters and the trigger, and the passes that bring
# the size back to the watermark, over the range caches of one eviction policy.
#
# Origin       RangeEntryCacheManagerImpl and EntryCachesEvictionHandler (Pulsar 4.1, PIP-430), with
#              the marker as #25988 has it. Mended here: a pass takes its target and settles its
#              account before the next one begins, and an insert that finds a task at its end is not
#              forgotten.
# Threads      All functions: any thread. init, destroy: nobody else inside.
# Invariants   CM-1 (I42, I43, I45) the size is the bytes put less the bytes removed, exact at
#              quiescence; it is signed, because an entry may be removed before its put is counted.
#              CM-2 (I47, I50) the entries put less those evicted are the entries cached; a size
#              pass is an eviction, a time pass is none.
#              CM-3 (I53, I63) a size pass frees the bytes that the size is above the watermark when
#              the pass begins.
#              CM-4 (I61) at most one task is queued or running, and the thread that sets the marker
#              submits the task.
#              CM-5 (I62, I63) an insert above the threshold, or a change of settings that leaves
#              the size above it, is followed by a look at the size: by a task of its own, or by the
#              running task after that cleared the marker.
#              CM-6 (I66, I101) settings and passes exclude each other; this monitor comes before
#              the policy's monitor, which comes before wrapper locks; an insert takes none of them.
#              CM-7 every entry that a counted read found is counted once.
# Ordering     Counters order nothing: relaxed. The marker is exchanged with acquire and release by
#              both sides, so that one of the two sees the other: either the task, after it cleared
#              the marker, sees the size of the insert that found it set, or that insert wins it.
#              The same holds for inserts and changed settings by the size.
# Reclamation  None: it lives as long as its policy.
# Not promised While others are inside, the size may be above or below the sum of the caches' sizes,
#              and below zero. The cache may be larger than its largest size until a pass was
#              through. A watermark above 98 % leaves sizes in between that trigger and free
#              nothing.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsar_ml.structures.entry cimport entry_length
from pulsar_ml.structures.eviction_policy cimport EvictionPolicy, eviction_configure, eviction_run
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.policy_pass cimport EvictionPass, PolicySettings, size_pass, time_pass
from pulsar_ml.structures.position_map cimport MapCursor
from pulsar_ml.structures.range_cache cimport (
    RangeCache, Removed, range_cache_get, range_cache_next, range_cache_put, range_cache_remove,
)
from pulsar_ml.structures.position cimport Position
from pulsar_ml.structures.status cimport PML_DISABLED, PML_NO_MEMORY, PML_OK, Status
from pulsar_ml.sync.atomics cimport (
    i32_fetch_add_relaxed, i32_fetch_sub_relaxed, i32_load_relaxed, i64_fetch_add_acq_rel,
    i64_fetch_add_relaxed, i64_fetch_add_release, i64_fetch_sub_relaxed, i64_load_acquire,
    i64_load_relaxed, i64_store_relaxed, pml_i32, pml_i64, pml_u32,
    u32_exchange_acq_rel, u32_load_relaxed,
)
from pulsar_ml.sync.thread cimport (
    condition_destroy, condition_enter, condition_init, condition_leave, condition_notify,
    pml_condition, pml_thread,
)


cdef enum:
    MILLION = 1000000
    TRIGGER = 98                # percent of the largest size; a constant of the original
    STRIPES = 16                # a power of two
    # steps after which a pass lets a waiting thread have the policy's monitor
    PASS_SLICE = 1 << 16


# The clock of the thread's passes, in nanoseconds.
ctypedef int64_t (*PassClock)(void* context) noexcept nogil


# Settings as numbers; a negative one stays as it is.
cdef struct ManagerSettings:
    int64_t max_size            # bytes; 0 disables the cache, INT64_MAX is no bound
    int64_t watermark           # millionths of the largest size
    int64_t time_to_live        # nanoseconds
    int64_t interval            # nanoseconds from one tick of the thread to the next
    int32_t max_requeue_count   # of the policy, like the next two
    int32_t extend_recently_accessed
    int64_t time_to_live_max    # nanoseconds


# All counters, as cache_manager_stats copies them.
cdef struct ManagerStats:
    int64_t size
    int64_t inserted_entries
    int64_t inserted_bytes
    int64_t evicted_entries     # by passes and by invalidation
    int64_t evicted_bytes
    int64_t evictions           # size passes
    int64_t requeued            # wrappers that passes kept
    int64_t dropped             # empty wrappers that passes found
    int64_t hits
    int64_t hit_bytes
    int64_t misses
    int64_t miss_bytes
    int64_t tasks               # eviction tasks queued or running, at most one


# Reads of some threads; a line of its own, because reads of others count elsewhere.
cdef struct ReadStripe:
    pml_i64 hits
    pml_i64 hit_bytes
    pml_i64 misses
    pml_i64 miss_bytes
    char[32] apart


cdef struct CacheManager:
    # Read by every insert and every read.
    pml_i64 max_size
    pml_i64 threshold
    EvictionPolicy* policy
    pml_i64 low_mark            # bytes; the goal of a size pass
    pml_i64 time_to_live
    pml_i64 interval
    pml_u32 ending              # passes are to end early
    char[64] apart
    # Written by every insert.
    pml_i64 size
    pml_i64 inserted_entries
    char[48] apart_too
    pml_i64 evicted_entries
    pml_i64 evicted_bytes
    pml_i64 evictions
    pml_i64 requeued
    pml_i64 dropped
    pml_u32 monitor             # one pass at a time; the next is read and written inside
    ManagerSettings settings
    pml_i64 changes             # of the settings
    pml_u32 marker              # 1: a task is queued or running
    pml_i32 tasks
    ReadStripe[16] stripes
    # The thread, see eviction_thread.pxd. The flags are read and written inside the condition.
    pml_condition work
    pml_thread thread
    PassClock clock
    void* clock_context
    bint serving                # the thread takes tasks
    bint stopping
    bint wanted                 # a task waits for the thread


# Settings -----------------------------------------------------------------------------------------

# floor(size * part / whole) without overflow; 0 <= part <= whole, whole > 0.
cdef inline int64_t share(int64_t size, int64_t part, int64_t whole) noexcept nogil:
    return size // whole * part + size % whole * part // whole


cdef inline int64_t chosen(int64_t before, int64_t requested) noexcept nogil:
    return before if requested < 0 else requested


cdef inline void cache_manager_set(CacheManager* manager, const ManagerSettings* requested) noexcept nogil:
    cdef ManagerSettings* now = &manager.settings
    now.max_size = chosen(now.max_size, requested.max_size)
    now.watermark = chosen(now.watermark, requested.watermark)
    now.time_to_live = chosen(now.time_to_live, requested.time_to_live)
    now.interval = chosen(now.interval, requested.interval)
    now.max_requeue_count = <int32_t>chosen(now.max_requeue_count, requested.max_requeue_count)
    now.extend_recently_accessed = <int32_t>chosen(
        now.extend_recently_accessed, requested.extend_recently_accessed)
    now.time_to_live_max = chosen(now.time_to_live_max, requested.time_to_live_max)
    i64_store_relaxed(&manager.max_size, now.max_size)
    i64_store_relaxed(&manager.threshold, share(now.max_size, TRIGGER, 100))
    i64_store_relaxed(&manager.low_mark, share(now.max_size, now.watermark, MILLION))
    i64_store_relaxed(&manager.time_to_live, now.time_to_live)
    i64_store_relaxed(&manager.interval, now.interval)
    eviction_configure(manager.policy, PolicySettings(
        now.max_requeue_count, now.extend_recently_accessed != 0, now.time_to_live_max))
    # Release: a task that counts this change sees it.
    i64_fetch_add_release(&manager.changes, 1)


cdef inline Status cache_manager_init(
    CacheManager* manager, EvictionPolicy* policy, const ManagerSettings* settings
) noexcept nogil:
    memset(manager, 0, sizeof(CacheManager))
    manager.policy = policy
    cache_manager_set(manager, settings)
    return PML_NO_MEMORY if condition_init(&manager.work) else PML_OK


# Without a running thread.
cdef inline void cache_manager_destroy(CacheManager* manager) noexcept nogil:
    condition_destroy(&manager.work)


# In force for every decision taken after this returned (I65). What is too much by the new settings
# goes now, or by the thread.
cdef inline void cache_manager_configure(
    CacheManager* manager, const ManagerSettings* settings, int64_t now
) noexcept nogil:
    monitor_enter(&manager.monitor)
    cache_manager_set(manager, settings)
    monitor_leave(&manager.monitor)
    condition_enter(&manager.work)
    condition_notify(&manager.work)     # the interval may be a shorter one
    condition_leave(&manager.work)
    cache_manager_look(manager, now)


cdef inline bint cache_manager_disabled(const CacheManager* manager) noexcept nogil:
    return i64_load_relaxed(&manager.max_size) == 0


# The books ----------------------------------------------------------------------------------------

# entryAdded: after the put returned and no lock is held.
cdef inline void cache_manager_added(CacheManager* manager, int64_t length, int64_t now) noexcept nogil:
    cdef int64_t size
    size = i64_fetch_add_acq_rel(&manager.size, length) + length
    # Release: a task that counts this insert sees its size, too.
    i64_fetch_add_release(&manager.inserted_entries, 1)
    if size > i64_load_relaxed(&manager.threshold):
        cache_manager_trigger(manager, now)


# entriesRemoved: once for a whole removal or a slice of a pass.
cdef inline void cache_manager_removed(CacheManager* manager, Removed removed) noexcept nogil:
    if removed.entries:
        i64_fetch_add_relaxed(&manager.evicted_entries, removed.entries)
        i64_fetch_add_relaxed(&manager.evicted_bytes, removed.bytes)
        i64_fetch_sub_relaxed(&manager.size, removed.bytes)


# Entries that a read found in the cache. `stripe` is any number; threads that read at the same time
# better have different ones.
cdef inline void cache_manager_hit(
    CacheManager* manager, uint32_t stripe, int64_t entries, int64_t length
) noexcept nogil:
    cdef ReadStripe* mine = &manager.stripes[stripe & (STRIPES - 1)]
    i64_fetch_add_relaxed(&mine.hits, entries)
    i64_fetch_add_relaxed(&mine.hit_bytes, length)


# Entries that a read had to take from storage.
cdef inline void cache_manager_miss(
    CacheManager* manager, uint32_t stripe, int64_t entries, int64_t length
) noexcept nogil:
    cdef ReadStripe* mine = &manager.stripes[stripe & (STRIPES - 1)]
    i64_fetch_add_relaxed(&mine.misses, entries)
    i64_fetch_add_relaxed(&mine.miss_bytes, length)


cdef inline void cache_manager_stats(const CacheManager* manager, ManagerStats* stats) noexcept nogil:
    cdef int32_t i
    memset(stats, 0, sizeof(ManagerStats))
    stats.size = i64_load_relaxed(&manager.size)
    stats.inserted_entries = i64_load_relaxed(&manager.inserted_entries)
    stats.evicted_entries = i64_load_relaxed(&manager.evicted_entries)
    stats.evicted_bytes = i64_load_relaxed(&manager.evicted_bytes)
    stats.inserted_bytes = stats.size + stats.evicted_bytes
    stats.evictions = i64_load_relaxed(&manager.evictions)
    stats.requeued = i64_load_relaxed(&manager.requeued)
    stats.dropped = i64_load_relaxed(&manager.dropped)
    stats.tasks = i32_load_relaxed(&manager.tasks)
    for i in range(STRIPES):
        stats.hits += i64_load_relaxed(&manager.stripes[i].hits)
        stats.hit_bytes += i64_load_relaxed(&manager.stripes[i].hit_bytes)
        stats.misses += i64_load_relaxed(&manager.stripes[i].misses)
        stats.miss_bytes += i64_load_relaxed(&manager.stripes[i].miss_bytes)


# Caches -------------------------------------------------------------------------------------------

# range_cache_put, counted. PML_DISABLED: the caller keeps its reference.
cdef inline Status cache_manager_put(
    CacheManager* manager, RangeCache* cache, Position key, uint32_t entry, uint32_t length, int64_t now
) noexcept nogil:
    cdef Status status
    if cache_manager_disabled(manager):
        return PML_DISABLED
    status = range_cache_put(cache, key, entry, length, now)
    if status == PML_OK:
        cache_manager_added(manager, length, now)
    return status


# range_cache_get, counted; nothing while the cache is disabled.
cdef inline uint32_t cache_manager_get(
    CacheManager* manager, const RangeCache* cache, Position key, uint32_t stripe
) noexcept nogil:
    cdef uint32_t entry
    if cache_manager_disabled(manager):
        return 0
    entry = range_cache_get(cache, key)
    if entry:
        cache_manager_hit(manager, stripe, 1, entry_length(&cache.memory.entries, entry))
    return entry


# range_cache_next; nothing while the cache is disabled. The caller counts what it keeps.
cdef inline uint32_t cache_manager_next(
    const CacheManager* manager, const RangeCache* cache, MapCursor* cursor
) noexcept nogil:
    return 0 if cache_manager_disabled(manager) else range_cache_next(cache, cursor)


# range_cache_remove, counted.
cdef inline Removed cache_manager_remove(
    CacheManager* manager, RangeCache* cache, MapCursor* cursor, int64_t most_entries
) noexcept nogil:
    cdef Removed removed = range_cache_remove(cache, cursor, most_entries)
    cache_manager_removed(manager, removed)
    return removed


# Passes -------------------------------------------------------------------------------------------

# Runs a pass for at most so many steps and counts what it removed; True when it is not over yet.
# Inside the monitor.
cdef inline bint cache_manager_step(
    CacheManager* manager, EvictionPass* run, int64_t most_steps
) noexcept nogil:
    cdef Removed removed = run.removed
    cdef int64_t requeued = run.requeued
    cdef int64_t dropped = run.missing
    cdef bint more = eviction_run(manager.policy, run, most_steps)
    removed.entries = run.removed.entries - removed.entries
    removed.bytes = run.removed.bytes - removed.bytes
    cache_manager_removed(manager, removed)
    i64_fetch_add_relaxed(&manager.requeued, run.requeued - requeued)
    i64_fetch_add_relaxed(&manager.dropped, run.missing - dropped)
    return more


# Takes one slice of a pass that a caller made and may want to interrupt; False when the pass is
# over.
cdef inline bint cache_manager_run(
    CacheManager* manager, EvictionPass* run, int64_t most_steps
) noexcept nogil:
    cdef bint more
    monitor_enter(&manager.monitor)
    more = cache_manager_step(manager, run, most_steps)
    monitor_leave(&manager.monitor)
    return more


# A slice of a size pass down to the watermark, which begins if the size is above the threshold;
# True when it is not over yet. `run` is a size pass with target 0 when it begins.
#
# Inside the monitor the size is looked at anew: while this thread waited for it, another pass may
# have freed what was too much.
cdef inline bint cache_manager_evict(
    CacheManager* manager, EvictionPass* run, int64_t most_steps
) noexcept nogil:
    cdef bint more = False
    cdef int64_t size, excess
    monitor_enter(&manager.monitor)
    size = i64_load_relaxed(&manager.size)
    excess = size - i64_load_relaxed(&manager.low_mark)
    if run.target == 0 and size > i64_load_relaxed(&manager.threshold) and excess > 0:
        run.target = excess
        i64_fetch_add_relaxed(&manager.evictions, 1)
    if run.target > 0 and excess > 0:
        if run.target > run.removed.bytes + excess:
            run.target = run.removed.bytes + excess
        more = cache_manager_step(manager, run, most_steps)
    monitor_leave(&manager.monitor)
    return more


# The time pass over what is older than the time to live.
cdef inline EvictionPass cache_manager_expiry(const CacheManager* manager, int64_t now) noexcept nogil:
    cdef int64_t time_to_live = i64_load_relaxed(&manager.time_to_live)
    return time_pass(<int64_t>(<uint64_t>now - <uint64_t>time_to_live), now)


# A time pass, if requested, and the size pass after it; answers the entries removed.
cdef inline int64_t cache_manager_passes(CacheManager* manager, bint by_time, int64_t now) noexcept nogil:
    cdef EvictionPass old = cache_manager_expiry(manager, now)
    cdef EvictionPass over = size_pass(0, now)
    while by_time and cache_manager_run(manager, &old, PASS_SLICE):
        if u32_load_relaxed(&manager.ending):
            break
    while cache_manager_evict(manager, &over, PASS_SLICE):
        if u32_load_relaxed(&manager.ending):
            break
    return old.removed.entries + over.removed.entries


# The trigger --------------------------------------------------------------------------------------

# Sets the marker; True for the thread that found it clear, which owes a task.
cdef inline bint cache_manager_mark(CacheManager* manager) noexcept nogil:
    if u32_exchange_acq_rel(&manager.marker, 1) != 0:
        return False
    i32_fetch_add_relaxed(&manager.tasks, 1)
    return True


# The task of the thread that set the marker: a size pass to the watermark, with `by_time` after a
# time pass.
cdef inline void cache_manager_task(CacheManager* manager, bint by_time, int64_t now) noexcept nogil:
    cdef int64_t inserted, changes, freed
    while True:
        # Pair with the releases in cache_manager_added and cache_manager_set.
        inserted = i64_load_acquire(&manager.inserted_entries)
        changes = i64_load_acquire(&manager.changes)
        freed = cache_manager_passes(manager, by_time, now)
        by_time = False
        i32_fetch_sub_relaxed(&manager.tasks, 1)
        u32_exchange_acq_rel(&manager.marker, 0)
        # An insert or a change that came after the last look at the size and found the marker set
        # left it to us. Ends when neither came and nothing could be freed.
        if (not freed and i64_load_relaxed(&manager.inserted_entries) == inserted
                and i64_load_relaxed(&manager.changes) == changes):
            return
        if i64_load_relaxed(&manager.size) <= i64_load_relaxed(&manager.threshold):
            return
        if not cache_manager_mark(manager):
            return


# True if the thread takes the task. An insert never evicts itself while there is one.
cdef inline bint cache_manager_submit(CacheManager* manager) noexcept nogil:
    cdef bint taken
    condition_enter(&manager.work)
    taken = manager.serving
    if taken:
        manager.wanted = True
        condition_notify(&manager.work)
    condition_leave(&manager.work)
    return taken


# Sees to it that one task is under way; whether this call made it.
cdef inline bint cache_manager_trigger(CacheManager* manager, int64_t now) noexcept nogil:
    if not cache_manager_mark(manager):
        return False
    if not cache_manager_submit(manager):
        cache_manager_task(manager, False, now)
    return True


# Triggers an eviction if the size is above the threshold. The size is exchanged with itself: either
# this call sees an insert, or that insert sees the settings from before this call.
cdef inline bint cache_manager_look(CacheManager* manager, int64_t now) noexcept nogil:
    if i64_fetch_add_acq_rel(&manager.size, 0) <= i64_load_relaxed(&manager.threshold):
        return False
    return cache_manager_trigger(manager, now)


# The periodic task: a time pass, then the watermark. It runs beside a task that is under way, one
# pass after the other.
cdef inline void cache_manager_tick(CacheManager* manager, int64_t now) noexcept nogil:
    if cache_manager_mark(manager):
        cache_manager_task(manager, True, now)
    else:
        cache_manager_passes(manager, True, now)
