# Range caches that belong to one call: those of ledgers that open and close, and one whose holder
# makes a mistake, with a memory and a policy of its own, so that nobody else meets what is broken.

from libc.stdint cimport INT64_MAX, int64_t, uint32_t

from pulsar_ml.harness.subjects.subject cimport PmlResult, PmlViolation
from pulsar_ml.operations.cache_world cimport CacheWorld, world_equal, world_settings
from pulsar_ml.structures.entry cimport Payload, entry_new, entry_release, payload_new, payload_release
from pulsar_ml.structures.eviction_policy cimport (
    EvictionPolicy, eviction_destroy, eviction_init, eviction_run,
)
from pulsar_ml.structures.object_pool cimport pool_in_use
from pulsar_ml.structures.policy_pass cimport EvictionPass, time_pass
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.range_cache cimport (
    CacheMemory, RangeCache, Removed, cache_memory_destroy, cache_memory_init, range_cache_at,
    range_cache_cursor, range_cache_delete, range_cache_exists, range_cache_get, range_cache_new,
    range_cache_next, range_cache_put, range_cache_remove, range_cache_size,
)
from pulsar_ml.structures.position_map cimport MapCursor
from pulsar_ml.structures.refcount cimport RELEASED, RELEASED_LAST, RELEASED_TOO_OFTEN
from pulsar_ml.structures.status cimport PML_DEALLOCATED, PML_EXISTS, PML_NO_MEMORY, PML_OK, Status
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    MOST_OPEN = 20          # caches of one call; a chunk of their pool has 16
    APART_ENTRIES = 8       # at most, in a cache of its own
    APART_LEDGER = 7
    APART_LIMIT = 64        # objects of a kind
    APART_LATER = 1 << 20   # when everything is old


# The ways of release_too_often, which are added up.
cdef enum:
    APART_REFILLED = 1      # another entry takes the memory of the one that is gone
    APART_BY_PASS = 2       # a pass removes what is old before the rest is cleared
    APART_BY_ITSELF = 4     # it is removed before the others
    APART_WAYS = 8


# The lives of so many more caches, as of ledgers that open and close: passes may scan them
# meanwhile. More than a chunk of the pool has room for may be open at once.
cdef inline void range_open_close(CacheWorld* world, int64_t caches, PmlResult* result) noexcept nogil:
    cdef uint32_t[MOST_OPEN] numbers
    cdef RangeCache* cache
    cdef int64_t i, count = 0
    while count < caches:
        cache = range_cache_new(&world.memory, &world.policy.base.intake)
        if cache is NULL:
            result.status = PML_NO_MEMORY
            break
        numbers[count] = cache.number
        count += 1
    for i in range(count):
        range_cache_delete(range_cache_at(&world.memory, numbers[i]))


# A cache apart -------------------------------------------------------------------------------------

cdef struct ApartCache:
    CacheMemory memory
    EvictionPolicy policy
    RangeCache* cache
    int64_t entries         # put
    int64_t removed         # of them, before the rest
    int64_t bytes


cdef inline void apart_destroy(ApartCache* apart) noexcept nogil:
    if apart.cache is not NULL:
        range_cache_delete(apart.cache)
    if apart.policy.base.memory is not NULL:
        eviction_destroy(&apart.policy)
    cache_memory_destroy(&apart.memory)
    release(apart)


# An empty cache with the policy of the world, or NULL without memory.
cdef inline ApartCache* apart_new(const CacheWorld* world) noexcept nogil:
    cdef ApartCache* apart = <ApartCache*>allocate_zeroed(1, sizeof(ApartCache))
    if apart is NULL:
        return NULL
    if cache_memory_init(&apart.memory, 2, APART_LIMIT) != PML_OK:
        release(apart)
        return NULL
    if eviction_init(&apart.policy, world.policy_number, &apart.memory, 2, world_settings(0, True)) != PML_OK:
        apart.policy.base.memory = NULL
        apart_destroy(apart)
        return NULL
    apart.cache = range_cache_new(&apart.memory, &apart.policy.base.intake)
    if apart.cache is NULL:
        apart_destroy(apart)
        return NULL
    return apart


cdef inline Position apart_at(int64_t number) noexcept nogil:
    return position(APART_LEDGER, number)


# A new entry of a position, not cached yet; 0 without memory.
cdef inline uint32_t apart_entry(ApartCache* apart, int64_t number) noexcept nogil:
    cdef Payload* payload = payload_new(&apart.memory.entries.payloads, 8)
    cdef uint32_t entry
    if payload is NULL:
        return 0
    entry = entry_new(&apart.memory.entries, apart_at(number), payload, 0, False)
    if not entry:
        payload_release(&apart.memory.entries.payloads, payload)
    return entry


# Puts a new entry, for which another number of bytes is counted than for the others.
cdef inline Status apart_put(ApartCache* apart, int64_t number) noexcept nogil:
    cdef uint32_t entry = apart_entry(apart, number)
    cdef Status status = PML_NO_MEMORY
    if entry:
        status = range_cache_put(apart.cache, apart_at(number), entry, <uint32_t>(1 << number), number)
        if status != PML_OK:
            entry_release(&apart.memory.entries, entry, 1)
    if status == PML_OK:
        apart.entries += 1
        apart.bytes += 1 << number
    return status


# Gives back what was read, and then the cache's reference and one that nobody has. True if there
# was an entry to read.
cdef inline bint apart_mistake(
    CacheWorld* world, ApartCache* apart, int64_t number, PmlViolation* violation
) noexcept nogil:
    cdef uint32_t entry = range_cache_get(apart.cache, apart_at(number))
    if not world_equal(world, violation, b"I3", b"whether a cached entry is found", entry != 0, 1):
        return False
    return (world_equal(world, violation, b"I13", b"the answer to the release of one of two references",
                        entry_release(&apart.memory.entries, entry, 1), RELEASED)
            and world_equal(world, violation, b"I13", b"the answer to the release of the last reference",
                            entry_release(&apart.memory.entries, entry, 1), RELEASED_LAST)
            and world_equal(world, violation, b"I13", b"the answer to the release of a reference too many",
                            entry_release(&apart.memory.entries, entry, 1), RELEASED_TOO_OFTEN)
            and world_equal(world, violation, b"I13", b"the status of a put of an entry without a reference",
                            range_cache_put(apart.cache, apart_at(number), entry, 1, 0), PML_DEALLOCATED))


# What was released too often is not found, and its position is taken until it is `removed`;
# everything else is there.
cdef inline void apart_check(
    CacheWorld* world, ApartCache* apart, int64_t wrong, bint removed, PmlViolation* violation
) noexcept nogil:
    cdef MapCursor cursor = range_cache_cursor(apart_at(0), apart_at(INT64_MAX))
    cdef int64_t number, found = 0
    cdef uint32_t entry
    for number in range(apart.entries):
        world_equal(world, violation, b"I8", b"whether a position is taken",
                    range_cache_exists(apart.cache, apart_at(number)), number != wrong or not removed)
        entry = range_cache_get(apart.cache, apart_at(number))
        world_equal(world, violation, b"I1", b"whether an entry is found, unless it was released too often",
                    entry != 0, number != wrong)
        if entry:
            entry_release(&apart.memory.entries, entry, 1)
    while found <= apart.entries:
        entry = range_cache_next(apart.cache, &cursor)
        if not entry:
            break
        entry_release(&apart.memory.entries, entry, 1)
        found += 1
    world_equal(world, violation, b"I5", b"entries of a range with one that was released too often", found,
                apart.entries - 1)


# Takes out what was released too often, by itself: it counts as the others do, and nobody else
# loses a reference.
cdef inline void apart_remove(
    CacheWorld* world, ApartCache* apart, int64_t wrong, PmlViolation* violation
) noexcept nogil:
    cdef MapCursor cursor = range_cache_cursor(apart_at(wrong), apart_at(wrong))
    cdef Removed removed = range_cache_remove(apart.cache, &cursor, INT64_MAX)
    world_equal(world, violation, b"I46", b"entries that the removal of one took out", removed.entries, 1)
    world_equal(world, violation, b"I46", b"bytes of an entry that was removed", removed.bytes, 1 << wrong)
    apart_check(world, apart, wrong, True, violation)
    apart.bytes -= removed.bytes
    apart.removed = 1


# Removes everything: each entry counts once, and nothing is left in a pool.
cdef inline void apart_empty(
    CacheWorld* world, ApartCache* apart, bint by_pass, PmlViolation* violation
) noexcept nogil:
    cdef EvictionPass run = time_pass(APART_LATER, APART_LATER)
    cdef MapCursor cursor = range_cache_cursor(position(-1, -1), position(INT64_MAX, INT64_MAX))
    cdef Removed removed
    world_equal(world, violation, b"I41", b"the size of a cache", range_cache_size(apart.cache), apart.bytes)
    if by_pass:
        eviction_run(&apart.policy, &run, APART_LIMIT)
    removed = range_cache_remove(apart.cache, &cursor, INT64_MAX)
    world_equal(world, violation, b"I46", b"entries that were removed from a cache",
                run.removed.entries + removed.entries, apart.entries - apart.removed)
    world_equal(world, violation, b"I46", b"bytes that were removed from a cache",
                run.removed.bytes + removed.bytes, apart.bytes)
    world_equal(world, violation, b"I43", b"the size of a cleared cache", range_cache_size(apart.cache), 0)
    world_equal(world, violation, b"I17", b"entries in use", pool_in_use(&apart.memory.entries.entries), 0)
    world_equal(world, violation, b"I39", b"pages in use", pool_in_use(&apart.memory.map.pages), 0)


# release_too_often(entries, wrong, way): a cache of its own, of which a holder releases one of so
# many entries too often. That entry is missed from then on; the cache takes it out with all its
# bytes, and nobody else loses a reference.
cdef inline void range_release_too_often(
    CacheWorld* world, int64_t entries, int64_t wrong, int64_t way, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef ApartCache* apart = apart_new(world)
    cdef uint32_t duplicate
    cdef int64_t number
    if apart is NULL:
        result.status = PML_NO_MEMORY
        return
    for number in range(entries):
        result.status = apart_put(apart, number)
        if result.status != PML_OK:
            break
    wrong %= entries
    if result.status == PML_OK and apart_mistake(world, apart, wrong, violation):
        if way & APART_REFILLED:
            result.status = apart_put(apart, entries)
            duplicate = apart_entry(apart, wrong)
            if duplicate:
                world_equal(world, violation, b"I31", b"the status of a put where one was released too often",
                            range_cache_put(apart.cache, apart_at(wrong), duplicate, 1, 0), PML_EXISTS)
                entry_release(&apart.memory.entries, duplicate, 1)
            else:
                result.status = PML_NO_MEMORY
        apart_check(world, apart, wrong, False, violation)
        if way & APART_BY_ITSELF and not violation.found:
            apart_remove(world, apart, wrong, violation)
    if not violation.found:
        apart_empty(world, apart, way & APART_BY_PASS != 0, violation)
    # What is broken may never become empty: then memory is lost, and the violation says so.
    if not violation.found:
        apart_destroy(apart)
