# The operations on range caches that both subjects over a cache world have: puts, reads of three
# kinds, removal, and references that outlive the call.
#
# A call names a cache and a key by numbers that are taken modulo what the world has.

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.cache_apart cimport (
    APART_ENTRIES, APART_WAYS, MOST_OPEN, range_open_close, range_release_too_often,
)
from pulsar_ml.operations.cache_puts cimport (
    range_put, range_put_alone, range_put_foreign, world_get, world_next, world_remove,
)
from pulsar_ml.operations.cache_views cimport range_describe, range_exists, range_size
from pulsar_ml.operations.cache_world cimport (
    FIRST_TICK, MOST_KEYS, MOST_LATE, MOST_RANGE, PLACES, CacheWorld, Held, world_expected,
    world_give_back, world_hold, world_incarnation, world_key, world_position, world_release, world_tick,
    world_ticks, world_verify, world_violate,
)
from pulsar_ml.operations.policy_check cimport policy_misbook
from pulsar_ml.operations.support cimport SubjectTable, operation_argument, table_operation, table_setting
from pulsar_ml.structures.entry cimport (
    entry_at, entry_copy, entry_expect_read, entry_not_delivered, entry_payload, entry_references,
    entry_was_accessed, payload_bytes,
)
from pulsar_ml.structures.entry_wrapper cimport EntryWrapper, wrapper_at, wrapper_holds, wrapper_unchanged
from pulsar_ml.structures.eviction_policy cimport eviction_policies, eviction_run
from pulsar_ml.structures.policy_pass cimport EvictionPass, time_pass
from pulsar_ml.structures.position cimport position
from pulsar_ml.structures.position_map cimport MapCursor, map_find
from pulsar_ml.structures.range_cache cimport Removed, range_cache_cursor
from pulsar_ml.structures.stamped_lock cimport stamped_optimistic
from pulsar_ml.structures.status cimport PML_NO_MEMORY, PML_OK
from pulsar_ml.sync.atomics cimport i64_fetch_add_relaxed


# Statuses of reads and releases; put answers a Status of the structures.
cdef enum:
    RANGE_MISS = 0
    RANGE_HIT = 1
    RANGE_LAST = 2          # released, and it was the last reference
    RANGE_NO_MEMORY = 3     # as PML_NO_MEMORY


cdef enum:
    RANGE_PUT
    RANGE_PUT_LATE
    RANGE_PUT_FOREIGN
    RANGE_GET
    RANGE_HOLD
    RANGE_RELEASE
    RANGE_DISPATCH
    RANGE_EXPECT
    RANGE_DROP
    RANGE_READ
    RANGE_VISIT
    RANGE_EXISTS
    RANGE_REMOVE
    RANGE_CLEAR
    RANGE_SIZE
    RANGE_SWEEP
    RANGE_OPEN_CLOSE
    RANGE_DESCRIBE
    RANGE_RELEASE_TOO_OFTEN
    # Of one thread: many calls.
    RANGE_FILL
    # On request: the puts of a suite whose only putter is one thread.
    RANGE_PUT_ALONE
    # A user's mistake that the cache must survive, and mistakes of a cache.
    RANGE_OVER_RELEASE
    RANGE_FORGET
    RANGE_SCRIBBLE
    RANGE_MISLIST
    RANGE_MISCOUNT


# Operations ---------------------------------------------------------------------------------------

# A verified hit; words are the incarnation, the expected reads left and the references.
cdef inline uint32_t range_hit(
    CacheWorld* world, int32_t thread, int64_t cache, int64_t key, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef uint32_t entry = world_get(world, thread, cache, world_position(world, key))
    if not entry or not world_verify(world, cache, key, entry, violation):
        return 0
    result.status = RANGE_HIT
    result.words[0] = world_incarnation(world, entry)
    result.words[1] = world_expected(world, entry)
    result.words[2] = entry_references(&world.memory.entries, entry)
    return entry


cdef inline uint32_t range_stamp(const CacheWorld* world, uint32_t handle) noexcept nogil:
    return stamped_optimistic(&wrapper_at(&world.memory.wrappers, handle).lock) if handle else 0


# I55: after a hit while no write section changed the key's wrapper since the stamp, the entry that
# the caller holds is marked: only a write section takes that away.
cdef inline void range_check_mark(
    CacheWorld* world, int64_t cache, int64_t key, uint32_t entry, uint32_t handle, uint32_t stamp,
    PmlViolation* violation
) noexcept nogil:
    cdef EntryWrapper* wrapper = wrapper_at(&world.memory.wrappers, handle)
    cdef bint unmarked
    if not handle:
        return
    unmarked = (not entry_was_accessed(&world.memory.entries, entry)
            and wrapper_holds(wrapper, &world.memory.map, world.caches[cache], world_position(world, key)))
    if unmarked and wrapper_unchanged(wrapper, stamp):
        world_violate(world, violation, b"I55", b"the mark of a hit on key %lld was taken away", key, 0, 0)


# get(cache, key, place): a negative place releases at once, another one keeps the reference.
cdef inline void range_get(
    CacheWorld* world, int32_t thread, int64_t cache, int64_t key, int64_t place, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef uint32_t handle = map_find(&world.caches[cache].map, world_position(world, key))
    cdef uint32_t stamp = range_stamp(world, handle)
    cdef uint32_t entry = range_hit(world, thread, cache, key, result, violation)
    if not entry:
        return
    range_check_mark(world, cache, key, entry, handle, stamp, violation)
    if place >= 0:
        world_hold(world, thread, place, cache, key, entry, violation)
    elif world_verify(world, cache, key, entry, violation):
        world_release(world, entry, violation)


# Gives back what the thread keeps at a place; words are the incarnation and what it expects.
cdef inline void range_release(
    CacheWorld* world, int32_t thread, int64_t place, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef Held* held = &world.threads[thread].held[place % PLACES]
    if not held.entry or not world_verify(world, held.cache, held.key, held.entry, violation):
        return
    result.words[0] = world_incarnation(world, held.entry)
    result.words[1] = world_expected(world, held.entry)
    result.status = RANGE_LAST if world_give_back(world, held, violation) else RANGE_HIT


# release, of a copy that was never delivered.
cdef inline void range_drop(
    CacheWorld* world, int32_t thread, int64_t place, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef Held* held = &world.threads[thread].held[place % PLACES]
    if held.entry:
        entry_not_delivered(&world.memory.entries, held.entry)
    range_release(world, thread, place, result, violation)


# One more read of what the thread keeps at a place is expected; words are the incarnation and the
# reads.
cdef inline void range_expect(
    CacheWorld* world, int32_t thread, int64_t place, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef Held* held = &world.threads[thread].held[place % PLACES]
    if not held.entry or not world_verify(world, held.cache, held.key, held.entry, violation):
        return
    if not entry_expect_read(&world.memory.entries, held.entry):
        result.status = RANGE_NO_MEMORY
        return
    result.status = RANGE_HIT
    result.words[0] = world_incarnation(world, held.entry)
    result.words[1] = world_expected(world, held.entry)


# A hit becomes a counting copy; the cached entry is released at once and the copy at once (negative
# place) or later. The last word is what is still expected afterwards.
cdef inline void range_dispatch(
    CacheWorld* world, int32_t thread, int64_t cache, int64_t key, int64_t place, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef uint32_t entry = range_hit(world, thread, cache, key, result, violation)
    cdef uint32_t copy
    if not entry:
        return
    copy = entry_copy(&world.memory.entries, entry, True)
    if not copy:
        result.status = RANGE_NO_MEMORY
        world_release(world, entry, violation)
        return
    if place >= 0:
        world_release(world, entry, violation)
        world_hold(world, thread, place, cache, key, copy, violation)
        return
    if world_verify(world, cache, key, copy, violation):
        world_release(world, copy, violation)
    result.words[3] = world_expected(world, entry)
    world_release(world, entry, violation)


# The key of the next entry of a range, or -1 with a violation: keys ascend and lie inside the
# bounds.
cdef inline int64_t range_next_key(
    CacheWorld* world, int64_t cache, uint32_t entry, int64_t first, int64_t last, int64_t previous,
    PmlViolation* violation
) noexcept nogil:
    cdef int64_t key = world_key(world, position(entry_at(&world.memory.entries, entry).ledger_id,
                                                 entry_at(&world.memory.entries, entry).entry_id))
    if key < first or key > last:
        world_violate(world, violation, b"I5", b"a range over keys %lld to %lld answers key %lld", first,
                      last, key)
        return -1
    if key <= previous:
        world_violate(world, violation, b"I5", b"a range answers key %lld after key %lld", key, previous, 0)
        return -1
    return key if world_verify(world, cache, key, entry, violation) else -1


# A range of keys, all held until the end; words are the count and a bit for each key found.
cdef inline void range_read(
    CacheWorld* world, int64_t cache, int64_t first, int64_t last, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef MapCursor cursor = range_cache_cursor(world_position(world, first), world_position(world, last))
    cdef uint32_t[64] found
    cdef int64_t[64] keys
    cdef int64_t key = -1
    cdef int64_t count = 0
    cdef uint64_t bits = 0
    cdef uint32_t entry
    cdef int64_t i
    # Keys ascend strictly inside the bounds, so there are 64 at most.
    while True:
        entry = world_next(world, cache, &cursor)
        if not entry:
            break
        key = range_next_key(world, cache, entry, first, last, key, violation)
        if key < 0:
            return
        found[count] = entry
        keys[count] = key
        count += 1
        bits |= <uint64_t>1 << (key - first)
    for i in range(count):
        if not world_verify(world, cache, keys[i], found[i], violation):
            return
        world_release(world, found[i], violation)
    result.words[0] = count
    result.words[1] = <int64_t>bits


# Walks from a key to the end, one reference at a time, and clears the cache in the middle of it.
cdef inline void range_visit(
    CacheWorld* world, int32_t thread, int64_t cache, int64_t first, int64_t clear_after,
    PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef int64_t last = world.n_keys - 1
    cdef MapCursor cursor = range_cache_cursor(world_position(world, first), world_position(world, last))
    cdef int64_t key = -1
    cdef uint32_t entry
    while True:
        entry = world_next(world, cache, &cursor)
        if not entry:
            return
        key = range_next_key(world, cache, entry, first, last, key, violation)
        if key < 0:
            return
        result.words[0] += 1
        if result.words[0] == clear_after:
            range_remove_all(world, thread, cache, result, violation)
        if not world_verify(world, cache, key, entry, violation):
            return
        world_release(world, entry, violation)


# Counts what was removed; words 2 and 3 grow by entries and bytes.
cdef inline void range_removed(
    CacheWorld* world, int32_t thread, int64_t cache, Removed removed, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    if removed.entries < 0 or removed.bytes < 0:
        world_violate(world, violation, b"I46", b"a removal answers %lld entries, %lld bytes",
                      removed.entries, removed.bytes, 0)
    world.threads[thread].removed_entries[cache] += removed.entries
    world.threads[thread].removed_bytes[cache] += removed.bytes
    result.words[2] += removed.entries
    result.words[3] += removed.bytes


cdef inline void range_remove(
    CacheWorld* world, int32_t thread, int64_t cache, int64_t first, int64_t last, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef MapCursor cursor = range_cache_cursor(world_position(world, first), world_position(world, last))
    range_removed(world, thread, cache, world_remove(world, cache, &cursor, INT64_MAX),
                  result, violation)


# Everything, in slices, as a caller would do that wants to be interruptible.
cdef inline void range_remove_all(
    CacheWorld* world, int32_t thread, int64_t cache, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef MapCursor cursor = range_cache_cursor(position(-1, -1), position(INT64_MAX, INT64_MAX))
    cdef Removed removed
    while True:
        removed = world_remove(world, cache, &cursor, 7)
        range_removed(world, thread, cache, removed, result, violation)
        if removed.entries < 7:
            return


# Lets the policy drop what was emptied where it looks first: a time pass for which nothing is old
# enough.
cdef inline void range_sweep(
    CacheWorld* world, int32_t thread, int64_t steps, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef EvictionPass run = time_pass(world_ticks(FIRST_TICK), world_tick(world))
    eviction_run(&world.policy, &run, steps)
    world.threads[thread].missing += run.missing
    result.words[0] = run.missing
    if run.removed.entries or run.removed.bytes or run.requeued:
        world_violate(world, violation, b"I51", b"a pass for which nothing was old removed %lld entries, "
                      b"%lld bytes and requeued %lld", run.removed.entries, run.removed.bytes, run.requeued)


# fill(cache, key, entries): so many puts of keys that follow each other, up to the largest. Every
# second key is read twice, so that policies see entries that are used. words: entries put.
cdef inline void range_fill(
    CacheWorld* world, int32_t thread, int64_t cache, int64_t key, int64_t entries, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef PmlResult put
    cdef int64_t i, j
    for i in range(key, min(key + entries, world.n_keys)):
        put = PmlResult(PML_OK, [0, 0, 0, 0])
        range_put(world, thread, cache, i, i % 3 - 1, 0, &put, violation)
        if put.status == PML_NO_MEMORY:
            result.status = RANGE_NO_MEMORY
            return
        result.words[0] += put.status == PML_OK
        for j in range(i % 2 * 2):
            range_get(world, thread, cache, i, -1, &put, violation)


# Mistakes, for the tests.
cdef inline void range_mistake(
    CacheWorld* world, int32_t thread, int32_t code, int64_t cache, int64_t key, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef uint32_t entry
    if code == RANGE_MISLIST:
        policy_misbook(&world.policy)
        return
    if code == RANGE_MISCOUNT:
        i64_fetch_add_relaxed(&world.caches[cache].size, 1)
        return
    entry = range_hit(world, thread, cache, key, result, violation)
    if not entry:
        return
    if code == RANGE_OVER_RELEASE:
        world_release(world, entry, violation)
        world_release(world, entry, violation)
    elif code == RANGE_SCRIBBLE:
        payload_bytes(entry_payload(entry_at(&world.memory.entries, entry)))[20] += 1
        world_release(world, entry, violation)


cdef inline bint range_common_apply(
    CacheWorld* world, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef int64_t cache = call.arguments[0] % world.n_caches
    cdef int64_t key = call.arguments[1] % world.n_keys
    cdef int64_t third = call.arguments[2]
    cdef int64_t last = key + third if key + third < world.n_keys else world.n_keys - 1
    if call.code == RANGE_PUT:
        range_put(world, thread, cache, key, third, 0, result, violation)
    elif call.code == RANGE_PUT_LATE:
        range_put(world, thread, cache, key, 0, third, result, violation)
    elif call.code == RANGE_PUT_FOREIGN:
        range_put_foreign(world, thread, cache, key, result, violation)
    elif call.code == RANGE_GET:
        range_get(world, thread, cache, key, -1, result, violation)
    elif call.code == RANGE_HOLD:
        range_get(world, thread, cache, key, third, result, violation)
    elif call.code == RANGE_RELEASE:
        range_release(world, thread, call.arguments[0], result, violation)
    elif call.code == RANGE_DISPATCH:
        range_dispatch(world, thread, cache, key, third, result, violation)
    elif call.code == RANGE_EXPECT:
        range_expect(world, thread, call.arguments[0], result, violation)
    elif call.code == RANGE_DROP:
        range_drop(world, thread, call.arguments[0], result, violation)
    elif call.code == RANGE_PUT_ALONE:
        range_put_alone(world, thread, cache, key, third, result, violation)
    elif call.code == RANGE_READ:
        range_read(world, cache, key, last, result, violation)
    elif call.code == RANGE_VISIT:
        range_visit(world, thread, cache, key, third, result, violation)
    elif call.code == RANGE_EXISTS:
        range_exists(world, cache, key, result, violation)
    elif call.code == RANGE_REMOVE:
        range_remove(world, thread, cache, key, last, result, violation)
    elif call.code == RANGE_CLEAR:
        range_remove_all(world, thread, cache, result, violation)
    elif call.code == RANGE_SIZE:
        range_size(world, cache, result, violation)
    elif call.code == RANGE_SWEEP:
        range_sweep(world, thread, call.arguments[0], result, violation)
    elif call.code == RANGE_OPEN_CLOSE:
        range_open_close(world, call.arguments[0], result)
    elif call.code == RANGE_RELEASE_TOO_OFTEN:
        range_release_too_often(
            world, call.arguments[0], call.arguments[1], call.arguments[2], result, violation)
    elif call.code == RANGE_FILL:
        range_fill(world, thread, cache, key, third, result, violation)
    elif call.code == RANGE_DESCRIBE:
        range_describe(world, cache, key, result, violation)
    elif call.code <= RANGE_MISCOUNT:
        range_mistake(world, thread, call.code, cache, key, result, violation)
    else:
        return False
    return True


# The table ---------------------------------------------------------------------------------------

cdef inline void world_operation(
    SubjectTable* table, int32_t code, const char* name, int32_t weight, const char* third,
    int64_t low, int64_t high
) noexcept nogil:
    cdef PmlOperation* operation = table_operation(table, code, name, weight, 0)
    operation_argument(operation, b"cache", 0, 2)
    operation_argument(operation, b"key", 0, MOST_KEYS - 1)
    if third is not NULL:
        operation_argument(operation, third, low, high)


# Settings, and the operations that both subjects have; `removal` weighs the removal of ranges.
cdef inline void world_table(SubjectTable* table, int32_t removal) noexcept nogil:
    cdef PmlOperation* operation
    table_setting(table, b"caches", 1, 3)
    table_setting(table, b"keys", 4, MOST_KEYS)
    table_setting(table, b"chunk_bits", 2, 8)
    table_setting(table, b"queue_chunk_bits", 2, 6)
    table_setting(table, b"max_requeue", 0, 5)
    table_setting(table, b"extend", 0, 1)
    table_setting(table, b"length_shift", 0, 26)
    table_setting(table, b"keep", 0, 1)
    table_setting(table, b"policy", 0, eviction_policies() - 1)
    world_operation(table, RANGE_PUT, b"put", 120, b"expected_reads", -1, 3)
    world_operation(table, RANGE_PUT_LATE, b"put_late", 8, b"ticks", 1, MOST_LATE)
    world_operation(table, RANGE_PUT_FOREIGN, b"put_foreign", 4, NULL, 0, 0)
    world_operation(table, RANGE_GET, b"get", 80, NULL, 0, 0)
    world_operation(table, RANGE_HOLD, b"hold", 32, b"place", 0, PLACES - 1)
    operation = table_operation(table, RANGE_RELEASE, b"release", 24, 0)
    operation_argument(operation, b"place", 0, PLACES - 1)
    world_operation(table, RANGE_DISPATCH, b"dispatch", 40, b"place", -8, PLACES - 1)
    operation = table_operation(table, RANGE_EXPECT, b"expect", 12, 0)
    operation_argument(operation, b"place", 0, PLACES - 1)
    operation = table_operation(table, RANGE_DROP, b"drop", 8, 0)
    operation_argument(operation, b"place", 0, PLACES - 1)
    world_operation(table, RANGE_READ, b"read_range", 24, b"width", 0, MOST_RANGE - 1)
    world_operation(table, RANGE_VISIT, b"visit", 2, b"clear_after", 0, 64)
    world_operation(table, RANGE_EXISTS, b"exists", 16, NULL, 0, 0)
    world_operation(table, RANGE_REMOVE, b"remove_range", 16 * removal, b"width", 0, 3)
    operation = table_operation(table, RANGE_CLEAR, b"clear", 1, 0)
    operation_argument(operation, b"cache", 0, 2)
    operation = table_operation(table, RANGE_SIZE, b"size", 8, 0)
    operation_argument(operation, b"cache", 0, 2)
    operation = table_operation(table, RANGE_SWEEP, b"sweep", 12, 0)
    operation_argument(operation, b"steps", 1, 64)
    operation = table_operation(table, RANGE_OPEN_CLOSE, b"open_close", 4, 0)
    operation_argument(operation, b"caches", 1, MOST_OPEN)
    world_operation(table, RANGE_DESCRIBE, b"describe", 12, NULL, 0, 0)
    operation = table_operation(table, RANGE_RELEASE_TOO_OFTEN, b"release_too_often", 4, 0)
    operation_argument(operation, b"entries", 1, APART_ENTRIES)
    operation_argument(operation, b"wrong", 0, APART_ENTRIES - 1)
    operation_argument(operation, b"way", 0, APART_WAYS - 1)
    world_operation(table, RANGE_FILL, b"fill", 0, b"entries", 1, MOST_RANGE)
    world_operation(table, RANGE_PUT_ALONE, b"put_alone", 0, b"expected_reads", -1, 3)
    table.operations[RANGE_PUT_ALONE].role = 1
    world_operation(table, RANGE_OVER_RELEASE, b"over_release", 0, NULL, 0, 0)
    world_operation(table, RANGE_FORGET, b"forget", 0, NULL, 0, 0)
    world_operation(table, RANGE_SCRIBBLE, b"scribble", 0, NULL, 0, 0)
    table_operation(table, RANGE_MISLIST, b"mislist", 0, 0)
    world_operation(table, RANGE_MISCOUNT, b"miscount", 0, NULL, 0, 0)
