# The removal queue's operations for the harness: those of the range caches that it empties, time passes,
# size passes and its settings.
#
# A pass runs as its users run it, or watched: then this file takes the monitor itself, looks at the
# head before each step and compares what the step did with what it should have done.

from libc.stdint cimport int32_t, int64_t, uint32_t

from pulsar_ml.harness.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.cache_check cimport world_check, world_destroy
from pulsar_ml.operations.cache_world cimport (
    CacheWorld, WorldThread, world_create, world_tick, world_ticks, world_violate,
)
from pulsar_ml.operations.cache_operations cimport RANGE_MISCOUNT, range_common_apply, world_table
from pulsar_ml.operations.support cimport (
    SubjectTable, operation_argument, table_operation, table_start,
)
from pulsar_ml.structures.entry_wrapper cimport EntryWrapper, NO_LEDGER, wrapper_at, wrapper_key
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.mpsc_queue cimport mpsc_peek, mpsc_poll
from pulsar_ml.structures.position cimport Position
from pulsar_ml.structures.removal_queue cimport (
    RemovalPass, removal_queue_configure, removal_run, removal_step, size_pass, time_pass,
)
from pulsar_ml.structures.stamped_lock cimport stamped_lock_read, stamped_unlock_read
from pulsar_ml.sync.atomics cimport i64_load_relaxed, u8_load_relaxed


# Statuses of a pass.
cdef enum:
    REMOVAL_OVER = 0
    REMOVAL_INTERRUPTED = 1     # so many steps were taken that it was given up


cdef enum:
    REMOVAL_SLICE = 64          # steps of one stay under the monitor
    REMOVAL_MOST_STEPS = 4096   # readers that touch everything again and again cannot hold a pass for ever


# The codes after those of cache_operations.pxd.
cdef enum:
    REMOVAL_EXPIRE = RANGE_MISCOUNT + 1
    REMOVAL_FREE
    REMOVAL_CONFIGURE
    # A mistake.
    REMOVAL_LOSE


# What a step should act on: the head, before it.
cdef struct RemovalHead:
    Position key
    int64_t timestamp
    int64_t size
    int64_t requeue_count
    bint accessed


# Under the monitor.
cdef inline RemovalHead removal_look(EntryWrapper* wrapper) noexcept nogil:
    cdef RemovalHead head
    stamped_lock_read(&wrapper.lock)
    head.key = wrapper_key(wrapper)
    head.timestamp = i64_load_relaxed(&wrapper.timestamp)
    head.size = wrapper.size
    head.requeue_count = wrapper.requeue_count
    head.accessed = u8_load_relaxed(&wrapper.accessed) != 0
    stamped_unlock_read(&wrapper.lock)
    return head


# One step under the monitor, checked against the head before it. Other threads may empty the head's
# wrapper or mark it accessed meanwhile; only the consumer changes its timestamp and requeue count.
cdef inline bint removal_watch(CacheWorld* world, RemovalPass* run, PmlViolation* violation) noexcept nogil:
    cdef RemovalPass before = run[0]
    cdef uint32_t handle = mpsc_peek(&world.queue.queue)
    cdef EntryWrapper* wrapper
    cdef RemovalHead head, after
    cdef bint more
    if not handle:
        return removal_step(&world.queue, run)
    wrapper = wrapper_at(&world.memory.wrappers, handle)
    head = removal_look(wrapper)
    more = removal_step(&world.queue, run)
    if not more:
        removal_check_stop(world, run, &head, violation)
    elif run.missing != before.missing:
        if run.removed.entries != before.removed.entries or run.removed.bytes != before.removed.bytes:
            world_violate(world, violation, b"I60", b"dropping an empty wrapper removed %lld entries, %lld "
                          b"bytes", run.removed.entries - before.removed.entries,
                          run.removed.bytes - before.removed.bytes, 0)
    else:
        removal_check_due(world, &before, &head, violation)
        if run.requeued != before.requeued:
            if (not world.queue.extend_recently_accessed
                    and head.requeue_count >= world.queue.max_requeue_count):
                world_violate(world, violation, b"I56", b"an entry was requeued %lld times before, at most "
                              b"%lld are allowed", head.requeue_count, world.queue.max_requeue_count, 0)
            after = removal_look(wrapper)
            if after.key.ledger_id != NO_LEDGER and (
                    after.timestamp != run.now or after.requeue_count != head.requeue_count + 1):
                world_violate(world, violation, b"I59", b"a requeued wrapper has timestamp %lld at time %lld "
                              b"and was requeued %lld times", after.timestamp, run.now, after.requeue_count)
        else:
            removal_check_removed(world, run, &before, &head, violation)
    return more


# The pass ended at this head.
cdef inline void removal_check_stop(
    CacheWorld* world, const RemovalPass* run, const RemovalHead* head, PmlViolation* violation
) noexcept nogil:
    if head.key.ledger_id == NO_LEDGER:
        world_violate(world, violation, b"I60", b"a pass stopped at an empty wrapper", 0, 0, 0)
    elif run.by_time and head.timestamp < run.threshold:
        world_violate(world, violation, b"I64", b"a time pass with threshold %lld stopped at timestamp %lld",
                      run.threshold, head.timestamp, 0)
    elif not run.by_time and run.removed.bytes < run.target:
        world_violate(world, violation, b"I54", b"a size pass stopped at %lld of %lld bytes before the end",
                      run.removed.bytes, run.target, 0)


# The step removed or requeued the head: was it its turn?
cdef inline void removal_check_due(
    CacheWorld* world, const RemovalPass* before, const RemovalHead* head, PmlViolation* violation
) noexcept nogil:
    if head.key.ledger_id == NO_LEDGER:
        world_violate(world, violation, b"I33", b"an empty wrapper in the queue became full", 0, 0, 0)
    elif before.by_time and head.timestamp >= before.threshold:
        world_violate(world, violation, b"I51", b"a time pass with threshold %lld handled timestamp %lld",
                      before.threshold, head.timestamp, 0)
    elif not before.by_time and before.removed.bytes >= before.target:
        world_violate(world, violation, b"I53", b"a size pass went on at %lld of %lld bytes",
                      before.removed.bytes, before.target, 0)


cdef inline void removal_check_removed(
    CacheWorld* world, const RemovalPass* run, const RemovalPass* before, const RemovalHead* head,
    PmlViolation* violation
) noexcept nogil:
    if (run.removed.entries != before.removed.entries + 1
            or run.removed.bytes != before.removed.bytes + head.size):
        world_violate(world, violation, b"I44", b"a step removed %lld entries, %lld bytes; %lld were counted",
                      run.removed.entries - before.removed.entries,
                      run.removed.bytes - before.removed.bytes, head.size)
    elif world.queue.extend_recently_accessed and head.accessed:
        world_violate(world, violation, b"I55", b"an entry was removed though it was accessed", 0, 0, 0)


cdef inline bint removal_run_watched(
    CacheWorld* world, RemovalPass* run, int64_t most_steps, PmlViolation* violation
) noexcept nogil:
    cdef bint more = True
    monitor_enter(&world.queue.monitor)
    while more and most_steps > 0 and not violation.found:
        more = removal_watch(world, run, violation)
        most_steps -= 1
    monitor_leave(&world.queue.monitor)
    return more


# A pass in slices; words are entries and bytes removed, wrappers requeued and dropped.
cdef inline void removal_pass(
    CacheWorld* world, int32_t thread, RemovalPass* run, bint watched, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef WorldThread* me = &world.threads[thread]
    cdef int64_t steps = 0
    cdef bint more = True
    while more and steps < REMOVAL_MOST_STEPS and not violation.found:
        if watched:
            more = removal_run_watched(world, run, REMOVAL_SLICE, violation)
        else:
            more = removal_run(&world.queue, run, REMOVAL_SLICE)
        steps += REMOVAL_SLICE
    if run.removed.entries < 0 or run.removed.bytes < 0:
        world_violate(world, violation, b"I46", b"a pass answers %lld entries, %lld bytes",
                      run.removed.entries, run.removed.bytes, 0)
    me.passed_entries += run.removed.entries
    me.passed_bytes += run.removed.bytes
    me.missing += run.missing
    result.status = REMOVAL_INTERRUPTED if more else REMOVAL_OVER
    result.words[0] = run.removed.entries
    result.words[1] = run.removed.bytes
    result.words[2] = run.requeued
    result.words[3] = run.missing


# expire(age, watched): removes what is older than `age` ticks of the clock.
cdef inline void removal_expire(
    CacheWorld* world, int32_t thread, int64_t age, bint watched, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef int64_t now = world_tick(world)
    cdef RemovalPass run = time_pass(now - world_ticks(age), now)
    removal_pass(world, thread, &run, watched, result, violation)


# free(bytes, watched): the target grows with the setting length_shift as entries do.
cdef inline void removal_free(
    CacheWorld* world, int32_t thread, int64_t amount, bint watched, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef RemovalPass run = size_pass(amount << world.length_shift, world_tick(world))
    removal_pass(world, thread, &run, watched, result, violation)
    # Stopped though the target was not reached: the queue was empty at that moment.
    if run.removed.bytes >= run.target and run.removed.bytes - (
            <int64_t>56 << world.length_shift) >= run.target:
        world_violate(world, violation, b"I53", b"a size pass freed %lld bytes for a target of %lld",
                      run.removed.bytes, run.target, 0)


cdef inline void removal_queue_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef CacheWorld* world = <CacheWorld*>instance
    if range_common_apply(world, thread, call, result, violation):
        return
    if call.code == REMOVAL_EXPIRE:
        removal_expire(world, thread, call.arguments[0], call.arguments[1] != 0, result, violation)
    elif call.code == REMOVAL_FREE:
        removal_free(world, thread, call.arguments[0], call.arguments[1] != 0, result, violation)
    elif call.code == REMOVAL_CONFIGURE:
        removal_queue_configure(&world.queue, <int32_t>call.arguments[0], call.arguments[1] != 0)
    elif call.code == REMOVAL_LOSE:
        monitor_enter(&world.queue.monitor)
        if mpsc_peek(&world.queue.queue):
            mpsc_poll(&world.queue.queue)
            result.status = 1
        monitor_leave(&world.queue.monitor)


cdef inline void removal_queue_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"removal_queue", b"The queue that evicts the entries of one to three range caches.",
                world_create, removal_queue_apply, world_check, world_destroy)
    world_table(table, 1)
    operation = table_operation(table, REMOVAL_EXPIRE, b"expire", 10, 0)
    operation_argument(operation, b"age", 0, 1000)
    operation_argument(operation, b"watched", 0, 1)
    operation = table_operation(table, REMOVAL_FREE, b"free", 16, 0)
    operation_argument(operation, b"bytes", 1, 200)
    operation_argument(operation, b"watched", 0, 1)
    operation = table_operation(table, REMOVAL_CONFIGURE, b"configure", 2, 0)
    operation_argument(operation, b"max_requeue", 0, 5)
    operation_argument(operation, b"extend", 0, 1)
    operation = table_operation(table, REMOVAL_LOSE, b"lose", 0, 0)
