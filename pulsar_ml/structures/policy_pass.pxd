# The common part of all eviction policies: memory, settings, the row of the table that describes a
# policy, the pass that counts its work, and removal.
#
# Origin       RangeCacheRemovalCounters and the pass arguments of Pulsar 4.1. A pass can be cut
#              into slices; time is an argument.
# Threads      Settings and slices of a pass: under the monitor. A pass belongs to the thread that
#              runs it.
# Invariants   PP-1 (I46) a pass counts the entries and bytes that it removed itself, and no others.
#              PP-2 (I101) an entry is removed inside the write section of its wrapper.
# Ordering     See monitor.pxd and stamped_lock.pxd.
# Reclamation  The policy recycles a wrapper after it left every queue or list. What a step puts
#              off, pass_settle gives back before the monitor is left.
# Not promised Anything about another pass that runs between two slices: a pass carries on with what
#              it finds.

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsar_ml.structures.entry cimport entry_forget_access
from pulsar_ml.structures.entry_wrapper cimport (
    EntryWrapper, wrapper_is_empty, wrapper_key, wrapper_mark_requeued, wrapper_recycle,
)
from pulsar_ml.structures.object_pool cimport PoolChain, pool_give_all
from pulsar_ml.structures.policy_intake cimport PolicyIntake, Touch
from pulsar_ml.structures.position cimport Position
from pulsar_ml.structures.position_map cimport MapCursor
from pulsar_ml.structures.range_cache cimport (
    CacheMemory, RangeCache, Removed, range_cache_of, range_cache_settle, range_cache_unlink,
)
from pulsar_ml.structures.stamped_lock cimport stamped_lock_write, stamped_unlock_write
from pulsar_ml.sync.atomics cimport i64_fetch_sub_relaxed, i64_load_relaxed, u32_load_relaxed


# The decision of a step about a wrapper.
cdef enum PassVerdict:
    REMOVE = 0
    REQUEUE = 1             # keep it: at the tail, or in another list
    STOP = 2
    MISSING = 3             # it is empty


# The settings of all policies. Each policy reads those that mean something to it.
cdef struct PolicySettings:
    int32_t max_requeue_count
    bint extend_recently_accessed
    # nanoseconds, of entries that still expect reads (stash_queue, priority_queue)
    int64_t time_to_live_max


cdef struct PolicyBase:
    PolicyIntake intake
    CacheMemory* memory
    PolicySettings settings     # under the monitor
    void* state                 # of row.state_bytes, under the monitor; NULL for none
    int64_t most_keeps          # see PolicyRow
    bint one_budget             # likewise


# The entry that a pass removed last.
cdef struct Victim:
    Position key
    uint32_t owner
    int64_t timestamp
    int64_t size


# A time pass has no byte target, a size pass no threshold.
cdef struct EvictionPass:
    bint by_time
    int64_t threshold       # nanoseconds; a time pass removes what is older
    int64_t target          # bytes a size pass wants free
    int64_t now             # nanoseconds; the timestamp of what is kept
    Removed removed
    PoolChain dropped       # wrappers that left the policy
    RangeCache* cache       # of the last removals, whose bytes below are not taken off its size yet
    int64_t uncounted
    int64_t requeued
    int64_t missing         # empty wrappers dropped
    int64_t given_up        # entries removed because there was no memory to keep them
    Victim last
    # Where the policy goes on in the next slice.
    bint begun
    bint second             # the first of two lists is done
    bint unplanned          # there was no memory for a plan
    uint64_t round_end      # the end of the first round
    uint64_t index
    uint64_t serial
    int64_t quota
    MapCursor cursor


ctypedef bint (*PolicyStep)(PolicyBase* base, EvictionPass* run) noexcept nogil
ctypedef bint (*PolicyInit)(PolicyBase* base) noexcept nogil
ctypedef void (*PolicyDestroy)(PolicyBase* base) noexcept nogil
ctypedef int64_t (*PolicyHeld)(const PolicyBase* base) noexcept nogil


# One policy: a row of the table in eviction_policy.pxd. A function that is NULL has nothing to do.
cdef struct PolicyRow:
    const char* name        # in Python and in broker.conf
    const char* summary     # for printed lists
    PolicyStep step         # handles one wrapper under the monitor; False when the pass is over
    size_t state_bytes      # of base.state, which is zeroed before init
    PolicyInit init         # alone; False without memory
    PolicyDestroy destroy   # alone, after any init
    PolicyHeld held         # wrappers in the state, empty ones too; exact at quiescence
    Touch touch             # a hit
    # False: the thread that removes an entry recycles its wrapper, and a size pass asks each
    bint queued
                            # cache for its part
    bint merges_counts      # see PolicyIntake
    bint counts_of_4        # see EntryPool; a duplicate's expected reads are dropped, too
    bint one_budget         # a requeue for an access uses up an extension of expected reads
    bint keeps_accessed     # a pass keeps an accessed entry at least once, if the settings say so
    bint frees_target       # False: a size pass may free less than its target though more is cached
    int64_t slice_steps     # most steps that a hit waits for; 0: hits wait for none
    int64_t most_keeps      # how often a pass keeps one wrapper at most; -1: no bound


# A row with what most policies have: a queue, no state, and at most one keep in a pass.
cdef inline PolicyRow policy_row(
    const char* name, const char* summary, PolicyStep step
) noexcept nogil:
    cdef PolicyRow row
    memset(&row, 0, sizeof(PolicyRow))
    row.name = name
    row.summary = summary
    row.step = step
    row.queued = True
    row.frees_target = True
    row.most_keeps = 1
    return row


# Removes entries with a timestamp before the threshold.
cdef inline EvictionPass time_pass(int64_t threshold, int64_t now) noexcept nogil:
    cdef EvictionPass run
    memset(&run, 0, sizeof(EvictionPass))
    run.by_time = True
    run.threshold = threshold
    run.now = now
    return run


# Removes entries until `target` bytes (above zero) are free.
cdef inline EvictionPass size_pass(int64_t target, int64_t now) noexcept nogil:
    cdef EvictionPass run
    memset(&run, 0, sizeof(EvictionPass))
    run.target = target
    run.now = now
    return run


# True if `timestamp` is before `threshold`. The difference, not the values, is compared: clocks may
# be negative or wrap.
cdef inline bint pass_is_before(int64_t timestamp, int64_t threshold) noexcept nogil:
    return <int64_t>(<uint64_t>threshold - <uint64_t>timestamp) > 0


# Inside the write section of a wrapper that holds a value: removes its entry and counts it.
cdef inline void pass_remove(
    const PolicyBase* base, EvictionPass* run, uint32_t handle, EntryWrapper* wrapper
) noexcept nogil:
    cdef RangeCache* cache = range_cache_of(base.memory, wrapper)
    cdef int64_t before = run.removed.bytes
    run.last.key = wrapper_key(wrapper, &base.memory.map)
    run.last.owner = cache.number
    run.last.timestamp = i64_load_relaxed(&wrapper.timestamp)
    range_cache_unlink(cache, run.last.key, handle, wrapper, &run.removed)
    run.last.size = run.removed.bytes - before
    if cache != run.cache:
        pass_count(run)
        run.cache = cache
    run.uncounted += run.last.size


# Inside the write section of a wrapper that holds a value: marks it as kept (I59).
cdef inline void pass_mark_requeued(
    const PolicyBase* base, EntryWrapper* wrapper, int64_t now, uint16_t charge
) noexcept nogil:
    wrapper_mark_requeued(wrapper, &base.memory.map, now, charge)
    entry_forget_access(&base.memory.entries, u32_load_relaxed(&wrapper.value))


# Takes the bytes of the last removals off the size of their cache.
cdef inline void pass_count(EvictionPass* run) noexcept nogil:
    if run.uncounted:
        i64_fetch_sub_relaxed(&run.cache.size, run.uncounted)
        run.uncounted = 0


# Under the monitor, before it is left: gives back and counts what the steps before put off. A cache
# may be deleted afterwards.
cdef inline void pass_settle(const PolicyBase* base, EvictionPass* run) noexcept nogil:
    pass_count(run)
    run.cache = NULL
    range_cache_settle(base.memory, &run.removed)
    pool_give_all(&base.memory.wrappers, &run.dropped)


# Without memory to keep a wrapper where it belongs its entry is removed. The wrapper is in no queue
# or list of the policy any more.
cdef inline void pass_give_up(
    const PolicyBase* base, EvictionPass* run, uint32_t handle, EntryWrapper* wrapper
) noexcept nogil:
    stamped_lock_write(&wrapper.lock)
    if not wrapper_is_empty(wrapper):
        pass_remove(base, run, handle, wrapper)
        run.given_up += 1
    else:  # another thread emptied it since the pass looked
        run.missing += 1
    stamped_unlock_write(&wrapper.lock)
    wrapper_recycle(&base.memory.wrappers, handle)
