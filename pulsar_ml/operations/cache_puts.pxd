# Puts into the range caches of a world: plain, late, foreign and alone; and the calls that go
# through the manager where the world has one.

from libc.stdint cimport int32_t, int64_t, uint32_t

from pulsar_ml.harness.subjects.subject cimport PmlResult, PmlViolation
from pulsar_ml.operations.cache_world cimport (
    CacheWorld, WorldThread, world_counted, world_entry, world_equal, world_later, world_position,
    world_release, world_tick, world_ticks, world_vacancy, world_verify, world_violate,
)
from pulsar_ml.structures.cache_manager cimport (
    cache_manager_get, cache_manager_next, cache_manager_put, cache_manager_remove,
)
from pulsar_ml.structures.entry cimport entry_length, entry_read_count, entry_retain
from pulsar_ml.structures.position cimport Position
from pulsar_ml.structures.position_map cimport MapCursor
from pulsar_ml.structures.range_cache cimport (
    Removed, range_cache_get, range_cache_next, range_cache_put, range_cache_remove,
)
from pulsar_ml.structures.status cimport (
    PML_DISABLED, PML_EXISTS, PML_MISMATCH, PML_NO_MEMORY, PML_OK, Status,
)
from pulsar_ml.sync.atomics cimport i64_fetch_add_relaxed, i64_fetch_sub_relaxed


# With and without a manager -----------------------------------------------------------------------

# The counters of a thread's reads: any number, and more than there are counters.
cdef inline uint32_t world_stripe(int32_t thread) noexcept nogil:
    return <uint32_t>(7 * thread + 19)


cdef inline Status world_put(
    CacheWorld* world, int64_t cache, Position key, uint32_t entry, uint32_t length, int64_t now
) noexcept nogil:
    if world.manager is NULL:
        return range_cache_put(world.caches[cache], key, entry, length, now)
    return cache_manager_put(world.manager, world.caches[cache], key, entry, length, now)


cdef inline uint32_t world_get(
    CacheWorld* world, int32_t thread, int64_t cache, Position key
) noexcept nogil:
    cdef WorldThread* me = &world.threads[thread]
    cdef uint32_t entry
    if world.manager is NULL:
        return range_cache_get(world.caches[cache], key)
    entry = cache_manager_get(world.manager, world.caches[cache], key, world_stripe(thread))
    if entry:
        me.hits += 1
        me.hit_bytes += entry_length(&world.memory.entries, entry)
    return entry


cdef inline uint32_t world_next(CacheWorld* world, int64_t cache, MapCursor* cursor) noexcept nogil:
    if world.manager is NULL:
        return range_cache_next(world.caches[cache], cursor)
    return cache_manager_next(world.manager, world.caches[cache], cursor)


cdef inline Removed world_remove(
    CacheWorld* world, int64_t cache, MapCursor* cursor, int64_t most
) noexcept nogil:
    if world.manager is NULL:
        return range_cache_remove(world.caches[cache], cursor, most)
    return cache_manager_remove(world.manager, world.caches[cache], cursor, most)


# Puts ---------------------------------------------------------------------------------------------

# put(cache, key, expected reads): words are the incarnation and the bytes counted. A late put took
# its timestamp so many ticks ago, as a producer does that was held up before it reached the queue.
cdef inline void range_put(
    CacheWorld* world, int32_t thread, int64_t cache, int64_t key, int64_t expected_reads, int64_t late,
    PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef WorldThread* me = &world.threads[thread]
    cdef int64_t now = world_later(world_tick(world), -late)
    cdef uint32_t entry = world_entry(world, thread, cache, key, expected_reads)
    cdef uint32_t length = world_counted(world, key)
    if not entry:
        range_put_refused(world, thread, result)
        return
    result.status = world_put(world, cache, world_position(world, key), entry, length, now)
    if result.status == PML_OK:
        # The reference is the cache's now: the entry is not to be touched any more.
        me.put_entries[cache] += 1
        me.put_bytes[cache] += length
        result.words[0] = <int64_t>thread << 40 | me.incarnations
        result.words[1] = length
        return
    if world_verify(world, cache, key, entry, violation):
        world_release(world, entry, violation)
    if result.status == PML_NO_MEMORY:
        range_put_refused(world, thread, result)


# A put without memory takes no number and no moment, so that a second try answers as the first
# would have.
cdef inline void range_put_refused(CacheWorld* world, int32_t thread, PmlResult* result) noexcept nogil:
    result.status = PML_NO_MEMORY
    world.threads[thread].incarnations -= 1
    i64_fetch_add_relaxed(&world.given_back, 1)
    i64_fetch_sub_relaxed(&world.clock, world_ticks(1))


# An entry offered under a position that is not its own is refused.
cdef inline void range_put_foreign(
    CacheWorld* world, int32_t thread, int64_t cache, int64_t key, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef int64_t now = world_tick(world)
    cdef uint32_t entry = world_entry(world, thread, cache, key, 0)
    if not entry:
        range_put_refused(world, thread, result)
        return
    result.status = world_put(world, cache, world_vacancy(world, key), entry, 1, now)
    if result.status != PML_DISABLED:
        world_equal(world, violation, b"I1", b"status of a put under a foreign position", result.status,
                    PML_MISMATCH)
    if world_verify(world, cache, key, entry, violation):
        world_release(world, entry, violation)


# Nobody else puts: where the position was taken, the cached entry shares the read count of the
# newest.
cdef inline void range_put_alone(
    CacheWorld* world, int32_t thread, int64_t cache, int64_t key, int64_t expected_reads,
    PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef uint32_t newest = world_entry(world, thread, cache, key, expected_reads)
    cdef uint32_t length = world_counted(world, key)
    cdef uint32_t cached
    cdef int64_t now = world_tick(world)
    if not newest:
        range_put_refused(world, thread, result)
        return
    entry_retain(&world.memory.entries, newest)
    result.status = world_put(world, cache, world_position(world, key), newest, length, now)
    if result.status == PML_OK:
        world.threads[thread].put_entries[cache] += 1
        world.threads[thread].put_bytes[cache] += length
        result.words[0] = <int64_t>thread << 40 | world.threads[thread].incarnations
        result.words[1] = length
    elif (result.status == PML_EXISTS and not world.policy.row.merges_counts
            and not world.policy.row.counts_of_4):
        cached = world_get(world, thread, cache, world_position(world, key))
        if cached:
            world_same_reads(world, key, cached, newest, violation)
            world_release(world, cached, violation)
    if result.status != PML_OK:
        world_release(world, newest, violation)
    world_release(world, newest, violation)


# A read count that the newest entry has is shared. One that it does not have may have been made
# since.
cdef inline void world_same_reads(
    CacheWorld* world, int64_t key, uint32_t cached, uint32_t newest, PmlViolation* violation
) noexcept nogil:
    cdef uint32_t count = entry_read_count(&world.memory.entries, newest)
    if count and entry_read_count(&world.memory.entries, cached) != count:
        world_violate(world, violation, b"I71", b"the entry cached under key %lld does not share the read "
                      b"count of its newest addition", key, 0, 0)
