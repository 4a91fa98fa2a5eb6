# Operations on range caches that only look, and take no reference: whether an entry exists, the
# size of a cache, and the description of an entry.

from libc.stdint cimport int64_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlResult, PmlViolation
from pulsar_ml.operations.cache_world cimport (
    FIRST_TICK, MOST_LATE, TICK_BITS, CacheWorld, world_key, world_position, world_ticks, world_vacancy,
    world_violate,
)
from pulsar_ml.structures.cached_state cimport CachedState, range_cache_look
from pulsar_ml.structures.position_map cimport MapCursor
from pulsar_ml.structures.range_cache cimport range_cache_cursor, range_cache_exists, range_cache_size


cdef enum:
    VIEW_HIT = 1            # as RANGE_HIT


cdef inline void range_exists(
    CacheWorld* world, int64_t cache, int64_t key, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    result.status = range_cache_exists(world.caches[cache], world_position(world, key))
    if range_cache_exists(world.caches[cache], world_vacancy(world, key)):
        world_violate(world, violation, b"I8", b"the position beside key %lld exists and was never put",
                      key, 0, 0)


cdef inline void range_size(
    CacheWorld* world, int64_t cache, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    result.words[0] = range_cache_size(world.caches[cache])
    if result.words[0] < 0:
        world_violate(world, violation, b"I40", b"the size of cache %lld is %lld", cache, result.words[0], 0)


# The first cached entry from a key on as its wrapper describes it, not retained and not marked.
# words: its key; its bytes; its timestamp, in ticks since the world began; its expected reads and,
# in the lower half, twice the requeues, and whether it was accessed.
cdef inline void range_describe(
    CacheWorld* world, int64_t cache, int64_t first, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef MapCursor cursor = range_cache_cursor(
        world_position(world, first), world_position(world, world.n_keys - 1))
    cdef CachedState state
    if not range_cache_look(world.caches[cache], &cursor, &state):
        return
    result.status = VIEW_HIT
    result.words[0] = world_key(world, state.key)
    result.words[1] = state.length
    result.words[2] = <int64_t>(<uint64_t>state.timestamp - <uint64_t>world_ticks(FIRST_TICK + MOST_LATE))
    result.words[2] >>= TICK_BITS
    result.words[3] = state.expected_reads * (<int64_t>1 << 32) + 2 * state.requeues + state.accessed
    if not first <= result.words[0] < world.n_keys:
        world_violate(world, violation, b"I5", b"from key %lld on the first entry is of key %lld", first,
                      result.words[0], 0)
