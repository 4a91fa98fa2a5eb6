# The removal queue's operations for the harness: those of the range caches that it empties, time
# passes, size passes and its settings. Under another policy they are the same calls.
#
# A pass runs as its users run it, or watched: then this file takes the monitor itself, looks at the
# head before each step and compares what the step did with what it should have done.

from libc.stdint cimport int32_t, int64_t, uint32_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.cache_check cimport world_check, world_destroy
from pulsar_ml.operations.cache_operations cimport range_common_apply, world_table
from pulsar_ml.operations.cache_world cimport CacheWorld, world_create, world_is_before, world_violate
from pulsar_ml.operations.pass_operations cimport (
    PASS_CONFIGURE, PASS_EXPIRE, PASS_FREE, PASS_LOSE, PASS_SLICE, pass_configure, pass_in_slices,
    pass_most_requeues, pass_step_checked, pass_to_expire, pass_to_free, slice_plain,
)
from pulsar_ml.operations.support cimport (
    SubjectTable, operation_argument, table_operation, table_start,
)
from pulsar_ml.structures.entry cimport entry_was_accessed
from pulsar_ml.structures.entry_wrapper cimport (
    EntryWrapper, wrapper_at, wrapper_is_empty, wrapper_key, wrapper_requeues,
)
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.mpsc_queue cimport mpsc_peek, mpsc_poll
from pulsar_ml.structures.policy_pass cimport EvictionPass
from pulsar_ml.structures.position cimport Position
from pulsar_ml.structures.stamped_lock cimport stamped_lock_read, stamped_unlock_read
from pulsar_ml.sync.atomics cimport i64_load_relaxed, u32_load_relaxed


# The head of the queue before a step.
cdef struct RemovalHead:
    Position key            # (0, 0) if it is empty
    int64_t timestamp
    int64_t requeue_count
    bint empty
    bint accessed


# Under the monitor.
cdef inline RemovalHead removal_look(const CacheWorld* world, EntryWrapper* wrapper) noexcept nogil:
    cdef RemovalHead head
    stamped_lock_read(&wrapper.lock)
    head.empty = wrapper_is_empty(wrapper)
    head.key = Position(0, 0)
    head.requeue_count = 0
    if not head.empty:
        head.key = wrapper_key(wrapper, &world.memory.map)
        head.requeue_count = wrapper_requeues(wrapper, &world.memory.map)
    head.timestamp = i64_load_relaxed(&wrapper.timestamp)
    head.accessed = not head.empty and entry_was_accessed(
        &world.memory.entries, u32_load_relaxed(&wrapper.value))
    stamped_unlock_read(&wrapper.lock)
    return head


# One step under the monitor, checked against the head before it. Other threads may empty the head's
# wrapper or mark it accessed meanwhile; only the consumer changes its timestamp and requeue count.
cdef inline bint removal_watch(CacheWorld* world, EvictionPass* run, PmlViolation* violation) noexcept nogil:
    cdef EvictionPass before = run[0]
    cdef uint32_t handle = mpsc_peek(&world.policy.base.intake.queue)
    cdef EntryWrapper* wrapper
    cdef RemovalHead head
    cdef bint more
    if not handle:
        return pass_step_checked(world, run, violation)
    wrapper = wrapper_at(&world.memory.wrappers, handle)
    head = removal_look(world, wrapper)
    more = pass_step_checked(world, run, violation)
    if violation.found:
        return False
    if not more:
        removal_check_stop(world, run, &head, violation)
        if mpsc_peek(&world.policy.base.intake.queue) != handle:
            world_violate(world, violation, b"I52", b"a pass that stopped moved the head", 0, 0, 0)
    elif run.missing != before.missing:
        if run.removed.entries != before.removed.entries or run.removed.bytes != before.removed.bytes:
            world_violate(world, violation, b"I60", b"dropping an empty wrapper removed %lld entries, %lld "
                          b"bytes", run.removed.entries - before.removed.entries,
                          run.removed.bytes - before.removed.bytes, 0)
    else:
        removal_check_due(world, &before, &head, violation)
        if run.requeued != before.requeued:
            removal_check_kept(world, run, &head, wrapper, violation)
        else:
            removal_check_removed(world, run, &before, &head, violation)
    return more


# The pass ended at this head.
cdef inline void removal_check_stop(
    CacheWorld* world, const EvictionPass* run, const RemovalHead* head, PmlViolation* violation
) noexcept nogil:
    if head.empty:
        world_violate(world, violation, b"I60", b"a pass stopped at an empty wrapper", 0, 0, 0)
    elif run.by_time and world_is_before(head.timestamp, run.threshold):
        world_violate(world, violation, b"I64", b"a time pass with threshold %lld stopped at timestamp %lld",
                      run.threshold, head.timestamp, 0)
    elif not run.by_time and run.removed.bytes < run.target:
        world_violate(world, violation, b"I54", b"a size pass stopped at %lld of %lld bytes before the end",
                      run.removed.bytes, run.target, 0)


# The step removed or requeued the head: was it its turn?
cdef inline void removal_check_due(
    CacheWorld* world, const EvictionPass* before, const RemovalHead* head, PmlViolation* violation
) noexcept nogil:
    if head.empty:
        world_violate(world, violation, b"I33", b"an empty wrapper in the queue became full", 0, 0, 0)
    elif before.by_time and not world_is_before(head.timestamp, before.threshold):
        world_violate(world, violation, b"I51", b"a time pass with threshold %lld handled timestamp %lld",
                      before.threshold, head.timestamp, 0)
    elif not before.by_time and before.removed.bytes >= before.target:
        world_violate(world, violation, b"I53", b"a size pass went on at %lld of %lld bytes",
                      before.removed.bytes, before.target, 0)


# The step requeued the head. The central queue does not charge what was accessed.
cdef inline void removal_check_kept(
    CacheWorld* world, const EvictionPass* run, const RemovalHead* head, EntryWrapper* wrapper,
    PmlViolation* violation
) noexcept nogil:
    cdef bint extend = world.policy.base.settings.extend_recently_accessed
    cdef bint central = not world.policy.row.one_budget
    cdef int64_t least = head.requeue_count if central and extend else head.requeue_count + 1
    cdef int64_t most = head.requeue_count if central and extend and head.accessed else head.requeue_count + 1
    cdef RemovalHead after
    if not extend and head.requeue_count >= world.policy.base.settings.max_requeue_count:
        world_violate(world, violation, b"I56", b"an entry was requeued %lld times before, at most %lld are "
                      b"allowed", head.requeue_count, world.policy.base.settings.max_requeue_count, 0)
    after = removal_look(world, wrapper)
    if not after.empty and (
            after.timestamp != run.now or after.requeue_count < least or after.requeue_count > most):
        world_violate(world, violation, b"I59", b"a requeued wrapper has timestamp %lld at time %lld and was "
                      b"requeued %lld times", after.timestamp, run.now, after.requeue_count)


cdef inline void removal_check_removed(
    CacheWorld* world, const EvictionPass* run, const EvictionPass* before, const RemovalHead* head,
    PmlViolation* violation
) noexcept nogil:
    if run.removed.entries != before.removed.entries + 1:
        world_violate(world, violation, b"I60", b"a step neither removed, requeued, dropped nor stopped",
                      0, 0, 0)
    # The central queue and size passes of released_5 keep nothing in their second round, and none
    # keeps an entry without memory for its place.
    elif (world.policy.base.settings.extend_recently_accessed and head.accessed
            and run.given_up == before.given_up and world.policy.row.one_budget
            and (run.by_time or world.policy.row.most_keeps < 0)):
        world_violate(world, violation, b"I55", b"an entry was removed though it was accessed", 0, 0, 0)


cdef inline bint slice_watched(
    CacheWorld* world, EvictionPass* run, int64_t most_steps, void* context, PmlViolation* violation
) noexcept nogil:
    cdef bint queue = world.policy.row.keeps_accessed
    cdef bint more = True
    cdef bint begins = not run.begun
    cdef int64_t* most_requeues = <int64_t*>context
    monitor_enter(&world.policy.base.intake.monitor)
    while more and most_steps > 0 and not violation.found:
        if queue:
            more = removal_watch(world, run, violation)
        else:
            more = pass_step_checked(world, run, violation)
        if begins:
            begins = False
            most_requeues[0] = pass_most_requeues(world, run)
        if 0 <= most_requeues[0] < run.requeued:
            world_violate(world, violation, b"I57", b"a pass over %lld wrappers requeued %lld times",
                          most_requeues[0], run.requeued, 0)
        most_steps -= 1
    monitor_leave(&world.policy.base.intake.monitor)
    return more


cdef inline void removal_pass(
    CacheWorld* world, int32_t thread, EvictionPass* run, bint watched, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef int64_t most_requeues = -1
    pass_in_slices(world, thread, run, slice_watched if watched else slice_plain, &most_requeues,
                   PASS_SLICE, result, violation)


cdef inline void removal_queue_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef CacheWorld* world = <CacheWorld*>instance
    cdef EvictionPass run
    if range_common_apply(world, thread, call, result, violation):
        return
    if call.code == PASS_EXPIRE:
        run = pass_to_expire(world, call.arguments[0])
        removal_pass(world, thread, &run, call.arguments[1] != 0, result, violation)
    elif call.code == PASS_FREE:
        run = pass_to_free(world, call.arguments[0])
        removal_pass(world, thread, &run, call.arguments[1] != 0, result, violation)
    elif call.code == PASS_CONFIGURE:
        pass_configure(world, call.arguments[0], call.arguments[1] != 0)
    elif call.code == PASS_LOSE:
        monitor_enter(&world.policy.base.intake.monitor)
        if mpsc_peek(&world.policy.base.intake.queue):
            mpsc_poll(&world.policy.base.intake.queue)
            result.status = 1
        monitor_leave(&world.policy.base.intake.monitor)


cdef inline void removal_queue_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"removal_queue", b"The policy that evicts the entries of one to three range caches.",
                world_create, removal_queue_apply, world_check, world_destroy)
    world_table(table, 1)
    operation = table_operation(table, PASS_EXPIRE, b"expire", 10, 0)
    operation_argument(operation, b"age", 0, 1000)
    operation_argument(operation, b"watched", 0, 1)
    operation = table_operation(table, PASS_FREE, b"free", 16, 0)
    operation_argument(operation, b"bytes", 1, 200)
    operation_argument(operation, b"watched", 0, 1)
    operation = table_operation(table, PASS_CONFIGURE, b"configure", 2, 0)
    operation_argument(operation, b"max_requeue", 0, 5)
    operation_argument(operation, b"extend", 0, 1)
    operation = table_operation(table, PASS_LOSE, b"lose", 0, 0)
