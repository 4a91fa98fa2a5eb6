# Walks over a range of a cache: entries, or their descriptions.

from collections import namedtuple


# A walk over [first, last] of an open cache.
cdef MapCursor to_walk(RangeCache cache, object first, object last) except *:
    cache.check_open()
    cdef NativePosition low = to_position(first, "first")
    cdef NativePosition high = to_position(last, "last")
    check_range(low, high)
    return range_cache_cursor(low, high)


# Begins a call of __next__. One of another thread is refused, and so is one inside the other.
cdef int enter_iterator(pml_u32* busy) except -1:
    if u32_exchange_acquire(busy, 1):
        raise UsageError("this iterator is in use by another call; use one for each thread")
    return 0


@cython.final
@cython.internal
@cython.no_gc_clear
cdef class RangeIterator:
    # Fetches entries in groups without the GIL; gives back what was not handed out. The collector
    # may not take the cache away before the last handles go back.
    cdef RangeCache cache
    cdef MapCursor cursor
    cdef uint32_t[GATHER] handles
    cdef int next_handle, end_handle
    cdef pml_u32 busy           # 1 during a call of __next__
    cdef bint ended
    cdef int64_t delivered      # bytes handed out of the present group

    cdef void count(self) noexcept:
        # The iterator hands out the entries that the read found.
        if self.next_handle:
            cache_manager_hit(self.cache.owner.manager, own_stripe(), self.next_handle, self.delivered)
        self.delivered = 0

    def __dealloc__(self):
        self.count()
        while self.next_handle < self.end_handle:
            give_reference_back(self.cache.owner.memory, self.handles[self.next_handle])
            self.next_handle += 1

    def __iter__(self):
        return self

    def __next__(self):
        enter_iterator(&self.busy)
        try:
            return self.following()
        finally:
            u32_store_release(&self.busy, 0)

    cdef Entry following(self):
        cdef uint32_t handle
        if self.next_handle == self.end_handle:
            self.count()
            self.next_handle = self.end_handle = 0
            if self.ended:
                raise StopIteration
            with nogil:
                native_enter()
                while self.end_handle < GATHER:
                    handle = cache_manager_next(self.cache.owner.manager, self.cache.native, &self.cursor)
                    if not handle:
                        break
                    self.handles[self.end_handle] = handle
                    self.end_handle += 1
                native_leave()
            self.ended = self.end_handle < GATHER
            if self.end_handle == 0:
                raise StopIteration
        handle = self.handles[self.next_handle]
        entry = wrap_entry(&self.cache.shares.native, handle)
        self.delivered += entry_length(&self.cache.owner.memory.entries, handle)
        self.next_handle += 1
        return entry


CachedEntry = namedtuple(
    "CachedEntry", ("position", "size", "timestamp_ns", "requeue_count", "accessed", "expected_reads"))
CachedEntry.__doc__ = """A cached entry as eviction sees it.

Its bytes, its age for time passes, how often a pass kept it, whether it was read since then, and
the reads that are still expected.
"""
CachedEntry.__module__ = "pulsar_ml._core"


@cython.final
@cython.internal
@cython.no_gc_clear
cdef class CachedIterator:
    # Fetches descriptions in groups without the GIL.
    cdef RangeCache cache
    cdef MapCursor cursor
    cdef object group           # an iterator over those that were fetched
    cdef pml_u32 busy           # 1 during a call of __next__
    cdef bint ended

    def __cinit__(self):
        self.group = iter(())

    def __iter__(self):
        return self

    def __next__(self):
        enter_iterator(&self.busy)
        try:
            for description in self.group:
                return description
            if self.ended:
                raise StopIteration
            self.group = iter(self.fetch())
            return next(self.group)
        finally:
            u32_store_release(&self.busy, 0)

    cdef list fetch(self):
        cdef CachedState[GATHER] states
        cdef int count = 0, i
        with nogil:
            native_enter()
            while count < GATHER and range_cache_look(self.cache.native, &self.cursor, &states[count]):
                count += 1
            native_leave()
        self.ended = count < GATHER
        return [
            CachedEntry(
                new_position(states[i].key), states[i].length, states[i].timestamp, states[i].requeues,
                bool(states[i].accessed), states[i].expected_reads)
            for i in range(count)
        ]
