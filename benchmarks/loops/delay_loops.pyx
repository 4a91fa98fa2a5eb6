"""Loops over the delayed trackers, in native code without the GIL."""

from libc.stdint cimport INT64_MAX, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from posix.time cimport CLOCK_THREAD_CPUTIME_ID, clock_gettime, timespec

from pulsar_ml.structures.delay_bucket cimport bucket_pool_init
from pulsar_ml.structures.delayed_manager cimport (
    delayed_manager_bytes, delayed_view_add, delayed_view_scheduled,
)
from pulsar_ml.structures.delayed_tracker cimport (
    DelayedTracker, delayed_tracker_add, delayed_tracker_bytes, delayed_tracker_destroy, delayed_tracker_init,
    delayed_tracker_scheduled,
)
from pulsar_ml.structures.delayed_views cimport (
    DelayedFactory, DelayedSettings, DelayedView, delayed_factory_destroy, delayed_factory_init,
    delayed_view_close, delayed_view_free, delayed_view_open,
)
from pulsar_ml.structures.object_pool cimport Pool, pool_destroy
from pulsar_ml.structures.position cimport Position, position

cdef enum:
    TICK = 1000
    SPREAD = 3600000        # delivery times over an hour
    BATCH = 4096
    ENTRIES = 50000         # of a ledger


# What the process has from malloc, in the heap and mapped.
cdef extern from "malloc.h" nogil:
    ctypedef struct Allocated "struct mallinfo2":
        size_t uordblks
        size_t hblkhd
    Allocated mallinfo2()


cdef inline int64_t allocated() noexcept nogil:
    cdef Allocated now = mallinfo2()
    return <int64_t>(now.uordblks + now.hblkhd)


# What this thread had of a processor: others may be busy, too.
cdef inline int64_t processor_ns() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
    return <int64_t>now.tv_sec * 1000000000 + now.tv_nsec


cdef inline int64_t time_of(int64_t i) noexcept nogil:
    # Random delays, so that neighbours are in different buckets (multiplicative hashing, Knuth).
    return 2 * TICK + <int64_t>((<uint64_t>i * <uint64_t>0x9E3779B97F4A7C15) >> 33) % SPREAD


cdef inline Position position_of(int64_t i) noexcept nogil:
    return position(i // ENTRIES, i % ENTRIES)


cdef void trigger(void* context, int64_t argument) noexcept nogil:
    pass


def manager(int64_t messages, int64_t subscriptions, int64_t draining):
    """Adds the messages of a topic through its views: each by one view, then by another one.

    Returns the bytes that the structure counts and those of malloc; the nanoseconds of adding all
    messages, and of adding them again; the messages that ``draining`` views drained, and the
    nanoseconds of that.
    """
    cdef DelayedFactory factory
    cdef DelayedView** views = <DelayedView**>calloc(<size_t>subscriptions, sizeof(DelayedView*))
    cdef Position* out = <Position*>calloc(BATCH, sizeof(Position))
    cdef int64_t before = allocated()
    cdef int64_t i, n, begin, added, again, drained, counted, reserved
    cdef int64_t total = 0
    with nogil:
        delayed_factory_init(&factory, DelayedSettings(TICK, False, 0, TICK, 0.5), trigger, NULL, 10, 1 << 20)
        for i in range(subscriptions):
            views[i] = delayed_view_open(&factory, 1, i, i)
        begin = processor_ns()
        for i in range(messages):
            delayed_view_add(views[i % subscriptions], position_of(i), time_of(i), 0)
        added = processor_ns() - begin
        counted = delayed_manager_bytes(views[0].manager) + subscriptions * <int64_t>sizeof(DelayedView)
        reserved = allocated() - before
        begin = processor_ns()
        for i in range(messages):
            delayed_view_add(views[(i + 1) % subscriptions], position_of(i), time_of(i), 0)
        again = processor_ns() - begin
        begin = processor_ns()
        for i in range(draining):
            n = BATCH
            while n == BATCH:
                n = delayed_view_scheduled(views[i], out, BATCH, INT64_MAX - 1)
                total += n
        drained = processor_ns() - begin
        for i in range(subscriptions):
            delayed_view_close(views[i])
        for i in range(subscriptions):
            delayed_view_free(views[i])
        delayed_factory_destroy(&factory)
    free(views)
    free(out)
    return counted, reserved, added, again, total, drained


def tracker(int64_t messages):
    """A tracker of a subscription: bytes counted and of malloc, ns to add, drained messages, ns."""
    cdef Pool pool
    cdef DelayedTracker each
    cdef Position* out = <Position*>calloc(BATCH, sizeof(Position))
    cdef int64_t before = allocated()
    cdef int64_t i, n, begin, added, drained, counted, reserved
    cdef int64_t total = 0
    with nogil:
        bucket_pool_init(&pool, 10, 1 << 20)
        delayed_tracker_init(&each, &pool, TICK, False, 0)
        begin = processor_ns()
        for i in range(messages):
            delayed_tracker_add(&each, position_of(i), time_of(i), 0)
        added = processor_ns() - begin
        counted = delayed_tracker_bytes(&each) + <int64_t>sizeof(DelayedTracker)
        reserved = allocated() - before
        begin = processor_ns()
        n = BATCH
        while n == BATCH:
            n = delayed_tracker_scheduled(&each, out, BATCH, INT64_MAX - 1)
            total += n
        drained = processor_ns() - begin
        delayed_tracker_destroy(&each)
        pool_destroy(&pool)
    free(out)
    return counted, reserved, added, total, drained
