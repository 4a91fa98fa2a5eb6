# The checks of a cache world while no operation is under way: once with its entries, once after it
# was emptied.
#
# A check gives back what threads hold, looks at every linked wrapper and at the sums, evicts what
# was not accessed, clears the caches, lets the policy drop the empty wrappers and expects every
# pool to be empty.

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t

from pulsar_ml.harness.subjects.subject cimport PmlResult, PmlViolation
from pulsar_ml.operations.cache_world cimport (
    FIRST_TICK, KEPT, PLACES, CacheWorld, world_counted, world_equal, world_free, world_give_back,
    world_in_use, world_is_before, world_key, world_later, world_release_kept, world_tick, world_ticks,
    world_verify, world_violate,
)
from pulsar_ml.operations.cache_operations cimport range_remove_all
from pulsar_ml.operations.policy_check cimport policy_check
from pulsar_ml.structures.entry cimport Payload, entry_references, entry_was_accessed
from pulsar_ml.structures.entry_wrapper cimport EntryWrapper, wrapper_at, wrapper_holds
from pulsar_ml.structures.eviction_policy cimport eviction_configure, eviction_held, eviction_run
from pulsar_ml.structures.policy_pass cimport (
    EvictionPass, PolicySettings, time_pass,
)
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.position_map cimport MapCursor, map_cursor, map_is_empty, map_next
from pulsar_ml.structures.range_cache cimport range_cache_size
from pulsar_ml.structures.receive_buffer cimport buffer_books_pinned
from pulsar_ml.structures.stamped_lock cimport STAMPED_READERS, STAMPED_WRITER
from pulsar_ml.sync.atomics cimport i32_load_relaxed, i64_load_relaxed, u32_load_relaxed, u32_store_relaxed


# Gives back what threads hold, checks what is linked, then clears everything and checks that
# nothing is left. The world is empty afterwards and can be used again.
cdef inline void world_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef CacheWorld* world = <CacheWorld*>instance
    cdef int32_t thread, i
    if u32_load_relaxed(&world.broken):
        return
    for thread in range(world.n_threads):
        for i in range(PLACES):
            world_give_back(world, &world.threads[thread].held[i], violation)
    for i in range(world.n_caches):
        if not violation.found:
            world_check_linked(world, i, violation)
    world_check_policy(world, violation)
    if violation.found or not world_check_totals(world, violation):
        return
    world_last_pass(world, violation)
    world_check_policy(world, violation)
    if violation.found or not world_check_totals(world, violation):
        return
    world_empty(world, violation)
    if not violation.found:
        world_check_empty(world, violation)


# EP-6. With broken lists nothing can be relied on any more.
cdef inline void world_check_policy(CacheWorld* world, PmlViolation* violation) noexcept nogil:
    policy_check(&world.policy, violation)
    if violation.found:
        u32_store_relaxed(&world.broken, 1)


# I15, I27, I31, I41, I102: every wrapper in the map, and the size.
cdef inline void world_check_linked(CacheWorld* world, int32_t cache, PmlViolation* violation) noexcept nogil:
    cdef MapCursor cursor = map_cursor(position(-1, -1), position(INT64_MAX, INT64_MAX))
    cdef EntryWrapper* wrapper
    cdef Position found
    cdef uint32_t handle
    cdef int64_t key, bytes = 0, previous = -1
    while True:
        handle = map_next(&world.caches[cache].map, &cursor, &found)
        if not handle:
            break
        key = world_key(world, found)
        if key <= previous:
            world_violate(world, violation, b"I31", b"the map has key %lld after key %lld", key, previous, 0)
            return
        previous = key
        wrapper = wrapper_at(&world.memory.wrappers, handle)
        if u32_load_relaxed(&wrapper.lock) & (STAMPED_WRITER | STAMPED_READERS):
            world_violate(world, violation, b"I102", b"the wrapper of key %lld is still locked", key, 0, 0)
            return
        if (not wrapper_holds(wrapper, &world.memory.map, world.caches[cache], found)
                or not u32_load_relaxed(&wrapper.value)):
            world_violate(world, violation, b"I27", b"the wrapper linked under key %lld of cache %lld does "
                          b"not hold it", key, cache, 0)
            return
        if not world_verify(world, cache, key, u32_load_relaxed(&wrapper.value), violation):
            return
        if not world_equal(world, violation, b"I15", b"references of a cached entry that nobody else holds",
                           entry_references(&world.memory.entries, u32_load_relaxed(&wrapper.value)), 1):
            return
        if not world_equal(world, violation, b"I44", b"bytes counted for a cached entry", wrapper.size,
                           world_counted(world, key)):
            return
        if not world_is_moment(world, i64_load_relaxed(&wrapper.timestamp)):
            world_violate(world, violation, b"I59", b"the timestamp of key %lld is %lld, and the clock is at "
                          b"%lld", key, i64_load_relaxed(&wrapper.timestamp),
                          i64_load_relaxed(&world.clock))
            return
        bytes += wrapper.size
    world_equal(world, violation, b"I41", b"the size of a cache whose wrappers' sizes were added up",
                range_cache_size(world.caches[cache]), bytes)


# True for a moment of the world's clock: a whole tick that was, and none before the first one.
cdef inline bint world_is_moment(CacheWorld* world, int64_t moment) noexcept nogil:
    cdef int64_t latest = world_later(
        i64_load_relaxed(&world.clock), i64_load_relaxed(&world.given_back))
    return (moment & (world_ticks(1) - 1) == 0 and not world_is_before(moment, world_ticks(FIRST_TICK))
            and not world_is_before(latest, moment))


# I46, I47 before anything is cleared: what was put and not removed is linked.
cdef inline bint world_check_totals(CacheWorld* world, PmlViolation* violation) noexcept nogil:
    cdef int64_t entries = 0, bytes = 0, linked = 0, size = 0
    cdef int32_t cache, thread
    cdef MapCursor cursor
    cdef Position found
    for thread in range(world.n_threads):
        entries -= world.threads[thread].passed_entries
        bytes -= world.threads[thread].passed_bytes
        for cache in range(world.n_caches):
            entries += world.threads[thread].put_entries[cache] - world.threads[thread].removed_entries[cache]
            bytes += world.threads[thread].put_bytes[cache] - world.threads[thread].removed_bytes[cache]
    for cache in range(world.n_caches):
        size += range_cache_size(world.caches[cache])
        cursor = map_cursor(position(-1, -1), position(INT64_MAX, INT64_MAX))
        while map_next(&world.caches[cache].map, &cursor, &found):
            linked += 1
    return (world_equal(world, violation, b"I47", b"entries put less those removed, against those linked",
                        entries, linked)
            and world_equal(world, violation, b"I46", b"bytes put less those removed, against the sizes",
                            bytes, size))


# I55, I59: a time pass that nobody disturbs, for which everything is old and no read is waited for,
# removes all but what a queue keeps because it was accessed, and leaves that marked as new and not
# accessed.
cdef inline void world_last_pass(CacheWorld* world, PmlViolation* violation) noexcept nogil:
    # Later than every put: one without memory gives its moment back, and then two moments may be
    # equal.
    cdef int64_t now = world_later(world_tick(world), 1 << 20)
    cdef EvictionPass run = time_pass(now, now)
    cdef PolicySettings settings = world.policy.base.settings
    cdef bint keeps = world.policy.row.keeps_accessed
    cdef int64_t accessed = world_count(world, now, False) if keeps else 0
    cdef int64_t linked = world_count(world, now, True)
    eviction_configure(&world.policy, PolicySettings(0, True, 0))
    # More than it takes, and an end where the policy is broken.
    eviction_run(&world.policy, &run, 4 * (eviction_held(&world.policy) + linked) + 64)
    eviction_configure(&world.policy, settings)
    world.threads[0].passed_entries += run.removed.entries
    world.threads[0].passed_bytes += run.removed.bytes
    world.threads[0].missing += run.missing
    world_equal(world, violation, b"I64", b"old entries removed", run.removed.entries, linked - accessed)
    if keeps:
        world_equal(world, violation, b"I55", b"entries kept because they were accessed", run.requeued,
                    accessed)
    world_equal(world, violation, b"I59", b"kept wrappers that are marked as accessed",
                world_count(world, now, False), 0)
    world_equal(world, violation, b"I59", b"kept wrappers without the time of the pass",
                world_count(world, now, True), 0)


# Linked wrappers that are marked as accessed, or whose timestamp is not `now`.
cdef inline int64_t world_count(const CacheWorld* world, int64_t now, bint by_time) noexcept nogil:
    cdef MapCursor cursor
    cdef EntryWrapper* wrapper
    cdef Position found
    cdef uint32_t handle
    cdef int64_t count = 0
    cdef int32_t cache
    for cache in range(world.n_caches):
        cursor = map_cursor(position(-1, -1), position(INT64_MAX, INT64_MAX))
        while True:
            handle = map_next(&world.caches[cache].map, &cursor, &found)
            if not handle:
                break
            wrapper = wrapper_at(&world.memory.wrappers, handle)
            if by_time:
                count += i64_load_relaxed(&wrapper.timestamp) != now
            else:
                count += entry_was_accessed(&world.memory.entries, u32_load_relaxed(&wrapper.value))
    return count


# Clears the caches, lets the policy drop its empty wrappers and gives the kept payloads back.
cdef inline void world_empty(CacheWorld* world, PmlViolation* violation) noexcept nogil:
    cdef PmlResult ignored = PmlResult(0, [0, 0, 0, 0])
    cdef EvictionPass run = time_pass(world_ticks(FIRST_TICK), world_tick(world))
    cdef int64_t offered = 0, dropped = 0
    cdef int64_t queued = eviction_held(&world.policy)
    cdef int32_t cache, thread, i
    cdef Payload* payload
    for cache in range(world.n_caches):
        range_remove_all(world, 0, cache, &ignored, violation)
        world_equal(world, violation, b"I43", b"the size of a cleared cache",
                    range_cache_size(world.caches[cache]), 0)
        world_equal(world, violation, b"I27", b"whether a cleared map is empty",
                    map_is_empty(&world.caches[cache].map), 1)
    for thread in range(world.n_threads):
        dropped += world.threads[thread].missing + world.threads[thread].passed_entries
        for cache in range(world.n_caches):
            offered += world.threads[thread].put_entries[cache]
    # Where nothing is queued, the thread that removes an entry recycles its wrapper.
    if not world.policy.row.queued:
        offered = dropped
    if not world_equal(world, violation, b"I23", b"wrappers offered less those dropped, against the queue",
                       offered - dropped, queued):
        return
    # More than it takes, and an end where the policy is broken.
    eviction_run(&world.policy, &run, 4 * queued + 64)
    world.threads[0].missing += run.missing
    world_equal(world, violation, b"I43", b"entries that a pass removed from cleared caches",
                run.removed.entries, 0)
    world_equal(world, violation, b"I60", b"empty wrappers dropped from the queue", run.missing, queued)
    world_equal(world, violation, b"I23", b"wrappers left in the queue",
                eviction_held(&world.policy), 0)
    for thread in range(world.n_threads):
        for i in range(KEPT):
            payload = world.threads[thread].kept[i]
            if payload is not NULL and not world_equal(
                    world, violation, b"I16", b"references of a payload that only its keeper shares",
                    i32_load_relaxed(&payload.references), 1):
                return
    world_release_kept(world)


# I17, I20, I23, I39: nothing is in use any more.
cdef inline void world_check_empty(CacheWorld* world, PmlViolation* violation) noexcept nogil:
    cdef int64_t n_entries = 0, entry_sum = 0
    cdef int32_t thread
    for thread in range(world.n_threads):
        n_entries += world.threads[thread].n_entries
        entry_sum += world.threads[thread].entry_sum
    world_equal(world, violation, b"I23", b"wrappers in use", world_in_use(&world.memory.wrappers), 0)
    world_equal(world, violation, b"I17", b"entries in use", world_in_use(&world.memory.entries.entries), 0)
    world_equal(world, violation, b"I17", b"bytes of receive buffers",
                i64_load_relaxed(&world.memory.buffers.allocated), 0)
    world_equal(world, violation, b"RB-2", b"bytes pinned by an empty cache",
                buffer_books_pinned(&world.memory.buffers, 0), 0)
    world_equal(world, violation, b"I20", b"deallocations", i64_load_relaxed(&world.deallocated), n_entries)
    world_equal(world, violation, b"I20", b"the sum of incarnations deallocated",
                i64_load_relaxed(&world.deallocated_sum), entry_sum)
    world_equal(world, violation, b"I20", b"callbacks in use",
                world_in_use(&world.memory.entries.callbacks), 0)
    world_equal(world, violation, b"I70", b"expected-read counts in use",
                world_in_use(&world.memory.entries.read_counts), 0)
    world_equal(world, violation, b"I39", b"pages in use", world_in_use(&world.memory.map.pages), 0)
    world_equal(world, violation, b"I39", b"branches in use", world_in_use(&world.memory.map.branches), 0)
    world_equal(world, violation, b"I24", b"caches in use", world_in_use(&world.memory.caches),
                world.n_caches)


# Caches that still hold something are emptied as a check does it, and what that finds is not
# reported any more. After a check nothing is left: a second one could only turn a violation that
# the first one did not see into a leak.
cdef inline void world_destroy(void* instance) noexcept nogil:
    cdef CacheWorld* world = <CacheWorld*>instance
    cdef PmlViolation unreported
    unreported.found = 0
    if world_in_use(&world.memory.wrappers) or world_in_use(&world.memory.entries.entries):
        world_check(instance, &unreported)
    world_free(world)
