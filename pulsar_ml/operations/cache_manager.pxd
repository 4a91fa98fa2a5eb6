# The cache manager's operations for the harness: those of the range caches, which it counts here,
# its passes, its trigger, its settings, and its thread.
#
# Without a thread an operation that triggers runs the eviction before it returns. `serve` starts
# the thread, puts, and ends it; meanwhile all others leave their tasks to it.

from libc.stdint cimport int32_t, int64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.cache_check cimport world_check, world_destroy
from pulsar_ml.operations.cache_operations cimport (
    RANGE_MISCOUNT, range_common_apply, world_table,
)
from pulsar_ml.operations.cache_puts cimport range_put, world_stripe
from pulsar_ml.operations.cache_world cimport (
    CacheWorld, WorldThread, world_create, world_equal, world_tick, world_ticks, world_violate,
)
from pulsar_ml.operations.support cimport (
    SubjectTable, dirty, operation_argument, table_operation, table_setting, table_start,
)
from pulsar_ml.structures.cache_manager cimport (
    CacheManager, ManagerSettings, ManagerStats, cache_manager_configure, cache_manager_destroy,
    cache_manager_evict, cache_manager_init, cache_manager_look, cache_manager_mark, cache_manager_miss,
    cache_manager_removed, cache_manager_run, cache_manager_stats, cache_manager_tick,
)
from pulsar_ml.structures.eviction_thread cimport (
    eviction_thread_forget, eviction_thread_go_on, eviction_thread_hold, eviction_thread_serves,
    eviction_thread_start, eviction_thread_stop,
)
from pulsar_ml.structures.policy_pass cimport EvictionPass, size_pass
from pulsar_ml.structures.range_cache cimport Removed, range_cache_size
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport (
    i32_load_relaxed, i32_store_relaxed, i64_fetch_add_relaxed, i64_load_relaxed, pml_i64, pml_u32,
    u32_load_relaxed, u32_store_relaxed,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release
from pulsar_ml.sync.thread cimport condition_destroy, condition_leave


# The codes after those of cache_operations.pxd.
cdef enum:
    MANAGER_TICK = RANGE_MISCOUNT + 1
    MANAGER_TRIGGER
    MANAGER_EVICT
    MANAGER_FREE
    MANAGER_CONFIGURE
    MANAGER_POLICY
    MANAGER_STATS
    # On request: what the thread does meanwhile no model knows.
    MANAGER_SERVE
    MANAGER_SERVES
    MANAGER_MISS
    MANAGER_FORK
    # Mistakes.
    MANAGER_MISBOOK
    MANAGER_LEAVE_MARKED


cdef enum:
    MANAGER_SLICE = 16          # steps of a pass that a caller cuts into slices
    MANAGER_PASSES = 4096       # slices after which it is given up
    MANAGER_INTERVAL = 200000   # nanoseconds between two ticks of the thread


# A size and a watermark in percent, as a caller requested them.
cdef struct RequestedSettings:
    bint is_set
    int64_t max_size            # bytes
    int64_t watermark


cdef struct ManagerWorld:
    CacheWorld* world
    CacheManager manager
    # At first, and the last of each thread: the goals of passes are judged by these.
    RequestedSettings first
    RequestedSettings[64] last
    int64_t dropped             # empty wrappers that the world has counted
    pml_i64 missed              # entries that reads did not find, and their bytes
    pml_i64 missed_bytes
    pml_u32 free_for_all        # entries went by other ways than size passes, or settings changed


# The manager's clock is the world's.
cdef inline int64_t manager_clock(void* context) noexcept nogil:
    return i64_load_relaxed(&(<CacheWorld*>context).clock)


# Sizes in bytes of unshifted entries, the watermark in percent, the time to live in ticks.
cdef inline ManagerSettings manager_settings(
    const CacheWorld* world, int64_t max_size, int64_t watermark, int64_t ticks
) noexcept nogil:
    return ManagerSettings(max_size << world.length_shift, watermark * 10000, world_ticks(ticks),
                           MANAGER_INTERVAL, -1, -1, -1)


# Settings: those of the world, and max_size and watermark.
cdef inline void* manager_create(const int64_t* settings, int32_t threads) noexcept nogil:
    cdef ManagerWorld* at = <ManagerWorld*>allocate_zeroed(1, sizeof(ManagerWorld))
    cdef ManagerSettings options
    if at is NULL:
        return NULL
    at.world = <CacheWorld*>world_create(settings, threads)
    if at.world is NULL:
        release(at)
        return NULL
    at.first = RequestedSettings(True, settings[9] << at.world.length_shift, settings[10])
    options = manager_settings(at.world, settings[9], settings[10], 0)
    options.max_requeue_count = at.world.policy.base.settings.max_requeue_count
    options.extend_recently_accessed = at.world.policy.base.settings.extend_recently_accessed
    options.time_to_live_max = at.world.policy.base.settings.time_to_live_max
    dirty(&at.manager, sizeof(CacheManager))
    if cache_manager_init(&at.manager, &at.world.policy, &options) != PML_OK:
        world_destroy(at.world)
        release(at)
        return NULL
    at.manager.clock = manager_clock
    at.manager.clock_context = at.world
    at.world.manager = &at.manager
    return at


cdef inline void manager_check_tasks(ManagerWorld* at, PmlViolation* violation) noexcept nogil:
    cdef int32_t tasks = i32_load_relaxed(&at.manager.tasks)
    if tasks < 0 or tasks > 1:
        world_violate(at.world, violation, b"I61", b"%lld eviction tasks are queued or running", tasks, 0, 0)


# Words: entries, bytes, requeued, dropped.
cdef inline void manager_pass_result(const EvictionPass* run, PmlResult* result) noexcept nogil:
    result.words[0] = run.removed.entries
    result.words[1] = run.removed.bytes
    result.words[2] = run.requeued
    result.words[3] = run.missing


# A size pass to the watermark, or for so many bytes, in slices.
cdef inline void manager_pass(
    ManagerWorld* at, int64_t amount, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef EvictionPass run = size_pass(amount << at.world.length_shift, world_tick(at.world))
    cdef int64_t slices = 0
    cdef bint more = True
    while more and slices < MANAGER_PASSES:
        slices += 1
        if amount:
            more = cache_manager_run(&at.manager, &run, MANAGER_SLICE)
        else:
            more = cache_manager_evict(&at.manager, &run, MANAGER_SLICE)
    manager_pass_result(&run, result)
    if run.removed.entries < 0 or run.removed.bytes < 0:
        world_violate(at.world, violation, b"I46", b"a pass answers %lld entries, %lld bytes",
                      run.removed.entries, run.removed.bytes, 0)


# Words: the size, entries put, entries gone, size passes.
cdef inline void manager_stats(ManagerWorld* at, PmlResult* result) noexcept nogil:
    cdef ManagerStats stats
    cache_manager_stats(&at.manager, &stats)
    result.words[0] = stats.size
    result.words[1] = stats.inserted_entries
    result.words[2] = stats.evicted_entries
    result.words[3] = stats.evictions


# The thread's life, and puts of consecutive keys meanwhile. Calls of several threads start it once,
# and the first that is through ends it.
cdef inline void manager_serve(
    ManagerWorld* at, int32_t thread, int64_t cache, int64_t key, int64_t puts, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef PmlResult ignored
    cdef int64_t i
    result.status = eviction_thread_start(&at.manager)
    for i in range(puts):
        range_put(at.world, thread, cache, (key + i) % at.world.n_keys, i % 2, 0, &ignored, violation)
        manager_check_tasks(at, violation)
    eviction_thread_stop(&at.manager)


# A fork, as of the parent; in a world of one thread as of the child, which has the state of the
# parent's thread and not the thread. The condition of the child is a copy that nobody knows; here
# it has to go first.
cdef inline void manager_fork(ManagerWorld* at) noexcept nogil:
    eviction_thread_hold(&at.manager)
    if at.world.n_threads > 1:
        eviction_thread_go_on(&at.manager)
        return
    at.manager.serving = at.manager.wanted = True
    u32_store_relaxed(&at.manager.marker, 1)
    i32_store_relaxed(&at.manager.tasks, 1)
    condition_leave(&at.manager.work)
    condition_destroy(&at.manager.work)
    eviction_thread_forget(&at.manager)


cdef inline void manager_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef ManagerWorld* at = <ManagerWorld*>instance
    cdef ManagerSettings settings
    if not range_common_apply(at.world, thread, call, result, violation):
        if call.code in (MANAGER_TICK, MANAGER_FREE, MANAGER_CONFIGURE, MANAGER_SERVE):
            u32_store_relaxed(&at.free_for_all, 1)
        if call.code == MANAGER_TICK:
            cache_manager_tick(&at.manager, world_tick(at.world))
        elif call.code == MANAGER_TRIGGER:
            result.status = cache_manager_look(&at.manager, world_tick(at.world))
        elif call.code == MANAGER_EVICT:
            manager_pass(at, 0, result, violation)
        elif call.code == MANAGER_FREE:
            manager_pass(at, call.arguments[0], result, violation)
        elif call.code == MANAGER_CONFIGURE:
            at.last[thread] = RequestedSettings(
                True, call.arguments[0] << at.world.length_shift, call.arguments[1])
            settings = manager_settings(at.world, call.arguments[0], call.arguments[1], call.arguments[2])
            cache_manager_configure(&at.manager, &settings, world_tick(at.world))
        elif call.code == MANAGER_POLICY:
            settings = ManagerSettings(-1, -1, -1, -1, <int32_t>call.arguments[0],
                                       <int32_t>call.arguments[1], -1)
            cache_manager_configure(&at.manager, &settings, world_tick(at.world))
        elif call.code == MANAGER_STATS:
            manager_stats(at, result)
        elif call.code == MANAGER_SERVE:
            manager_serve(at, thread, call.arguments[0] % at.world.n_caches,
                          call.arguments[1] % at.world.n_keys, call.arguments[2], result, violation)
        elif call.code == MANAGER_SERVES:
            result.status = eviction_thread_serves(&at.manager)
        elif call.code == MANAGER_MISS:
            i64_fetch_add_relaxed(&at.missed, call.arguments[0])
            i64_fetch_add_relaxed(&at.missed_bytes, call.arguments[1])
            cache_manager_miss(&at.manager, world_stripe(thread), call.arguments[0], call.arguments[1])
        elif call.code == MANAGER_FORK:
            manager_fork(at)
        elif call.code == MANAGER_MISBOOK:
            i64_fetch_add_relaxed(&at.manager.size, 1)
        elif call.code == MANAGER_LEAVE_MARKED:
            cache_manager_mark(&at.manager)
    manager_check_tasks(at, violation)


# At quiescence ------------------------------------------------------------------------------------

# Adds the entries that the manager's passes removed to the world's books.
cdef inline void manager_tell_world(ManagerWorld* at) noexcept nogil:
    cdef CacheWorld* world = at.world
    cdef WorldThread* first = &world.threads[0]
    cdef ManagerStats stats
    cdef int32_t thread, cache
    cache_manager_stats(&at.manager, &stats)
    for thread in range(world.n_threads):
        stats.evicted_entries -= world.threads[thread].passed_entries
        stats.evicted_bytes -= world.threads[thread].passed_bytes
        for cache in range(world.n_caches):
            stats.evicted_entries -= world.threads[thread].removed_entries[cache]
            stats.evicted_bytes -= world.threads[thread].removed_bytes[cache]
    first.passed_entries += stats.evicted_entries
    first.passed_bytes += stats.evicted_bytes
    first.missing += stats.dropped - at.dropped
    at.dropped = stats.dropped


# True if calls removed entries, beside those that passes evicted.
cdef inline bint manager_calls_removed(const CacheWorld* world) noexcept nogil:
    cdef int32_t thread, cache
    for thread in range(world.n_threads):
        for cache in range(world.n_caches):
            if world.threads[thread].removed_entries[cache]:
                return True
    return False


# True if passes reach their target while enough is cached. A pass of the stash may free nothing and
# still have moved entries that the next one frees; a scan may take a cache whose entries a call is
# just removing.
cdef inline bint manager_frees(const CacheWorld* world) noexcept nogil:
    if not world.policy.row.queued:
        return not manager_calls_removed(world)
    return world.policy.row.frees_target


# The mark at which passes stop, by requested settings.
cdef inline int64_t manager_goal(const RequestedSettings* requested) noexcept nogil:
    return requested.max_size * requested.watermark // 100


# I53, I63: a pass begins at 98 percent of the size and stops at the mark, as the settings in force
# say: those of the last change of some thread, or the first ones where nobody changed them.
cdef inline bint manager_check_goals(ManagerWorld* at, PmlViolation* violation) noexcept nogil:
    cdef CacheManager* manager = &at.manager
    cdef RequestedSettings* requested = &at.first
    cdef int64_t size = i64_load_relaxed(&manager.max_size)
    cdef int64_t mark = i64_load_relaxed(&manager.low_mark)
    cdef bint changed = False
    cdef int32_t thread
    for thread in range(at.world.n_threads):
        if at.last[thread].is_set:
            changed = True
            requested = &at.last[thread]
            if requested.max_size == size and manager_goal(requested) == mark:
                break
    else:
        if changed or requested.max_size != size or manager_goal(requested) != mark:
            world_violate(at.world, violation, b"I53", b"passes stop at %lld of %lld bytes, and no settings "
                          b"say that", mark, size, 0)
            return False
    return world_equal(at.world, violation, b"I63", b"the size above which a pass begins",
                       i64_load_relaxed(&manager.threshold), requested.max_size * 98 // 100)


# I53 over all size passes: where entries went by them only, no more went than the mark allows.
cdef inline bint manager_check_marks(
    ManagerWorld* at, const ManagerStats* stats, PmlViolation* violation
) noexcept nogil:
    cdef CacheWorld* world = at.world
    # The largest entry has 56 bytes. A scan takes a part from each cache.
    cdef int64_t part = <int64_t>56 << world.length_shift
    cdef int64_t low_mark = manager_goal(&at.first)     # no call has changed the settings
    if u32_load_relaxed(&at.free_for_all) or not stats.evictions:
        return True
    if manager_calls_removed(world):
        return True
    if not world.policy.row.queued:
        part *= world.n_caches
    if stats.size > low_mark - part:
        return True
    world_violate(world, violation, b"I53", b"size passes went on to %lld bytes, the mark is %lld",
                  stats.size, low_mark, 0)
    return False


# I42, I45, I47, I61, I63 and the reads: the books against the caches.
cdef inline bint manager_check_books(ManagerWorld* at, PmlViolation* violation) noexcept nogil:
    cdef CacheWorld* world = at.world
    cdef CacheManager* manager = &at.manager
    cdef ManagerStats stats
    cdef int64_t size = 0, put = 0, put_bytes = 0, hits = 0, hit_bytes = 0
    cdef int32_t thread, cache
    cache_manager_stats(manager, &stats)
    for cache in range(world.n_caches):
        size += range_cache_size(world.caches[cache])
        for thread in range(world.n_threads):
            put += world.threads[thread].put_entries[cache]
            put_bytes += world.threads[thread].put_bytes[cache]
    for thread in range(world.n_threads):
        hits += world.threads[thread].hits
        hit_bytes += world.threads[thread].hit_bytes
    if (u32_load_relaxed(&manager.marker) or stats.tasks or manager.wanted
            or manager.serving or manager.stopping):
        world_violate(world, violation, b"I61", b"an eviction task is left: marker %lld, tasks %lld, wanted "
                      b"%lld", u32_load_relaxed(&manager.marker), stats.tasks, manager.wanted)
        return False
    if not manager_check_goals(at, violation):
        return False
    if (manager_frees(world) and stats.size > i64_load_relaxed(&manager.threshold)
            and stats.size > i64_load_relaxed(&manager.low_mark)):
        world_violate(world, violation, b"I63", b"the size is %lld, above the threshold of %lld, and nobody "
                      b"is about to evict", stats.size, i64_load_relaxed(&manager.threshold), 0)
        return False
    if not manager_check_marks(at, &stats, violation):
        return False
    return (world_equal(world, violation, b"I42", b"the manager's size, against the sizes of its caches",
                        stats.size, size)
            and world_equal(world, violation, b"I45", b"entries that the manager counted as put",
                            stats.inserted_entries, put)
            and world_equal(world, violation, b"I45", b"bytes that the manager counted as put",
                            stats.inserted_bytes, put_bytes)
            and world_equal(world, violation, b"CM-7", b"entries counted as hits", stats.hits, hits)
            and world_equal(world, violation, b"CM-7", b"bytes counted as hits", stats.hit_bytes, hit_bytes)
            and world_equal(world, violation, b"CM-7", b"entries counted as misses", stats.misses,
                            i64_load_relaxed(&at.missed))
            and world_equal(world, violation, b"CM-7", b"bytes counted as misses", stats.miss_bytes,
                            i64_load_relaxed(&at.missed_bytes)))


cdef inline void manager_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef ManagerWorld* at = <ManagerWorld*>instance
    cdef Removed before, passed
    if u32_load_relaxed(&at.world.broken) or not manager_check_books(at, violation):
        return
    manager_tell_world(at)
    before = manager_passed(at.world)
    world_check(at.world, violation)
    if violation.found:
        return
    # The check's own passes do not go through the manager.
    passed = manager_passed(at.world)
    passed.entries -= before.entries
    passed.bytes -= before.bytes
    cache_manager_removed(&at.manager, passed)
    world_equal(at.world, violation, b"I43", b"the manager's size after everything was removed",
                i64_load_relaxed(&at.manager.size), 0)


cdef inline Removed manager_passed(const CacheWorld* world) noexcept nogil:
    cdef Removed passed
    cdef int32_t thread
    passed.entries = 0
    passed.bytes = 0
    for thread in range(world.n_threads):
        passed.entries += world.threads[thread].passed_entries
        passed.bytes += world.threads[thread].passed_bytes
    return passed


cdef inline void manager_destroy(void* instance) noexcept nogil:
    cdef ManagerWorld* at = <ManagerWorld*>instance
    if not u32_load_relaxed(&at.world.broken):
        manager_tell_world(at)
    world_destroy(at.world)
    cache_manager_destroy(&at.manager)
    release(at)


# The table ----------------------------------------------------------------------------------------

cdef inline void cache_manager_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"cache_manager", b"The books, the trigger and the passes over one to three caches.",
                manager_create, manager_apply, manager_check, manager_destroy)
    world_table(table, 1)
    table_setting(table, b"max_size", 0, 4096)
    table_setting(table, b"watermark", 10, 100)
    table_operation(table, MANAGER_TICK, b"tick", 6, 0)
    table_operation(table, MANAGER_TRIGGER, b"trigger", 4, 0)
    table_operation(table, MANAGER_EVICT, b"evict", 4, 0)
    operation = table_operation(table, MANAGER_FREE, b"free", 4, 0)
    operation_argument(operation, b"bytes", 1, 200)
    operation = table_operation(table, MANAGER_CONFIGURE, b"configure", 3, 0)
    operation_argument(operation, b"max_size", 0, 4096)
    operation_argument(operation, b"watermark", 10, 100)
    operation_argument(operation, b"ticks", 0, 1000)
    operation = table_operation(table, MANAGER_POLICY, b"configure_policy", 2, 0)
    operation_argument(operation, b"max_requeue", 0, 5)
    operation_argument(operation, b"extend", 0, 1)
    table_operation(table, MANAGER_STATS, b"stats", 16, 0)
    operation = table_operation(table, MANAGER_SERVE, b"serve", 0, 0)
    operation_argument(operation, b"cache", 0, 2)
    operation_argument(operation, b"key", 0, 127)
    operation_argument(operation, b"puts", 0, 16)
    table_operation(table, MANAGER_SERVES, b"serves", 2, 0)
    operation = table_operation(table, MANAGER_MISS, b"miss", 4, 0)
    operation_argument(operation, b"entries", 1, 64)
    operation_argument(operation, b"bytes", 0, 4096)
    table_operation(table, MANAGER_FORK, b"fork", 1, 0)
    table_operation(table, MANAGER_MISBOOK, b"misbook", 0, 0)
    table_operation(table, MANAGER_LEAVE_MARKED, b"leave_marked", 0, 0)
