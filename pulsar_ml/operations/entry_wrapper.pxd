# Raw wrappers for the harness: a few slots that play the map, a queue that plays the removal queue, and
# threads that fill, read, clear and recycle wrappers by the rules of their users.
#
# A value tells key, owner and incarnation, so a read that mixes two write sections shows. Wrappers that
# were never queued are filled, emptied and given back at once, again and again, which makes stale
# readers meet many incarnations.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.support cimport (
    SubjectTable, expect_equal, operation_argument, table_operation, table_setting, table_start, violate,
)
from pulsar_ml.structures.entry_wrapper cimport (
    NO_LEDGER, EntryWrapper, wrapper_at, wrapper_clear, wrapper_empty, wrapper_fill, wrapper_holds,
    wrapper_key, wrapper_mark_requeued, wrapper_pool_init, wrapper_read, wrapper_recycle,
)
from pulsar_ml.structures.mpsc_queue cimport (
    MpscQueue, mpsc_destroy, mpsc_init, mpsc_offer, mpsc_peek, mpsc_poll, mpsc_size,
)
from pulsar_ml.structures.object_pool cimport Pool, pool_destroy, pool_link, pool_take
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.stamped_lock cimport (
    STAMPED_READERS, STAMPED_WRITER, stamped_lock_write, stamped_unlock_write,
)
from pulsar_ml.structures.status cimport PML_NO_MEMORY, PML_OK
from pulsar_ml.sync.atomics cimport (
    i64_load_relaxed, pml_u32, u32_cas_strong_acq_rel, u32_fetch_add_relaxed, u32_fetch_sub_relaxed,
    u32_load_acquire, u32_load_relaxed, u32_store_release, u64_load_relaxed, u8_load_relaxed,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    EW_KEYS = 16
    EW_OWNERS = 3
    EW_LEDGER = 7
    EW_STALE = 8            # handles that a thread remembers
    EW_WATCHED = 1024       # handles whose users are counted
    EW_LIMIT = 1 << 20
    EW_FILLS = 32           # fills of one write section of churn


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


cdef struct StaleHandle:
    uint32_t handle
    int32_t key


cdef struct WrapperThread:
    StaleHandle[8] stale
    int64_t n_stale
    int64_t incarnations
    int64_t filled          # queued incarnations, and their bytes
    int64_t filled_bytes
    int64_t cleared
    int64_t cleared_bytes
    int64_t dropped
    uint64_t[1024] sections # the latest write section seen of each watched handle
    char[128] apart


cdef struct WrapperWorld:
    Pool pool
    MpscQueue queue
    WrapperThread* threads
    int32_t n_threads
    int64_t n_keys
    pml_u32 churned         # the wrapper of the latest churn, for stale readers
    pml_u32[16] slots       # by key
    pml_u32[1024] users     # takers less givers of a watched handle


cdef inline Position ew_position(int64_t key) noexcept nogil:
    return position(EW_LEDGER, key)


cdef inline uint32_t ew_owner(int64_t key) noexcept nogil:
    return <uint32_t>(1 + key % EW_OWNERS)


# A value that tells its key and thereby its owner; never 0.
cdef inline uint32_t ew_value(int64_t key, int64_t incarnation) noexcept nogil:
    return <uint32_t>(((incarnation & 0x7FFFFFF) << 4 | key) + 1)


cdef inline int64_t ew_value_key(uint32_t value) noexcept nogil:
    return (value - 1) & 15


cdef inline uint32_t ew_size(uint32_t value) noexcept nogil:
    return value % 1009 + 1


# Oracles -------------------------------------------------------------------------------------------

# SL-1, I29: what one thread sees of the lock word's section count never goes back.
cdef inline void ew_watch_lock(
    WrapperWorld* world, int32_t thread, uint32_t handle, PmlViolation* violation
) noexcept nogil:
    cdef uint64_t section
    if handle >= EW_WATCHED:
        return
    section = u64_load_relaxed(&wrapper_at(&world.pool, handle).lock) // (STAMPED_WRITER << 1)
    if section < world.threads[thread].sections[handle]:
        violate(violation, b"I29", b"wrapper %lld went back from write section %lld to %lld", handle,
                <int64_t>world.threads[thread].sections[handle], <int64_t>section)
    world.threads[thread].sections[handle] = section


# A wrapper from the pool, used by nobody else; 0 without memory.
cdef inline uint32_t ew_take(WrapperWorld* world, PmlViolation* violation) noexcept nogil:
    cdef uint32_t handle = pool_take(&world.pool)
    if handle and handle < EW_WATCHED and u32_fetch_add_relaxed(&world.users[handle], 1) != 0:
        violate(violation, b"I24", b"wrapper %lld was taken while in use", handle, 0, 0)
    return handle


cdef inline void ew_recycle(WrapperWorld* world, uint32_t handle, PmlViolation* violation) noexcept nogil:
    if handle < EW_WATCHED and u32_fetch_sub_relaxed(&world.users[handle], 1) != 1:
        violate(violation, b"I24", b"wrapper %lld was recycled while in its pool", handle, 0, 0)
        return
    wrapper_recycle(&world.pool, handle)


# I28, inside the write section.
cdef inline void ew_expect_empty(const EntryWrapper* wrapper, PmlViolation* violation) noexcept nogil:
    if (wrapper_key(wrapper).ledger_id != NO_LEDGER or wrapper_key(wrapper).entry_id != NO_LEDGER
            or u32_load_relaxed(&wrapper.value) or u32_load_relaxed(&wrapper.owner) or wrapper.size):
        violate(violation, b"I28", b"a wrapper without a key has entry id %lld, value %lld, size %lld",
                wrapper_key(wrapper).entry_id, u32_load_relaxed(&wrapper.value), wrapper.size)


# I9, I11: a value that was read under a key is one of that key.
cdef inline void ew_expect_value(int64_t key, uint32_t value, PmlViolation* violation) noexcept nogil:
    if ew_value_key(value) != key:
        violate(violation, b"I9", b"a read under key %lld answers value %lld of key %lld", key, value,
                ew_value_key(value))


# Operations ----------------------------------------------------------------------------------------

cdef inline void ew_remember(WrapperThread* me, uint32_t handle, int64_t key) noexcept nogil:
    me.stale[me.n_stale % EW_STALE].handle = handle
    me.stale[me.n_stale % EW_STALE].key = <int32_t>key
    me.n_stale += 1


# The next value of the thread.
cdef inline uint32_t ew_next_value(WrapperWorld* world, int32_t thread, int64_t key) noexcept nogil:
    world.threads[thread].incarnations += 1
    return ew_value(key, world.threads[thread].incarnations * world.n_threads + thread)


# fill(key): a new wrapper under the key, linked and queued in one write section; the word is its value.
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
    wrapper_fill(wrapper, ew_position(key), value, ew_owner(key), ew_size(value), me.incarnations)
    if wrapper.requeue_count:
        violate(violation, b"I30", b"a new incarnation was requeued %lld times", wrapper.requeue_count, 0, 0)
    if not u32_cas_strong_acq_rel(&world.slots[key], &seen, handle):
        result.status = EW_TAKEN
    elif mpsc_offer(&world.queue, handle) != PML_OK:
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


# The word is the value read, 0 when the wrapper holds something else by now.
cdef inline void ew_look(
    WrapperWorld* world, int32_t thread, uint32_t handle, int64_t key, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef uint64_t stamp
    cdef uint32_t value = wrapper_read(wrapper_at(&world.pool, handle), ew_position(key), ew_owner(key), &stamp)
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


# read_stale(place, key, repeats): a remembered wrapper, or the one that was churned last, whatever it
# serves by now, under the key that it had or under another one.
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


# clear(key): takes the wrapper out and empties it; words are its size, how often
# it was requeued and whether it was accessed since.
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
    if wrapper_holds(wrapper, ew_position(key), ew_owner(key)):
        value = u32_load_relaxed(&wrapper.value)
        ew_expect_value(key, value, violation)
        result.status = EW_DONE
        result.words[1] = wrapper.requeue_count
        result.words[2] = u8_load_relaxed(&wrapper.accessed)
        if not u32_cas_strong_acq_rel(&world.slots[key], &seen, 0):
            violate(violation, b"I27", b"the wrapper of key %lld is not linked under it", key, 0, 0)
        if wrapper_clear(wrapper, ew_position(key), value + 16, ew_owner(key)) != -1:
            violate(violation, b"I32", b"a wrapper of key %lld was cleared for another value", key, 0, 0)
        result.words[0] = wrapper_clear(wrapper, ew_position(key), value, ew_owner(key))
        expect_equal(violation, b"I44", b"the size of a cleared wrapper", result.words[0], ew_size(value))
        if wrapper_clear(wrapper, ew_position(key), value, ew_owner(key)) != -1:
            violate(violation, b"I32", b"a wrapper of key %lld was cleared twice", key, 0, 0)
        ew_expect_empty(wrapper, violation)
        me.cleared += 1
        me.cleared_bytes += result.words[0]
    stamped_unlock_write(&wrapper.lock)
    ew_watch_lock(world, thread, handle, violation)


# churn(key, turns): incarnations that nobody else comes to know, but through stale handles. Each is
# filled several times in one write section, with keys of one owner, and only the last one counts: an
# optimistic read that is not validated has much to mix.
cdef inline void ew_churn(
    WrapperWorld* world, int32_t thread, int64_t key, int64_t turns, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef uint32_t handle
    cdef uint32_t value = 0
    cdef EntryWrapper* wrapper
    cdef int64_t turn, again
    for turn in range(turns):
        handle = ew_take(world, violation)
        if not handle:
            result.status = EW_OUT_OF_MEMORY
            return
        wrapper = wrapper_at(&world.pool, handle)
        # Pairs with the acquire of a stale reader.
        u32_store_release(&world.churned, handle)
        stamped_lock_write(&wrapper.lock)
        for again in range(EW_FILLS):
            key = (key + EW_OWNERS) % world.n_keys
            value = ew_next_value(world, thread, key)
            wrapper_fill(wrapper, ew_position(key), value, ew_owner(key), ew_size(value), turn)
        stamped_unlock_write(&wrapper.lock)
        stamped_lock_write(&wrapper.lock)
        # I34: what a user of another incarnation wrote late would be seen here.
        if wrapper_clear(wrapper, ew_position(key), value, ew_owner(key)) != ew_size(value):
            violate(violation, b"I34", b"an incarnation of key %lld that nobody knew of was changed", key, 0, 0)
        stamped_unlock_write(&wrapper.lock)
        ew_recycle(world, handle, violation)
        ew_watch_lock(world, thread, handle, violation)


# drain(steps): the consumer recycles empty wrappers and requeues the others; words are how many of each.
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
        empty = wrapper_key(wrapper).ledger_id == NO_LEDGER
        if empty:
            ew_expect_empty(wrapper, violation)
        else:
            wrapper_mark_requeued(wrapper, step)
            if i64_load_relaxed(&wrapper.timestamp) != step or not wrapper.requeue_count:
                violate(violation, b"I59", b"a requeue mark left timestamp %lld, count %lld",
                        i64_load_relaxed(&wrapper.timestamp), wrapper.requeue_count, 0)
        stamped_unlock_write(&wrapper.lock)
        mpsc_poll(&world.queue)
        # Tried twice: the tests fail one allocation, after which the answer shall be the same.
        if empty or (mpsc_offer(&world.queue, handle) != PML_OK
                     and mpsc_offer(&world.queue, handle) != PML_OK):
            ew_retire(world, thread, handle, wrapper, violation)
            result.words[0] += 1
        else:
            result.words[1] += 1
        ew_watch_lock(world, thread, handle, violation)


# A wrapper that was polled and does not go back goes to its pool; emptied, if there was no memory to
# queue it again.
cdef inline void ew_retire(
    WrapperWorld* world, int32_t thread, uint32_t handle, EntryWrapper* wrapper, PmlViolation* violation
) noexcept nogil:
    cdef WrapperThread* me = &world.threads[thread]
    cdef uint32_t seen = handle
    cdef Position key
    stamped_lock_write(&wrapper.lock)
    key = wrapper_key(wrapper)
    if key.ledger_id != NO_LEDGER:
        u32_cas_strong_acq_rel(&world.slots[key.entry_id], &seen, 0)
        me.cleared += 1
        me.cleared_bytes += wrapper.size
        wrapper_empty(wrapper)
    stamped_unlock_write(&wrapper.lock)
    me.dropped += 1
    ew_recycle(world, handle, violation)


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
        (<uint64_t*>&wrapper.lock)[0] = 0
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


# Life and quiescence -------------------------------------------------------------------------------

cdef inline void* entry_wrapper_create(const int64_t* settings, int32_t threads) noexcept nogil:
    cdef WrapperWorld* world = <WrapperWorld*>allocate_zeroed(1, sizeof(WrapperWorld))
    if world is NULL:
        return NULL
    world.n_threads = threads
    world.n_keys = settings[0]
    world.threads = <WrapperThread*>allocate_zeroed(threads, sizeof(WrapperThread))
    if world.threads is NULL or wrapper_pool_init(&world.pool, <uint32_t>settings[1], EW_LIMIT) != PML_OK:
        release(world.threads)
        release(world)
        return NULL
    if mpsc_init(&world.queue, <uint32_t>settings[2]) != PML_OK:
        pool_destroy(&world.pool)
        release(world.threads)
        release(world)
        return NULL
    return world


cdef inline void entry_wrapper_destroy(void* instance) noexcept nogil:
    cdef WrapperWorld* world = <WrapperWorld*>instance
    mpsc_destroy(&world.queue)
    pool_destroy(&world.pool)
    release(world.threads)
    release(world)


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
        if u64_load_relaxed(&wrapper.lock) & (STAMPED_WRITER | STAMPED_READERS):
            violate(violation, b"I102", b"the wrapper of key %lld is still locked", key, 0, 0)
            return
        if not wrapper_holds(wrapper, ew_position(key), ew_owner(key)) or not u32_load_relaxed(&wrapper.value):
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
    expect_equal(violation, b"I23", b"wrappers in use", ew_in_use(&world.pool), 0)


# -1 when the free list is not a list of different free objects.
cdef inline int64_t ew_in_use(const Pool* pool) noexcept nogil:
    cdef uint32_t used = u32_load_relaxed(&pool.used)
    cdef int64_t in_use = <int64_t>used - 1
    cdef uint32_t handle = <uint32_t>u64_load_relaxed(&pool.head)
    while handle:
        in_use -= 1
        if in_use < 0 or handle >= used:
            return -1
        handle = <uint32_t>i64_load_relaxed(pool_link(pool, handle))
    return in_use


cdef inline void entry_wrapper_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    cdef int32_t code
    table_start(table, b"entry_wrapper", b"Wrappers that are filled, read, cleared and reused.",
                entry_wrapper_create, entry_wrapper_apply, entry_wrapper_check, entry_wrapper_destroy)
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
    operation_argument(operation, b"repeats", 1, 64)
    operation = table_operation(table, EW_CLEAR, b"clear", 8, 0)
    operation_argument(operation, b"key", 0, EW_KEYS - 1)
    operation = table_operation(table, EW_CHURN, b"churn", 8, 0)
    operation_argument(operation, b"key", 0, EW_KEYS - 1)
    operation_argument(operation, b"turns", 1, 8)
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
