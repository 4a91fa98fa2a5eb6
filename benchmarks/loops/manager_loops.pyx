"""Measured loops over a cache manager: native, without the GIL, each returning nanoseconds."""

from libc.stdint cimport INT64_MAX, int64_t, uint32_t
from libc.string cimport memset

from pulsar_ml._core cimport EntryCacheManager, NativeMemory, RangeCache as CacheObject
from pulsar_ml.structures.cache_manager cimport cache_manager_get, cache_manager_next, cache_manager_put
from pulsar_ml.structures.entry cimport (
    Payload, entry_new, entry_release, payload_bytes, payload_new, read_count_maybe_new,
)
from pulsar_ml.structures.position cimport position
from pulsar_ml.structures.position_map cimport MapCursor
from pulsar_ml.structures.range_cache cimport RangeCache, range_cache_cursor, range_cache_get
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.clock cimport monotonic_ns

cdef enum:
    LEDGER = 7


def put(CacheObject cache, int64_t first, int64_t count, uint32_t length, int expected=0) -> int:
    """Puts of consecutive new entries."""
    cdef NativeMemory owner = cache.owner
    cdef RangeCache* native = cache.native
    cdef int64_t start, i
    cdef uint32_t entry, read_count
    cdef Payload* payload
    with nogil:
        start = monotonic_ns()
        for i in range(first, first + count):
            payload = payload_new(&owner.memory.entries.payloads, length)
            memset(payload_bytes(payload), 1, length)
            read_count_maybe_new(&owner.memory.entries, expected, &read_count)
            entry = entry_new(&owner.memory.entries, position(LEDGER, i), payload, read_count, False)
            if cache_manager_put(owner.manager, native, position(LEDGER, i), entry, length, start) != PML_OK:
                entry_release(&owner.memory.entries, entry, 1)
        start = monotonic_ns() - start
    return start


def get(CacheObject cache, int64_t count, int64_t span, bint counted) -> int:
    """Nanoseconds of point reads in order, with or without the manager's counters of one stripe."""
    cdef NativeMemory owner = cache.owner
    cdef RangeCache* native = cache.native
    cdef int64_t start, i, at = 0
    cdef uint32_t entry
    with nogil:
        start = monotonic_ns()
        for i in range(count):
            at = at + 1 if at + 1 < span else 0
            if counted:
                entry = cache_manager_get(owner.manager, native, position(LEDGER, at), 0)
            else:
                entry = range_cache_get(native, position(LEDGER, at))
            if entry:
                entry_release(&owner.memory.entries, entry, 1)
        start = monotonic_ns() - start
    return start


def read_all(CacheObject cache) -> tuple[int, int]:
    """A read from the beginning to the end, entry by entry: entries found and nanoseconds."""
    cdef NativeMemory owner = cache.owner
    cdef RangeCache* native = cache.native
    cdef MapCursor cursor = range_cache_cursor(position(0, 0), position(INT64_MAX, INT64_MAX))
    cdef int64_t start, found = 0
    cdef uint32_t entry
    with nogil:
        start = monotonic_ns()
        while True:
            entry = cache_manager_next(owner.manager, native, &cursor)
            if not entry:
                break
            found += 1
            entry_release(&owner.memory.entries, entry, 1)
        start = monotonic_ns() - start
    return found, start
