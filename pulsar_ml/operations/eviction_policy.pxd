# The eviction policies as a subject: the operations of the removal queue's, but a pass is cut into
# slices of any length, every step is checked, and the answer has the victims in their order.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.cache_check cimport world_check, world_destroy
from pulsar_ml.operations.cache_operations cimport range_common_apply, world_table
from pulsar_ml.operations.cache_world cimport (
    MOST_KEYS, CacheWorld, world_create, world_key, world_position, world_release, world_ticks, world_violate,
)
from pulsar_ml.operations.pass_operations cimport (
    PASS_CONFIGURE, PASS_EXPIRE, PASS_FREE, PASS_INTERRUPTED, PASS_MOST_STEPS, PASS_OVER,
    pass_account, pass_in_slices, pass_most_requeues, pass_step_checked, pass_to_expire, pass_to_free,
)
from pulsar_ml.operations.support cimport (
    SubjectTable, operation_argument, table_operation, table_start,
)
from pulsar_ml.structures.eviction_policy cimport eviction_configure, eviction_run
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.policy_pass cimport EvictionPass, PolicySettings
from pulsar_ml.structures.range_cache cimport range_cache_get


# The code after those of pass_operations.pxd that this subject has.
cdef enum:
    POLICY_FREE_WHILE_READ = PASS_CONFIGURE + 1
    POLICY_TWO_PASSES


# The record of a pass, kept from slice to slice.
cdef struct PolicyRecord:
    uint64_t digest         # of the victims, in their order
    int64_t most_requeues   # -1: no bound


cdef inline bint slice_recorded(
    CacheWorld* world, EvictionPass* run, int64_t most_steps, void* context, PmlViolation* violation
) noexcept nogil:
    cdef PolicyRecord* record = <PolicyRecord*>context
    cdef bint more = True
    cdef bint begins
    cdef int64_t removed
    monitor_enter(&world.policy.base.intake.monitor)
    while more and most_steps > 0 and not violation.found:
        removed = run.removed.entries
        begins = not run.begun
        more = pass_step_checked(world, run, violation)
        if begins:
            record.most_requeues = pass_most_requeues(world, run)
        if 0 <= record.most_requeues < run.requeued:
            world_violate(world, violation, b"I57", b"a pass over %lld wrappers kept %lld",
                          record.most_requeues, run.requeued, 0)
        if run.removed.entries != removed and not violation.found:
            # Caches have the numbers 1, 2 and 3.
            record.digest = record.digest * 31 + <uint64_t>(
                (<int64_t>run.last.owner - 1) * MOST_KEYS + world_key(world, run.last.key) + 1)
        most_steps -= 1
    monitor_leave(&world.policy.base.intake.monitor)
    return more


# words: entries, bytes, kept and (above 32 bits) dropped, the digest of the victims.
cdef inline void policy_pass(
    CacheWorld* world, int32_t thread, EvictionPass* run, int64_t slice_steps, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef PolicyRecord record = PolicyRecord(0, -1)
    pass_in_slices(world, thread, run, slice_recorded, &record, slice_steps, result, violation)
    result.words[2] = run.requeued + (run.missing << 32)
    result.words[3] = <int64_t>record.digest


# Steps of a pass until a wrapper leaves the policy or the pass is over; whether it is not over.
cdef inline bint policy_turn(
    CacheWorld* world, EvictionPass* run, PolicyRecord* record, int64_t* steps, PmlViolation* violation
) noexcept nogil:
    cdef int64_t entries = run.removed.entries
    cdef int64_t missing = run.missing
    while steps[0] < PASS_MOST_STEPS and run.removed.entries == entries and run.missing == missing:
        steps[0] += 1
        if not slice_recorded(world, run, 1, record, violation) or violation.found:
            return False
    return True


# two_passes(age, bytes, other): a time pass and a size pass that take turns, or two size passes if
# `other` is not 0. words: as of one pass, added.
cdef inline void policy_two_passes(
    CacheWorld* world, int32_t thread, int64_t age, int64_t amount, int64_t other, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef EvictionPass[2] runs
    cdef PolicyRecord[2] records
    cdef bint[2] more
    cdef uint64_t digest = 0
    cdef int64_t steps = 0
    cdef int i
    runs[0] = pass_to_free(world, other) if other else pass_to_expire(world, age)
    runs[1] = pass_to_free(world, amount)
    for i in range(2):
        more[i] = True
        records[i].most_requeues = -1
    while (more[0] or more[1]) and steps < PASS_MOST_STEPS and not violation.found:
        for i in range(2):
            if more[i]:
                records[i].digest = digest
                more[i] = policy_turn(world, &runs[i], &records[i], &steps, violation)
                digest = records[i].digest
    for i in range(2):
        pass_account(world, thread, &runs[i], violation)
        result.words[0] += runs[i].removed.entries
        result.words[1] += runs[i].removed.bytes
        result.words[2] += runs[i].requeued + (runs[i].missing << 32)
    result.status = PASS_INTERRUPTED if more[0] or more[1] else PASS_OVER
    result.words[3] = <int64_t>digest


# free_while_read(bytes, most_steps): a size pass step by step; before each step every entry is
# read. words: entries, bytes, kept, steps.
cdef inline void policy_free_while_read(
    CacheWorld* world, int32_t thread, int64_t amount, int64_t most_steps, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef EvictionPass run = pass_to_free(world, amount)
    cdef bint more = True
    cdef int64_t cache, key, steps = 0
    cdef uint32_t entry
    while more and steps < most_steps:
        for cache in range(world.n_caches):
            for key in range(world.n_keys):
                entry = range_cache_get(world.caches[cache], world_position(world, key))
                if entry:
                    world_release(world, entry, violation)
        more = eviction_run(&world.policy, &run, 1)
        steps += 1
    world.threads[thread].passed_entries += run.removed.entries
    world.threads[thread].passed_bytes += run.removed.bytes
    world.threads[thread].missing += run.missing
    result.status = PASS_INTERRUPTED if more else PASS_OVER
    result.words[0] = run.removed.entries
    result.words[1] = run.removed.bytes
    result.words[2] = run.requeued
    result.words[3] = steps


cdef inline void eviction_policy_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef CacheWorld* world = <CacheWorld*>instance
    cdef EvictionPass run
    if range_common_apply(world, thread, call, result, violation):
        return
    if call.code == PASS_EXPIRE:
        run = pass_to_expire(world, call.arguments[0])
        policy_pass(world, thread, &run, call.arguments[1], result, violation)
    elif call.code == PASS_FREE:
        run = pass_to_free(world, call.arguments[0])
        policy_pass(world, thread, &run, call.arguments[1], result, violation)
    elif call.code == PASS_CONFIGURE:
        eviction_configure(&world.policy, PolicySettings(
            <int32_t>call.arguments[0], call.arguments[1] != 0, world_ticks(call.arguments[2])))
    elif call.code == POLICY_FREE_WHILE_READ:
        policy_free_while_read(world, thread, call.arguments[0], call.arguments[1], result, violation)
    elif call.code == POLICY_TWO_PASSES:
        policy_two_passes(
            world, thread, call.arguments[0], call.arguments[1], call.arguments[2], result, violation)


cdef inline void eviction_policy_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"eviction_policy", b"Eight eviction policies over one to three range caches.",
                world_create, eviction_policy_apply, world_check, world_destroy)
    world_table(table, 1)
    operation = table_operation(table, PASS_EXPIRE, b"expire", 16, 0)
    operation_argument(operation, b"age", 0, 200)
    operation_argument(operation, b"slice", 1, 64)
    operation = table_operation(table, PASS_FREE, b"free", 24, 0)
    operation_argument(operation, b"bytes", 1, 3000)
    operation_argument(operation, b"slice", 1, 64)
    operation = table_operation(table, PASS_CONFIGURE, b"configure", 2, 0)
    operation_argument(operation, b"max_requeue", 0, 5)
    operation_argument(operation, b"extend", 0, 1)
    operation_argument(operation, b"life", 0, 200)
    operation = table_operation(table, POLICY_FREE_WHILE_READ, b"free_while_read", 0, 0)
    operation_argument(operation, b"bytes", 1, 3000)
    operation_argument(operation, b"most_steps", 1, 10000)
    operation = table_operation(table, POLICY_TWO_PASSES, b"two_passes", 16, 0)
    operation_argument(operation, b"age", 0, 200)
    operation_argument(operation, b"bytes", 1, 3000)
    operation_argument(operation, b"other", 0, 400)
