# Raw wrappers as a subject: threads fill, read, clear and recycle wrappers by the rules of their
# users.
#
# Wrappers that were never queued are filled, emptied and given back at once, again and again, which
# makes stale readers meet many incarnations.

from libc.stdint cimport int32_t, int64_t, uint32_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.cache_world cimport world_in_use
from pulsar_ml.operations.support cimport (
    SubjectTable, expect_equal, operation_argument, table_operation, table_setting, table_start, violate,
)
from pulsar_ml.operations.wrapper_world cimport (
    EW_CHURNED, EW_FILLS, EW_KEYS, EW_MOST_REPEATS, EW_MOST_TURNS, EW_OWNERS, EW_STALE, StaleHandle,
    WrapperThread, WrapperWorld, ew_create, ew_destroy, ew_expect_empty, ew_expect_value, ew_is_churned,
    ew_owner, ew_place, ew_position, ew_recycle, ew_size, ew_take, ew_value, ew_watch_lock,
)
from pulsar_ml.structures.entry_wrapper cimport (
    EntryWrapper, wrapper_at, wrapper_clear, wrapper_empty, wrapper_fill, wrapper_holds,
    wrapper_is_empty, wrapper_look, wrapper_mark_requeued, wrapper_read, wrapper_requeues,
    wrapper_unchanged,
)
from pulsar_ml.structures.map_pages cimport SLOT_BITS, page_at, page_start_slot
from pulsar_ml.structures.mpsc_queue cimport mpsc_offer, mpsc_peek, mpsc_poll, mpsc_size
from pulsar_ml.structures.position cimport Position
from pulsar_ml.structures.stamped_lock cimport (
    STAMPED_READERS, STAMPED_WRITER, stamped_lock_write, stamped_unlock_write,
)
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport (
    i64_load_relaxed, u32_cas_strong_acq_rel, u32_load_acquire, u32_load_relaxed, u32_store_release,
)


# Statuses: what the operation found.
cdef enum:
    EW_DONE = 0
    EW_TAKEN = 1            # the key is filled already
    EW_NOTHING = 2          # nothing there to act on
    EW_OUT_OF_MEMORY = 3


cdef enum:
    EW_FILL
    EW_READ
    EW_READ_STALE
    EW_CLEAR
    EW_CHURN
    EW_DRAIN
    # Mistakes.
    EW_READ_UNCHECKED
    EW_RESET_LOCK
    EW_RECYCLE_TWICE
    EW_LOSE


# Operations ---------------------------------------------------------------------------------------

cdef inline void ew_remember(WrapperThread* me, uint32_t handle, int64_t key) noexcept nogil:
    me.stale[me.n_stale % EW_STALE].handle = handle
    me.stale[me.n_stale % EW_STALE].key = <int32_t>key
    me.n_stale += 1


# The next value of the thread.
cdef inline uint32_t ew_next_value(WrapperWorld* world, int32_t thread, int64_t key) noexcept nogil:
    world.threads[thread].incarnations += 1
    return ew_value(key, world.threads[thread].incarnations * world.n_threads + thread)


# fill(key): a new wrapper under the key, linked and queued in one write section; the word is its
# value.
cdef inline void ew_fill(
    WrapperWorld* world, int32_t thread, int64_t key, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef WrapperThread* me = &world.threads[thread]
    cdef uint32_t handle = ew_take(world, violation)
    cdef uint32_t seen = 0
    cdef uint32_t value
    cdef EntryWrapper* wrapper
    if not handle:
        result.status = EW_OUT_OF_MEMORY
        return
    wrapper = wrapper_at(&world.pool, handle)
    value = ew_next_value(world, thread, key)
    stamped_lock_write(&wrapper.lock)
    if not u32_cas_strong_acq_rel(&world.slots[key], &seen, handle):
        result.status = EW_TAKEN
    else:
        page_start_slot(page_at(&world.map, ew_place(key) >> SLOT_BITS), key)
        wrapper_fill(wrapper, ew_place(key), value, ew_size(value), me.incarnations)
        if wrapper_requeues(wrapper, &world.map):
            violate(violation, b"I30", b"a new incarnation was requeued %lld times",
                    wrapper_requeues(wrapper, &world.map), 0, 0)
        if mpsc_offer(&world.queue, handle) != PML_OK:
            seen = handle
            u32_cas_strong_acq_rel(&world.slots[key], &seen, 0)
            me.incarnations -= 1
            result.status = EW_OUT_OF_MEMORY
    if result.status == EW_DONE:
        me.filled += 1
        me.filled_bytes += ew_size(value)
        ew_remember(me, handle, key)
        result.words[0] = value
    else:
        wrapper_empty(wrapper)
    stamped_unlock_write(&wrapper.lock)
    if result.status != EW_DONE:
        ew_recycle(world, handle, violation)
    ew_watch_lock(world, thread, handle, violation)


# The word is the value read, 0 when the wrapper holds something else by now. Every third key is
# read in the way of a hit, which validates last.
cdef inline void ew_look(
    WrapperWorld* world, int32_t thread, uint32_t handle, int64_t key, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef EntryWrapper* wrapper = wrapper_at(&world.pool, handle)
    cdef uint32_t stamp
    cdef uint32_t value
    # Turns when a write section came between.
    while key % 3 == 1:
        value = wrapper_read(wrapper, &world.map, ew_owner(world, key), ew_position(key), &stamp)
        if not value or wrapper_unchanged(wrapper, stamp):
            break
    else:
        value = wrapper_look(wrapper, &world.map, ew_owner(world, key), ew_position(key))
    if value:
        ew_expect_value(key, value, violation)
    result.words[0] = value
    ew_watch_lock(world, thread, handle, violation)


cdef inline void ew_read(
    WrapperWorld* world, int32_t thread, int64_t key, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    # Pairs with the exchange that filled the slot, as map_find does.
    cdef uint32_t handle = u32_load_acquire(&world.slots[key])
    if not handle:
        result.status = EW_NOTHING
        return
    ew_remember(&world.threads[thread], handle, key)
    ew_look(world, thread, handle, key, result, violation)


# read_stale(place, key, repeats): a remembered wrapper, or the one that was churned last, whatever
# it serves by now, under the key that it had or under another one.
cdef inline void ew_read_stale(
    WrapperWorld* world, int32_t thread, int64_t place, int64_t key, int64_t repeats, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef StaleHandle stale = world.threads[thread].stale[place % EW_STALE]
    cdef int64_t i
    if place >= EW_STALE:
        stale.handle = u32_load_acquire(&world.churned)
        stale.key = 0
    if not stale.handle:
        result.status = EW_NOTHING
        return
    if key < 0:
        key = stale.key
    for i in range(repeats):
        ew_look(world, thread, stale.handle, key, result, violation)


# clear(key): takes the wrapper out and empties it; words are its size and its requeues.
cdef inline void ew_clear(
    WrapperWorld* world, int32_t thread, int64_t key, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef WrapperThread* me = &world.threads[thread]
    cdef uint32_t handle = u32_load_acquire(&world.slots[key])
    cdef uint32_t seen = handle
    cdef EntryWrapper* wrapper
    cdef uint32_t value
    result.status = EW_NOTHING
    if not handle:
        return
    wrapper = wrapper_at(&world.pool, handle)
    stamped_lock_write(&wrapper.lock)
    value = u32_load_relaxed(&wrapper.value)
    # The handle may be stale: a churned incarnation under the same key is not this operation's.
    if not ew_is_churned(value) and wrapper_holds(
            wrapper, &world.map, ew_owner(world, key), ew_position(key)):
        ew_expect_value(key, value, violation)
        result.status = EW_DONE
        result.words[1] = wrapper_requeues(wrapper, &world.map)
        if not u32_cas_strong_acq_rel(&world.slots[key], &seen, 0):
            violate(violation, b"I27", b"the wrapper of key %lld is not linked under it", key, 0, 0)
        if wrapper_clear(wrapper, ew_place(key), value + 16) != -1:
            violate(violation, b"I32", b"a wrapper of key %lld was cleared for another value", key, 0, 0)
        result.words[0] = wrapper_clear(wrapper, ew_place(key), value)
        expect_equal(violation, b"I44", b"the size of a cleared wrapper", result.words[0], ew_size(value))
        if wrapper_clear(wrapper, ew_place(key), value) != -1:
            violate(violation, b"I32", b"a wrapper of key %lld was cleared twice", key, 0, 0)
        ew_expect_empty(wrapper, violation)
        me.cleared += 1
        me.cleared_bytes += result.words[0]
    stamped_unlock_write(&wrapper.lock)
    ew_watch_lock(world, thread, handle, violation)


# churn(key, turns): incarnations that nobody else comes to know, but through stale handles. Each is
# filled several times in one write section, with keys of one owner, and only the last one counts:
# an optimistic read that is not validated has much to mix. Their values tell the turn, which is
# counted by itself: how often a wrapper is filled depends on the build.
cdef inline void ew_churn(
    WrapperWorld* world, int32_t thread, int64_t key, int64_t turns, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef WrapperThread* me = &world.threads[thread]
    cdef uint32_t handle
    cdef uint32_t value = 0
    cdef EntryWrapper* wrapper
    cdef int64_t turn, again
    for turn in range(turns):
        handle = ew_take(world, violation)
        if not handle:
            result.status = EW_OUT_OF_MEMORY
            return
        me.turns += 1
        wrapper = wrapper_at(&world.pool, handle)
        # Pairs with the acquire of a stale reader.
        u32_store_release(&world.churned, handle)
        stamped_lock_write(&wrapper.lock)
        for again in range(EW_FILLS):
            key = (key + EW_OWNERS) % world.n_keys
            value = ew_value(key, me.turns * world.n_threads + thread) + EW_CHURNED
            wrapper_fill(wrapper, ew_place(key), value, ew_size(value), turn)
        stamped_unlock_write(&wrapper.lock)
        stamped_lock_write(&wrapper.lock)
        # I34: what a user of another incarnation wrote late would be seen here.
        if wrapper_clear(wrapper, ew_place(key), value) != ew_size(value):
            violate(violation, b"I34", b"an incarnation of key %lld that nobody knew was changed", key, 0, 0)
        stamped_unlock_write(&wrapper.lock)
        ew_recycle(world, handle, violation)
        ew_watch_lock(world, thread, handle, violation)


# drain(steps): the consumer recycles empty wrappers and requeues the others; words are how many of
# each. Ends at a wrapper that there is no memory to requeue; it stays where it is.
cdef inline void ew_drain(
    WrapperWorld* world, int32_t thread, int64_t steps, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef uint32_t handle
    cdef EntryWrapper* wrapper
    cdef bint empty
    cdef int64_t step
    for step in range(steps):
        handle = mpsc_peek(&world.queue)
        if not handle:
            return
        wrapper = wrapper_at(&world.pool, handle)
        stamped_lock_write(&wrapper.lock)
        empty = wrapper_is_empty(wrapper)
        if empty:
            ew_expect_empty(wrapper, violation)
        # Tried twice: the tests fail one allocation, after which the answer shall be the same.
        elif mpsc_offer(&world.queue, handle) != PML_OK and mpsc_offer(&world.queue, handle) != PML_OK:
            result.status = EW_OUT_OF_MEMORY
        else:
            wrapper_mark_requeued(wrapper, &world.map, step, 1)
            if i64_load_relaxed(&wrapper.timestamp) != step or not wrapper_requeues(wrapper, &world.map):
                violate(violation, b"I59", b"a requeue mark left timestamp %lld, count %lld",
                        i64_load_relaxed(&wrapper.timestamp), wrapper_requeues(wrapper, &world.map), 0)
        stamped_unlock_write(&wrapper.lock)
        if result.status == EW_OUT_OF_MEMORY:
            return
        mpsc_poll(&world.queue)
        if empty:
            world.threads[thread].dropped += 1
            ew_recycle(world, handle, violation)
            result.words[0] += 1
        else:
            result.words[1] += 1
        ew_watch_lock(world, thread, handle, violation)


# Mistakes, for the tests.
cdef inline void ew_mistake(
    WrapperWorld* world, int32_t thread, int32_t code, int64_t key, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef uint32_t handle = u32_load_relaxed(&world.slots[key])
    cdef EntryWrapper* wrapper
    if code == EW_LOSE and mpsc_peek(&world.queue):
        mpsc_poll(&world.queue)
    if not handle:
        return
    wrapper = wrapper_at(&world.pool, handle)
    if code == EW_READ_UNCHECKED:
        ew_expect_value((key + 1) % world.n_keys, u32_load_relaxed(&wrapper.value), violation)
    elif code == EW_RESET_LOCK:
        ew_watch_lock(world, thread, handle, violation)
        (<uint32_t*>&wrapper.lock)[0] = 0
        ew_watch_lock(world, thread, handle, violation)
    elif code == EW_RECYCLE_TWICE:
        ew_recycle(world, handle, violation)
        ew_recycle(world, handle, violation)


cdef inline void entry_wrapper_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef WrapperWorld* world = <WrapperWorld*>instance
    cdef int64_t key = call.arguments[0] % world.n_keys
    if call.code == EW_FILL:
        ew_fill(world, thread, key, result, violation)
    elif call.code == EW_READ:
        ew_read(world, thread, key, result, violation)
    elif call.code == EW_READ_STALE:
        ew_read_stale(world, thread, call.arguments[0], call.arguments[1] % world.n_keys,
                      call.arguments[2], result, violation)
    elif call.code == EW_CLEAR:
        ew_clear(world, thread, key, result, violation)
    elif call.code == EW_CHURN:
        ew_churn(world, thread, key, call.arguments[1], result, violation)
    elif call.code == EW_DRAIN:
        ew_drain(world, thread, call.arguments[0], result, violation)
    else:
        ew_mistake(world, thread, call.code, key, result, violation)


# Quiescence ---------------------------------------------------------------------------------------

# Looks at every linked wrapper, clears all and drains the queue: nothing is left in use.
cdef inline void entry_wrapper_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef WrapperWorld* world = <WrapperWorld*>instance
    cdef PmlResult result = PmlResult(0, [0, 0, 0, 0])
    cdef int64_t filled = 0, filled_bytes = 0, cleared = 0, cleared_bytes = 0, dropped = 0
    cdef int64_t key, queued
    cdef uint32_t handle
    cdef EntryWrapper* wrapper
    cdef int32_t thread
    for key in range(world.n_keys):
        handle = u32_load_acquire(&world.slots[key])
        if not handle:
            continue
        wrapper = wrapper_at(&world.pool, handle)
        if u32_load_relaxed(&wrapper.lock) & (STAMPED_WRITER | STAMPED_READERS):
            violate(violation, b"I102", b"the wrapper of key %lld is still locked", key, 0, 0)
            return
        if (not wrapper_holds(wrapper, &world.map, ew_owner(world, key), ew_position(key))
                or not u32_load_relaxed(&wrapper.value)):
            violate(violation, b"I27", b"the wrapper under key %lld does not hold it", key, 0, 0)
            return
        ew_clear(world, 0, key, &result, violation)
    for thread in range(world.n_threads):
        filled += world.threads[thread].filled
        filled_bytes += world.threads[thread].filled_bytes
        cleared += world.threads[thread].cleared
        cleared_bytes += world.threads[thread].cleared_bytes
        dropped += world.threads[thread].dropped
    expect_equal(violation, b"I45", b"wrappers cleared", cleared, filled)
    expect_equal(violation, b"I44", b"bytes cleared", cleared_bytes, filled_bytes)
    queued = <int64_t>mpsc_size(&world.queue)
    expect_equal(violation, b"I23", b"wrappers queued", queued, filled - dropped)
    if violation.found:
        return
    ew_drain(world, 0, queued, &result, violation)
    expect_equal(violation, b"I23", b"wrappers left in the queue", <int64_t>mpsc_size(&world.queue), 0)
    expect_equal(violation, b"I23", b"wrappers in use", world_in_use(&world.pool), 0)


cdef inline void entry_wrapper_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    cdef int32_t code
    table_start(table, b"entry_wrapper", b"Wrappers that are filled, read, cleared and reused.",
                ew_create, entry_wrapper_apply, entry_wrapper_check, ew_destroy)
    table_setting(table, b"keys", 1, EW_KEYS)
    table_setting(table, b"chunk_bits", 0, 6)
    table_setting(table, b"queue_chunk_bits", 2, 6)
    operation = table_operation(table, EW_FILL, b"fill", 10, 0)
    operation_argument(operation, b"key", 0, EW_KEYS - 1)
    operation = table_operation(table, EW_READ, b"read", 10, 0)
    operation_argument(operation, b"key", 0, EW_KEYS - 1)
    operation = table_operation(table, EW_READ_STALE, b"read_stale", 10, 0)
    operation_argument(operation, b"place", 0, 2 * EW_STALE - 1)
    operation_argument(operation, b"key", -EW_KEYS, EW_KEYS - 1)
    operation_argument(operation, b"repeats", 1, EW_MOST_REPEATS)
    operation = table_operation(table, EW_CLEAR, b"clear", 8, 0)
    operation_argument(operation, b"key", 0, EW_KEYS - 1)
    operation = table_operation(table, EW_CHURN, b"churn", 8, 0)
    operation_argument(operation, b"key", 0, EW_KEYS - 1)
    operation_argument(operation, b"turns", 1, EW_MOST_TURNS)
    # One consumer: the rule under which wrappers are recycled.
    operation = table_operation(table, EW_DRAIN, b"drain", 6, 1)
    operation_argument(operation, b"steps", 1, 16)
    for code in range(EW_READ_UNCHECKED, EW_LOSE + 1):
        operation = table_operation(table, code, ew_mistake_name(code), 0, 0)
        operation_argument(operation, b"key", 0, EW_KEYS - 1)


cdef inline const char* ew_mistake_name(int32_t code) noexcept nogil:
    if code == EW_READ_UNCHECKED:
        return b"read_unchecked"
    if code == EW_RESET_LOCK:
        return b"reset_lock"
    if code == EW_RECYCLE_TWICE:
        return b"recycle_twice"
    return b"lose"
