# A small pool whose objects are taken and given back by all threads, as operations for the harness.
#
# Each object carries a mark that its taker exchanges in and its giver exchanges out, and a plain
# pattern that only the holder writes: a thread that finds another mark or pattern shares the
# object.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.support cimport (
    SubjectTable, dirty, expect_equal, mix, operation_argument, table_operation, table_setting,
    table_start, violate,
)
from pulsar_ml.structures.object_pool cimport (
    Pool, pool_at, pool_destroy, pool_give, pool_give_chain, pool_in_use, pool_init, pool_link,
    pool_take,
)
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport (
    i64_store_relaxed, pml_i64, pml_u32, u32_cas_strong_acq_rel, u32_cas_weak_relaxed,
    u32_load_relaxed, u32_store_relaxed,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    OP_MOST_THREADS = 64
    OP_MOST_HANDLES = 64
    OP_CHECKER = 1000       # the mark of the check at quiescence


cdef enum:
    OP_DONE = 0
    OP_EXHAUSTED = 1        # no handle or no memory left
    OP_NOT_HELD = 2         # the thread holds nothing, nothing was called


cdef enum:
    OP_TAKE
    OP_GIVE
    OP_GIVE_CHAIN
    OP_READ
    OP_LOOK_STALE
    # Wrong on purpose.
    OP_GIVE_AND_KEEP
    OP_GIVE_TWICE
    OP_LOSE
    OP_RETYPE


cdef struct PooledObject:
    pml_i64 link
    pml_u32 holder          # thread + 1, 0 in the pool
    pml_u32 handle          # written with the first use, never again
    uint64_t pattern        # plain: the holder's


cdef struct PoolHolder:
    int32_t held
    uint32_t pooled_handle  # the object given back last
    int64_t serial
    uint32_t[64] handles
    char[112] apart


cdef struct PoolRun:
    Pool pool
    int32_t threads
    uint32_t limit
    PoolHolder[64] holders


cdef inline PooledObject* pooled(const PoolRun* run, uint32_t handle) noexcept nogil:
    return <PooledObject*>pool_at(&run.pool, handle)


cdef inline void* pool_run_create(const int64_t* settings, int32_t threads) noexcept nogil:
    # Holders stand last: those that will not come are left out.
    cdef PoolRun* run = <PoolRun*>allocate_zeroed(
        1, sizeof(PoolRun) - <size_t>(OP_MOST_THREADS - threads) * sizeof(PoolHolder))
    if run is NULL:
        return NULL
    run.threads = threads
    run.limit = <uint32_t>settings[1]
    dirty(&run.pool, sizeof(Pool))
    if pool_init(&run.pool, sizeof(PooledObject), <size_t>&(<PooledObject*>NULL).link,
                 <uint32_t>settings[0], run.limit) != PML_OK:
        release(run)
        return NULL
    return run


cdef inline void pool_run_destroy(void* instance) noexcept nogil:
    pool_destroy(&(<PoolRun*>instance).pool)
    release(instance)


# Exchanges the mark that must be there for another one; answers what was found. Relaxed: the mark
# must not order what the pool has to order.
cdef inline uint32_t pool_remark(PooledObject* taken, uint32_t before, uint32_t after) noexcept nogil:
    cdef uint32_t seen = before
    while not u32_cas_weak_relaxed(&taken.holder, &seen, after):
        if seen != before:
            return seen
    return before


cdef inline void pool_mark_taken(
    PoolRun* run, int32_t thread, uint32_t handle, PmlViolation* violation
) noexcept nogil:
    cdef PooledObject* taken = pooled(run, handle)
    cdef PoolHolder* holder = &run.holders[thread]
    cdef uint32_t found = pool_remark(taken, 0, thread + 1)
    if found:
        violate(violation, b"OP-1", b"object %lld was handed to thread %lld while thread %lld holds it",
                handle, thread, <int64_t>found - 1)
    found = u32_load_relaxed(&taken.handle)
    if found != 0 and found != handle:
        violate(violation, b"OP-3", b"the memory of object %lld says that it is object %lld", handle,
                found, 0)
    u32_store_relaxed(&taken.handle, handle)
    holder.serial += 1
    taken.pattern = mix((<uint64_t>thread << 48) ^ handle)


cdef inline void pool_look(
    PoolRun* run, int32_t thread, uint32_t handle, PmlViolation* violation
) noexcept nogil:
    cdef PooledObject* taken = pooled(run, handle)
    if (taken.pattern != mix((<uint64_t>thread << 48) ^ handle)
            or u32_load_relaxed(&taken.holder) != <uint32_t>(thread + 1)):
        violate(violation, b"I24", b"object %lld changed in the hands of thread %lld; its mark is %lld",
                handle, thread, u32_load_relaxed(&taken.holder))


# Takes the mark off before the object goes back.
cdef inline void pool_mark_given(
    PoolRun* run, int32_t thread, uint32_t handle, PmlViolation* violation
) noexcept nogil:
    cdef PooledObject* taken = pooled(run, handle)
    pool_look(run, thread, handle, violation)
    taken.pattern = 0
    pool_remark(taken, thread + 1, 0)
    run.holders[thread].pooled_handle = handle


# The thread's object number `which`, no longer among those it holds.
cdef inline uint32_t pool_pick(PoolHolder* holder, int64_t which) noexcept nogil:
    cdef int64_t index = which % holder.held
    cdef uint32_t handle = holder.handles[index]
    holder.held -= 1
    holder.handles[index] = holder.handles[holder.held]
    return handle


# Gives several objects back at once, linked by the giver.
cdef inline void pool_give_many(
    PoolRun* run, int32_t thread, int64_t many, PmlViolation* violation
) noexcept nogil:
    cdef PoolHolder* holder = &run.holders[thread]
    cdef uint32_t first = pool_pick(holder, 0)
    cdef uint32_t last = first
    cdef uint32_t handle
    pool_mark_given(run, thread, first, violation)
    while many > 1 and holder.held:
        handle = pool_pick(holder, 0)
        pool_mark_given(run, thread, handle, violation)
        i64_store_relaxed(pool_link(&run.pool, last), handle)
        last = handle
        many -= 1
    pool_give_chain(&run.pool, first, last)


cdef inline void pool_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef PoolRun* run = <PoolRun*>instance
    cdef PoolHolder* holder = &run.holders[thread]
    cdef uint32_t handle, found
    if call.code == OP_TAKE:
        handle = pool_take(&run.pool)
        if handle >= run.limit:
            violate(violation, b"OP-1", b"the pool handed out %lld; its handles are 1 to %lld", handle,
                    run.limit - 1, 0)
        elif handle == 0:
            result.status = OP_EXHAUSTED
        elif holder.held == OP_MOST_HANDLES:
            violate(violation, b"OP-1", b"the pool handed out more than its %lld objects", run.limit - 1,
                    0, 0)
        else:
            pool_mark_taken(run, thread, handle, violation)
            holder.handles[holder.held] = handle
            holder.held += 1
    elif call.code == OP_LOOK_STALE:
        # A look at an object in the pool finds an object, whatever it holds.
        if holder.pooled_handle:
            found = u32_load_relaxed(&pooled(run, holder.pooled_handle).handle)
            if found != holder.pooled_handle:
                violate(violation, b"OP-3", b"the memory of object %lld says that it is object %lld",
                        holder.pooled_handle, found, 0)
        else:
            result.status = OP_NOT_HELD
    elif holder.held == 0:
        result.status = OP_NOT_HELD
    elif call.code == OP_READ:
        pool_look(run, thread, holder.handles[call.arguments[0] % holder.held], violation)
    elif call.code == OP_GIVE_CHAIN:
        pool_give_many(run, thread, call.arguments[0], violation)
    elif call.code == OP_GIVE_AND_KEEP:
        pool_give(&run.pool, holder.handles[call.arguments[0] % holder.held])
    elif call.code == OP_RETYPE:
        u32_store_relaxed(&pooled(run, holder.handles[0]).handle, run.limit)
    elif call.code == OP_LOSE:
        pool_mark_given(run, thread, pool_pick(holder, call.arguments[0]), violation)
    else:
        handle = pool_pick(holder, call.arguments[0])
        pool_mark_given(run, thread, handle, violation)
        pool_give(&run.pool, handle)
        if call.code == OP_GIVE_TWICE:
            pool_give(&run.pool, handle)
    result.words[0] = holder.held


# Takes all that is left and gives it back: the free list is whole, without an object twice or one
# that is held. Ends after as many steps as there are handles.
cdef inline void pool_check_free(PoolRun* run, PmlViolation* violation) noexcept nogil:
    cdef uint32_t[64] free
    cdef uint32_t n = 0
    cdef uint32_t handle, found
    while n < run.limit:
        handle = pool_take(&run.pool)
        if not handle:
            break
        found = pool_remark(pooled(run, handle), 0, OP_CHECKER)
        if found:
            violate(violation, b"OP-1", b"object %lld is in the pool twice, or held (mark %lld)", handle,
                    found, 0)
            return
        free[n] = handle
        n += 1
    while n:
        n -= 1
        pool_remark(pooled(run, free[n]), OP_CHECKER, 0)
        pool_give(&run.pool, free[n])


cdef inline void pool_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef PoolRun* run = <PoolRun*>instance
    cdef int64_t held = 0
    cdef uint32_t handle
    cdef int thread
    pool_check_free(run, violation)
    if violation.found:
        return
    for thread in range(run.threads):
        held += run.holders[thread].held
    expect_equal(violation, b"OP-1", b"objects in use", pool_in_use(&run.pool), held)
    for thread in range(run.threads):
        while run.holders[thread].held:
            handle = pool_pick(&run.holders[thread], 0)
            pool_mark_given(run, thread, handle, violation)
            pool_give(&run.pool, handle)
    if not violation.found:
        pool_check_free(run, violation)
    if not violation.found:
        expect_equal(violation, b"OP-1", b"objects in use after all were given back",
                     pool_in_use(&run.pool), 0)


cdef inline void object_pool_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"object_pool", b"A pool of objects behind 32-bit handles.", pool_run_create,
                pool_apply, pool_check, pool_run_destroy)
    table.subject.max_threads = OP_MOST_THREADS
    table_setting(table, b"chunk_bits", 0, 4)
    table_setting(table, b"limit", 2, OP_MOST_HANDLES)
    operation = table_operation(table, OP_TAKE, b"take", 10, 0)
    operation = table_operation(table, OP_GIVE, b"give", 7, 0)
    operation_argument(operation, b"which", 0, 63)
    operation = table_operation(table, OP_GIVE_CHAIN, b"give_chain", 1, 0)
    operation_argument(operation, b"most", 1, 4)
    operation = table_operation(table, OP_READ, b"read", 2, 0)
    operation_argument(operation, b"which", 0, 63)
    operation = table_operation(table, OP_LOOK_STALE, b"look_stale", 2, 0)
    operation = table_operation(table, OP_GIVE_AND_KEEP, b"give_and_keep", 0, 0)
    operation_argument(operation, b"which", 0, 63)
    operation = table_operation(table, OP_GIVE_TWICE, b"give_twice", 0, 0)
    operation_argument(operation, b"which", 0, 63)
    operation = table_operation(table, OP_LOSE, b"lose", 0, 0)
    operation_argument(operation, b"which", 0, 63)
    operation = table_operation(table, OP_RETYPE, b"retype", 0, 0)
