# The thread of a cache manager: the periodic task at its interval, and tasks of the trigger at
# once.
#
# Origin       The single eviction thread of ManagedLedgerFactoryImpl (Pulsar 4.1). Triggered tasks
#              wake it; they do not delay its ticks.
# Threads      start, stop: any thread. The body: the thread alone.
# Invariants   ET-1 (I62) a task that was submitted is run, also by a thread that is stopping.
#              ET-2 (I64) a tick begins at most an interval and one task after the tick before.
#              ET-3 after stop no thread of the manager exists, and each task runs in the thread
#              that triggers it.
# Ordering     By the condition's mutex and by joining.
# Reclamation  stop joins.
# Not promised A child of fork has no such thread; see eviction_thread_forget.

from libc.stdint cimport int64_t

from pulsar_ml.structures.cache_manager cimport (
    CacheManager, cache_manager_look, cache_manager_task, cache_manager_tick,
)
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.status cimport PML_EXISTS, PML_NO_MEMORY, PML_OK, Status
from pulsar_ml.sync.atomics cimport i32_store_relaxed, i64_load_relaxed, u32_store_relaxed
from pulsar_ml.sync.clock cimport monotonic_ns
from pulsar_ml.sync.thread cimport (
    condition_enter, condition_init, condition_leave, condition_notify, condition_wait, thread_join,
    thread_start,
)


cdef inline int64_t eviction_now(const CacheManager* manager) noexcept nogil:
    return manager.clock(manager.clock_context) if manager.clock is not NULL else monotonic_ns()


cdef inline void* eviction_body(void* argument) noexcept nogil:
    cdef CacheManager* manager = <CacheManager*>argument
    cdef int64_t last = monotonic_ns()
    cdef int64_t left
    condition_enter(&manager.work)
    while True:
        left = last + i64_load_relaxed(&manager.interval) - monotonic_ns()
        if manager.wanted:
            manager.wanted = False
            condition_leave(&manager.work)
            cache_manager_task(manager, False, eviction_now(manager))
            condition_enter(&manager.work)
        if manager.stopping and not manager.wanted:
            break
        if left <= 0:
            condition_leave(&manager.work)
            last = monotonic_ns()
            cache_manager_tick(manager, eviction_now(manager))
            condition_enter(&manager.work)
        elif not manager.wanted:
            condition_wait(&manager.work, left)
    condition_leave(&manager.work)
    return NULL


# PML_EXISTS: it runs already, or another thread is stopping it. PML_NO_MEMORY: the system has none
# to give. Under the lock until the thread is there: who stops it joins it.
cdef inline Status eviction_thread_start(CacheManager* manager) noexcept nogil:
    cdef Status status = PML_EXISTS
    condition_enter(&manager.work)
    if not manager.serving and not manager.stopping:
        manager.serving = thread_start(&manager.thread, eviction_body, manager) == 0
        status = PML_OK if manager.serving else PML_NO_MEMORY
    condition_leave(&manager.work)
    return status


# Waits until the thread has run its task and has ended; False when there was none. A pass
# that is under way ends early.
cdef inline bint eviction_thread_stop(CacheManager* manager) noexcept nogil:
    cdef bint served
    condition_enter(&manager.work)
    served = manager.serving
    manager.serving = False     # from here a trigger runs its task itself
    if served:
        manager.stopping = True
    condition_notify(&manager.work)
    condition_leave(&manager.work)
    if served:
        u32_store_relaxed(&manager.ending, 1)
        thread_join(&manager.thread)
        u32_store_relaxed(&manager.ending, 0)
        condition_enter(&manager.work)
        manager.stopping = False
        condition_leave(&manager.work)
        # For a task of another thread that ended early with this one.
        cache_manager_look(manager, eviction_now(manager))
    return served


cdef inline bint eviction_thread_serves(CacheManager* manager) noexcept nogil:
    cdef bint serves
    condition_enter(&manager.work)
    serves = manager.serving
    condition_leave(&manager.work)
    return serves


# Around a fork: between the two the thread is outside every pass and holds no lock, for it would
# never give it back in the child.
cdef inline void eviction_thread_hold(CacheManager* manager) noexcept nogil:
    monitor_enter(&manager.monitor)
    condition_enter(&manager.work)


cdef inline void eviction_thread_go_on(CacheManager* manager) noexcept nogil:
    condition_leave(&manager.work)
    monitor_leave(&manager.monitor)


# In the child instead: there is no thread any more, and what it was given is nobody's.
cdef inline void eviction_thread_forget(CacheManager* manager) noexcept nogil:
    manager.serving = False
    manager.wanted = False
    u32_store_relaxed(&manager.marker, 0)
    i32_store_relaxed(&manager.tasks, 0)
    # Anew: the condition counts the parent's thread as waiting, and to destroy it would wait for
    # that. It cannot fail: POSIX lets it fail without memory, and these need none.
    condition_init(&manager.work)
    monitor_leave(&manager.monitor)
