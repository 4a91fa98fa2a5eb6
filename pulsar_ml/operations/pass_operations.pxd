# Passes of the eviction policy for the harness: time passes, size passes and changes of settings,
# and what every step of every policy must keep.

from libc.stdint cimport int32_t, int64_t

from pulsar_ml.harness.subjects.subject cimport PmlResult, PmlViolation
from pulsar_ml.operations.cache_operations cimport RANGE_MISCOUNT
from pulsar_ml.operations.cache_world cimport (
    CacheWorld, WorldThread, world_counted, world_is_before, world_key, world_later, world_settings,
    world_tick, world_ticks,
    world_violate,
)
from pulsar_ml.operations.policy_check cimport stash_check_trimmed
from pulsar_ml.structures.eviction_policy cimport (
    eviction_configure, eviction_held, eviction_run, eviction_step,
)
from pulsar_ml.structures.policy_pass cimport EvictionPass, size_pass, time_pass


# Statuses of a pass.
cdef enum:
    PASS_OVER = 0
    PASS_INTERRUPTED = 1    # so many steps were taken that it was given up


cdef enum:
    PASS_SLICE = 64         # steps of one stay under the monitor
    PASS_MOST_STEPS = 4096  # released_queue: readers that touch everything can hold a pass for ever


# The codes after those of cache_operations.pxd.
cdef enum:
    PASS_EXPIRE = RANGE_MISCOUNT + 1
    PASS_FREE
    PASS_CONFIGURE
    # A mistake.
    PASS_LOSE


# Steps of a pass, one stay under the monitor; whether the pass is not over yet.
ctypedef bint (*Slice)(
    CacheWorld* world, EvictionPass* run, int64_t most_steps, void* context, PmlViolation* violation
) noexcept nogil


cdef inline bint slice_plain(
    CacheWorld* world, EvictionPass* run, int64_t most_steps, void* context, PmlViolation* violation
) noexcept nogil:
    return eviction_run(&world.policy, run, most_steps)


# expire(age, ...): removes what is older than `age` ticks of the clock.
cdef inline EvictionPass pass_to_expire(CacheWorld* world, int64_t age) noexcept nogil:
    cdef int64_t now = world_tick(world)
    return time_pass(world_later(now, -age), now)


# free(bytes, ...): the target grows with the setting length_shift as entries do.
cdef inline EvictionPass pass_to_free(CacheWorld* world, int64_t amount) noexcept nogil:
    return size_pass(amount << world.length_shift, world_tick(world))


# A pass in slices; words are entries and bytes removed, wrappers requeued and dropped.
cdef inline void pass_in_slices(
    CacheWorld* world, int32_t thread, EvictionPass* run, Slice cut, void* context, int64_t slice_steps,
    PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef int64_t steps = 0
    cdef bint more = True
    while more and steps < PASS_MOST_STEPS and not violation.found:
        more = cut(world, run, slice_steps, context, violation)
        steps += slice_steps
    pass_account(world, thread, run, violation)
    if run.second and not more and world.n_threads == 1:
        stash_check_trimmed(&world.policy, violation)
    result.status = PASS_INTERRUPTED if more else PASS_OVER
    result.words[0] = run.removed.entries
    result.words[1] = run.removed.bytes
    result.words[2] = run.requeued
    result.words[3] = run.missing


# Enters what a pass removed into the thread's books.
cdef inline void pass_account(
    CacheWorld* world, int32_t thread, const EvictionPass* run, PmlViolation* violation
) noexcept nogil:
    cdef WorldThread* me = &world.threads[thread]
    me.passed_entries += run.removed.entries
    me.passed_bytes += run.removed.bytes
    me.missing += run.missing
    if run.removed.entries < 0 or run.removed.bytes < 0:
        world_violate(world, violation, b"I46", b"a pass answers %lld entries, %lld bytes",
                      run.removed.entries, run.removed.bytes, 0)
    # The largest entry has 56 bytes. A scan takes a part from each cache.
    elif not run.by_time and run.removed.bytes - run.target >= (
            <int64_t>56 << world.length_shift) * (
            1 if world.policy.row.queued else world.n_caches):
        world_violate(world, violation, b"I53", b"a size pass freed %lld bytes for a target of %lld",
                      run.removed.bytes, run.target, 0)


# Checks a step of any policy against the pass before it.
cdef inline void pass_check_step(
    CacheWorld* world, const EvictionPass* before, const EvictionPass* run, PmlViolation* violation
) noexcept nogil:
    cdef int64_t entries = run.removed.entries - before.removed.entries
    cdef int64_t size = run.removed.bytes - before.removed.bytes
    cdef int64_t key
    if entries < 0 or entries > 1 or (entries == 0 and size != 0):
        world_violate(world, violation, b"I46", b"a step removed %lld entries, %lld bytes", entries, size, 0)
        return
    if not entries:
        return
    key = world_key(world, run.last.key)
    if key < 0 or size != world_counted(world, key):
        world_violate(world, violation, b"I44", b"the removal of key %lld freed %lld bytes", key, size, 0)
    # The mark of a wrapper to keep is its new timestamp; then there was no memory to keep it.
    elif (run.by_time and not world_is_before(run.last.timestamp, run.threshold)
            and (run.given_up == before.given_up or run.last.timestamp != run.now)):
        world_violate(world, violation, b"I51", b"a time pass with threshold %lld removed timestamp %lld",
                      run.threshold, run.last.timestamp, 0)
    elif (not run.by_time and world.policy.row.queued
            and before.removed.bytes >= run.target):
        world_violate(world, violation, b"I53", b"a size pass went on at %lld of %lld bytes",
                      before.removed.bytes, run.target, 0)


# The most requeues of a pass that begins now, -1 without a bound: a time pass of released_5 keeps
# what comes while it runs, too. Under the monitor, after its first step: wrappers may have come
# meanwhile.
cdef inline int64_t pass_most_requeues(const CacheWorld* world, const EvictionPass* run) noexcept nogil:
    if world.policy.row.most_keeps < 0 or (world.policy.row.one_budget and run.by_time):
        return -1
    return (eviction_held(&world.policy) + 1) * world.policy.row.most_keeps


# A checked step. Under the monitor.
cdef inline bint pass_step_checked(
    CacheWorld* world, EvictionPass* run, PmlViolation* violation
) noexcept nogil:
    cdef EvictionPass before = run[0]
    cdef bint more = eviction_step(&world.policy, run)
    pass_check_step(world, &before, run, violation)
    return more


cdef inline void pass_configure(CacheWorld* world, int64_t max_requeue, bint extend) noexcept nogil:
    eviction_configure(&world.policy, world_settings(max_requeue, extend))
