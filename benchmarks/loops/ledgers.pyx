"""One eviction policy over many ledgers, driven natively."""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t
from libc.string cimport memset

from pulsar_ml.structures.entry cimport (
    Payload, entry_new, entry_pool_keep_payloads, payload_bytes, payload_new, read_count_maybe_new,
)
from pulsar_ml.structures.eviction_policy cimport (
    EvictionPolicy, eviction_destroy, eviction_init, eviction_run,
)
from pulsar_ml.structures.payload_memory cimport KEPT_PAYLOAD_BYTES
from pulsar_ml.structures.policy_pass cimport (
    EvictionPass, PolicySettings, size_pass, time_pass,
)
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.position_map cimport MapCursor
from pulsar_ml.structures.range_cache cimport (
    CacheMemory, RangeCache, cache_memory_destroy, cache_memory_init, range_cache_cursor,
    range_cache_delete, range_cache_new, range_cache_put, range_cache_remove,
)
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.clock cimport monotonic_ns
from pulsar_ml.sync.memory cimport allocate_zeroed, release

cdef enum:
    CHUNK_BITS = 12
    MOST = 1 << 28
    LEDGER = 7


cdef class Ledgers:
    """Ledgers whose entries take turns; time is the number of the put."""

    cdef CacheMemory memory
    cdef EvictionPolicy policy
    cdef RangeCache** caches
    cdef int64_t n_ledgers
    cdef int64_t put_so_far

    def __init__(self, int kind, int64_t ledgers, int32_t max_requeue_count=5, int64_t life=0):
        cdef int64_t i
        if (cache_memory_init(&self.memory, CHUNK_BITS, MOST) != PML_OK
                or entry_pool_keep_payloads(&self.memory.entries, KEPT_PAYLOAD_BYTES) != PML_OK
                or eviction_init(&self.policy, kind, &self.memory, CHUNK_BITS,
                                 PolicySettings(max_requeue_count, False, life)) != PML_OK):
            raise MemoryError
        self.caches = <RangeCache**>allocate_zeroed(ledgers, sizeof(RangeCache*))
        self.n_ledgers = ledgers
        for i in range(ledgers):
            self.caches[i] = range_cache_new(&self.memory, &self.policy.base.intake)

    def __dealloc__(self):
        cdef MapCursor cursor
        cdef int64_t i
        with nogil:
            for i in range(self.n_ledgers):
                cursor = range_cache_cursor(position(0, 0), position(INT64_MAX, INT64_MAX))
                range_cache_remove(self.caches[i], &cursor, INT64_MAX)
                range_cache_delete(self.caches[i])
            release(self.caches)
            eviction_destroy(&self.policy)
            cache_memory_destroy(&self.memory)

    def put(self, int64_t count, uint32_t length, int32_t expected=0) -> int:
        """Insert entries, one for each ledger in turn."""
        cdef int64_t start
        with nogil:
            start = monotonic_ns()
            self.put_all(count, length, expected)
            start = monotonic_ns() - start
        return start

    cdef void put_all(self, int64_t count, uint32_t length, int32_t expected) noexcept nogil:
        cdef Position at
        cdef Payload* payload
        cdef uint32_t entry, read_count
        cdef int64_t i
        for i in range(count):
            at = position(LEDGER, self.put_so_far // self.n_ledgers)
            payload = payload_new(&self.memory.entries.payloads, length)
            memset(payload_bytes(payload), 1, length)
            read_count_maybe_new(&self.memory.entries, expected, &read_count)
            entry = entry_new(&self.memory.entries, at, payload, read_count, False)
            range_cache_put(self.caches[self.put_so_far % self.n_ledgers], at, entry, length,
                            self.put_so_far)
            self.put_so_far += 1

    def evict(self, int64_t passes, int64_t batch, uint32_t length, bint by_time) -> tuple:
        """Passes that ask for the oldest `batch` entries each; nanoseconds and entries removed."""
        cdef int64_t start, i, removed = 0
        cdef EvictionPass run
        with nogil:
            start = monotonic_ns()
            for i in range(passes):
                run = (time_pass((i + 1) * batch, self.put_so_far) if by_time
                       else size_pass(batch * length, self.put_so_far))
                eviction_run(&self.policy, &run, INT64_MAX)
                removed += run.removed.entries
            start = monotonic_ns() - start
        return start, removed

    def turn_over(self, int64_t rounds, int64_t batch, uint32_t length, int32_t expected) -> tuple:
        """Insert a batch, free as many bytes; nanoseconds and entries removed."""
        cdef int64_t start, i, removed = 0
        cdef EvictionPass run
        with nogil:
            start = monotonic_ns()
            for i in range(rounds):
                self.put_all(batch, length, expected)
                run = size_pass(batch * length, self.put_so_far)
                eviction_run(&self.policy, &run, INT64_MAX)
                removed += run.removed.entries
            start = monotonic_ns() - start
        return start, removed
