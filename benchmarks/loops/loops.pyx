"""The measured loops: native, without the GIL, each returning nanoseconds.

Those of one cache count the processor time of their thread.

A loop touches only public functions of the structures, so that it costs what a caller pays.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset
from posix.time cimport CLOCK_THREAD_CPUTIME_ID, clock_gettime, timespec

from pulsar_ml.structures.entry cimport (
    Entry, EntryChain, EntryPool, Payload, entry_at, entry_chain, entry_copy, entry_copy_chained,
    entry_give_chain, entry_new, entry_payload, entry_pool_destroy, entry_pool_init,
    entry_pool_keep_payloads, entry_release, entry_release_chained, entry_retain, payload_bytes,
    payload_new, payload_retain, read_count_maybe_new,
)
from pulsar_ml.structures.entry_wrapper cimport (
    EntryWrapper, wrapper_at, wrapper_clear, wrapper_fill, wrapper_read, wrapper_recycle,
    wrapper_unchanged,
)
from pulsar_ml.structures.map_pages cimport (
    MapBranch, MapMemory, MapPage, map_memory_destroy, map_memory_init,
)
from pulsar_ml.structures.mpsc_queue cimport (
    MpscQueue, mpsc_destroy, mpsc_init, mpsc_offer, mpsc_peek, mpsc_poll,
)
from pulsar_ml.structures.object_pool cimport (
    Pool, PoolChain, pool_chain, pool_destroy, pool_give, pool_give_all, pool_init, pool_take,
)
from pulsar_ml.structures.eviction_policy cimport (
    EvictionPolicy, eviction_destroy, eviction_init, eviction_run,
)
from pulsar_ml.structures.payload cimport payload_release_chained
from pulsar_ml.structures.payload_memory cimport (
    KEPT_PAYLOAD_BYTES, BlockChain, PayloadMemory, payload_memory_destroy, payload_memory_give,
    payload_memory_give_all, payload_memory_init, payload_memory_take,
)
from pulsar_ml.structures.policy_pass cimport (
    EvictionPass, PolicySettings, size_pass, time_pass,
)
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.position_map cimport (
    MapCursor, MapNear, PositionMap, map_cursor, map_destroy, map_find, map_init, map_leave_near,
    map_next, map_put_if_absent, map_remove, map_remove_near,
)
from pulsar_ml.structures.range_cache cimport (
    CacheMemory, RangeCache, cache_memory_destroy, cache_memory_init, range_cache_cursor,
    range_cache_delete, range_cache_get, range_cache_new, range_cache_next, range_cache_put,
    range_cache_remove,
)
from pulsar_ml.structures.read_count cimport (
    read_count_increment, read_count_mark_read, read_count_new, read_count_pool_init,
)
from pulsar_ml.structures.refcount cimport refcount_publish, refcount_release, refcount_retain
from pulsar_ml.structures.stamped_lock cimport (
    stamped_lock_write, stamped_optimistic, stamped_unlock_write, stamped_validate,
)
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport (
    i32_fetch_add_release, i32_load_acquire, i32_store_release, i64_fetch_sub_relaxed, pml_i32,
    pml_i64, pml_u32, u32_load_relaxed,
)
from pulsar_ml.sync.clock cimport monotonic_ns
from pulsar_ml.sync.memory cimport allocate, release
from pulsar_ml.sync.wait cimport spin

cdef enum:
    CHUNK_BITS = 12
    MOST = 1 << 28
    LEDGER = 7
    BATCH = 100             # entries of a storage read, which are inserted together


# Processor time of this thread: what others do on the machine does not count.
cdef inline int64_t thread_ns() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
    return <int64_t>now.tv_sec * 1000000000 + now.tv_nsec


# `count` ids below span at random, or NULL: drawn before a loop is measured, because a generator's
# state may wait in memory for the exchanges of a hit. xorshift64 (Marsaglia, 2003).
cdef uint32_t* drawn_ids(int64_t count, int64_t span, uint64_t seed) noexcept nogil:
    cdef uint32_t* ids = <uint32_t*>allocate(<size_t>count * sizeof(uint32_t))
    cdef uint64_t x = <uint64_t>88172645463325252 + seed
    cdef int64_t i
    if ids is not NULL:
        for i in range(count):
            x ^= x << 13
            x ^= x >> 7
            x ^= x << 17
            ids[i] = <uint32_t>((x >> 32) * <uint64_t>span >> 32)
    return ids


# The start of a measurement on several threads.
cdef class Gate:
    cdef pml_i32 waiting
    cdef int32_t threads

    def __init__(self, int threads):
        self.threads = threads

    cdef void enter(self) noexcept nogil:
        cdef uint32_t turn = 0
        i32_fetch_add_release(&self.waiting, 1)
        while i32_load_acquire(&self.waiting) < self.threads:
            turn = spin(turn)


cdef class World:
    """One manager's memory, eviction policy and range cache, driven natively."""

    cdef CacheMemory memory
    cdef EvictionPolicy policy
    cdef RangeCache* cache
    cdef pml_i32 stop

    def __init__(self, int32_t max_requeue_count=5, int kind=0):
        if (cache_memory_init(&self.memory, CHUNK_BITS, MOST) != PML_OK
                or entry_pool_keep_payloads(&self.memory.entries, KEPT_PAYLOAD_BYTES) != PML_OK
                or eviction_init(&self.policy, kind, &self.memory, CHUNK_BITS,
                                 PolicySettings(max_requeue_count, False, INT64_MAX)) != PML_OK):
            raise MemoryError
        self.cache = range_cache_new(&self.memory, &self.policy.base.intake)

    def __dealloc__(self):
        cdef EvictionPass run = time_pass(INT64_MAX, 0)
        with nogil:
            self.remove_all()
            eviction_run(&self.policy, &run, INT64_MAX)
            range_cache_delete(self.cache)
            eviction_destroy(&self.policy)
            cache_memory_destroy(&self.memory)

    cdef int64_t remove_all(self) noexcept nogil:
        cdef MapCursor cursor = range_cache_cursor(position(0, 0), position(INT64_MAX, INT64_MAX))
        cdef int64_t start = thread_ns()
        range_cache_remove(self.cache, &cursor, INT64_MAX)
        return thread_ns() - start

    cdef bint put_one(
        self, int64_t ledger, int64_t entry_id, uint32_t length, int64_t now, int32_t expected
    ) noexcept nogil:
        cdef Payload* payload = payload_new(&self.memory.entries.payloads, length)
        cdef uint32_t entry
        cdef uint32_t read_count
        memset(payload_bytes(payload), 1, length)
        read_count_maybe_new(&self.memory.entries, expected, &read_count)
        entry = entry_new(&self.memory.entries, position(ledger, entry_id), payload, read_count, False)
        if range_cache_put(self.cache, position(ledger, entry_id), entry, length, now) == PML_OK:
            return True
        entry_release(&self.memory.entries, entry, 1)
        return False

    def put(self, int64_t count, uint32_t length, int32_t expected=0) -> int:
        """Insert ids 0..count-1, payload allocated and filled; the clock is read once for 100."""
        cdef int64_t start, i, now = 0
        with nogil:
            start = thread_ns()
            for i in range(count):
                if i % BATCH == 0:
                    now = monotonic_ns()
                self.put_one(LEDGER, i, length, now, expected)
            start = thread_ns() - start
        return start

    def get(self, int64_t count, int64_t span, int64_t at, bint shuffled, Gate gate) -> int:
        """Point reads of ids below span, in order from `at` or at random, each released.

        A gate of one thread counts processor time; behind others the clock's time counts.
        """
        cdef int64_t start, i
        cdef uint32_t entry
        cdef uint32_t* drawn = drawn_ids(count, span, <uint64_t>at) if shuffled else NULL
        if shuffled and drawn is NULL:
            raise MemoryError
        with nogil:
            gate.enter()
            start = monotonic_ns() if gate.threads > 1 else thread_ns()
            for i in range(count):
                if shuffled:
                    at = drawn[i]
                elif at + 1 < span:
                    at += 1
                else:
                    at = 0
                entry = range_cache_get(self.cache, position(LEDGER, at))
                if entry:
                    entry_release(&self.memory.entries, entry, 1)
            start = (monotonic_ns() if gate.threads > 1 else thread_ns()) - start
            release(drawn)
        return start

    def known(self, int64_t count, int64_t span, bint shuffled) -> int:
        """References of ids below span taken and given back, by handles that the caller has.

        This is get() without the search: what is left is the two exchanges on each entry's line.
        """
        cdef int64_t start, i, at = 0
        cdef uint32_t* entries = <uint32_t*>allocate(<size_t>span * sizeof(uint32_t))
        cdef uint32_t* drawn = drawn_ids(count, span, 0) if shuffled else NULL
        if entries is NULL or (shuffled and drawn is NULL):
            raise MemoryError
        with nogil:
            for i in range(span):
                entries[i] = range_cache_get(self.cache, position(LEDGER, i))
                entry_release(&self.memory.entries, entries[i], 1)
            start = thread_ns()
            for i in range(count):
                if shuffled:
                    at = drawn[i]
                else:
                    at = at + 1 if at + 1 < span else 0
                entry_retain(&self.memory.entries, entries[at])
                entry_release(&self.memory.entries, entries[at], 1)
            start = thread_ns() - start
            release(drawn)
            release(entries)
        return start

    def miss(self, int64_t count) -> int:
        """Point reads of another ledger."""
        cdef int64_t start, i
        with nogil:
            start = thread_ns()
            for i in range(count):
                range_cache_get(self.cache, position(LEDGER + 1, i))
            start = thread_ns() - start
        return start

    def dispatch(self, int64_t count, int64_t span) -> int:
        """A hit, a dispatch copy of it, and both released.

        The loop keeps the places of released copies for the next ones, as a thread's recycler does
        in the releases.
        """
        cdef int64_t start, i, at = 0
        cdef uint32_t entry, copy
        cdef EntryChain chain = entry_chain()
        with nogil:
            start = thread_ns()
            for i in range(count):
                at = at + 1 if at + 1 < span else 0
                entry = range_cache_get(self.cache, position(LEDGER, at))
                copy = entry_copy_chained(&self.memory.entries, entry, True, &chain)
                entry_release(&self.memory.entries, entry, 1)
                entry_release_chained(&self.memory.entries, copy, 1, &chain)
            entry_give_chain(&self.memory.entries, &chain)
            start = thread_ns() - start
        return start

    def get_range(self, int64_t count, int64_t width) -> int:
        """Range reads of `width` ids over 0..count-1, each entry released."""
        cdef int64_t start, first
        cdef uint32_t[256] held
        cdef int n
        cdef MapCursor cursor
        with nogil:
            start = thread_ns()
            first = 0
            while first < count:
                cursor = range_cache_cursor(position(LEDGER, first), position(LEDGER, first + width - 1))
                n = 0
                while True:
                    held[n] = range_cache_next(self.cache, &cursor)
                    if not held[n]:
                        break
                    n += 1
                while n:
                    n -= 1
                    entry_release(&self.memory.entries, held[n], 1)
                first += width
            start = thread_ns() - start
        return start

    def remove_range(self) -> int:
        cdef int64_t spent
        cdef EvictionPass run = time_pass(INT64_MAX, 0)
        with nogil:
            spent = self.remove_all()
            eviction_run(&self.policy, &run, INT64_MAX)
        return spent

    def evict(self, bint by_time) -> int:
        """One time pass or size pass over everything."""
        cdef EvictionPass run = time_pass(INT64_MAX, 0) if by_time else size_pass(INT64_MAX, 0)
        cdef int64_t start
        with nogil:
            start = thread_ns()
            eviction_run(&self.policy, &run, INT64_MAX)
            start = thread_ns() - start
        return start

    def stages(self, int64_t count) -> list[int]:
        """Evicts ids 0..count-1, stage by stage for groups of a hundred.

        Returns the nanoseconds of the wrappers' locks, the unlinking, the release of the entries,
        the freeing of their bytes, and the wrappers' way from the queue to their pool.
        """
        cdef uint32_t[BATCH] handles
        cdef uint32_t[BATCH] entries
        cdef (Payload*)[BATCH] payloads
        cdef int64_t[5] spent
        cdef int64_t group, first, start
        cdef MapNear near = MapNear(0, 0)
        cdef EntryChain released = entry_chain()
        cdef BlockChain freed = BlockChain(NULL, NULL, 0, 0)
        cdef PoolChain dropped = PoolChain(0, 0)
        cdef EntryPool* pool = &self.memory.entries
        cdef MpscQueue* queue = &self.policy.base.intake.queue
        cdef EntryWrapper* wrapper
        cdef int i
        memset(spent, 0, sizeof(spent))
        with nogil:
            for group in range(count // BATCH):
                first = group * BATCH
                for i in range(BATCH):
                    handles[i] = map_find(&self.cache.map, position(LEDGER, first + i))
                    entries[i] = u32_load_relaxed(&wrapper_at(&self.memory.wrappers, handles[i]).value)
                    payloads[i] = entry_payload(entry_at(pool, entries[i]))
                    payload_retain(payloads[i])
                start = monotonic_ns()
                for i in range(BATCH):
                    stamped_lock_write(&wrapper_at(&self.memory.wrappers, handles[i]).lock)
                spent[0] += monotonic_ns() - start
                start = monotonic_ns()
                for i in range(BATCH):
                    wrapper = wrapper_at(&self.memory.wrappers, handles[i])
                    map_remove_near(&self.cache.map, position(LEDGER, first + i), handles[i], &near)
                    i64_fetch_sub_relaxed(&self.cache.size, wrapper_clear(
                        wrapper, u32_load_relaxed(&wrapper.place), entries[i]))
                map_leave_near(&self.memory.map, &near)
                spent[1] += monotonic_ns() - start
                start = monotonic_ns()
                for i in range(BATCH):
                    entry_retain(pool, entries[i])
                    entry_release_chained(pool, entries[i], 2, &released)
                entry_give_chain(pool, &released)
                spent[2] += monotonic_ns() - start
                start = monotonic_ns()
                for i in range(BATCH):
                    payload_release_chained(&pool.payloads, payloads[i], &freed)
                payload_memory_give_all(&pool.payloads, &freed)
                spent[3] += monotonic_ns() - start
                start = monotonic_ns()
                for i in range(BATCH):
                    stamped_unlock_write(&wrapper_at(&self.memory.wrappers, handles[i]).lock)
                spent[0] += monotonic_ns() - start
                start = monotonic_ns()
                for i in range(BATCH):
                    mpsc_peek(queue)
                    mpsc_poll(queue)
                    wrapper = wrapper_at(&self.memory.wrappers, handles[i])
                    pool_chain(&dropped, handles[i], &wrapper.timestamp)
                pool_give_all(&self.memory.wrappers, &dropped)
                spent[4] += monotonic_ns() - start
        return [spent[i] for i in range(5)]

    def churn(self, Gate gate, uint32_t length) -> int:
        """Insert in another ledger and evict in passes of 4,096 until end() is called.

        Entries with expected reads stay: each pass requeues them. Returns the number inserted.
        """
        cdef int64_t i = 0
        cdef EvictionPass run
        with nogil:
            gate.enter()
            while not i32_load_acquire(&self.stop):
                self.put_one(LEDGER + 2, i, length, 0, 0)
                i += 1
                if i % 4096 == 0:
                    run = size_pass(4096 * <int64_t>length, 0)
                    eviction_run(&self.policy, &run, INT64_MAX)
        return i

    def end(self) -> None:
        i32_store_release(&self.stop, 1)


cdef class Bare:
    """A class whose methods do nothing: the floor of a call from Python."""

    def nothing(self) -> int:
        return 0

    def one(self, argument) -> int:
        return 0

    def two(self, first, second, *, third=None) -> int:
        return 0


def sizes() -> dict:
    """Bytes of the native objects that a cached entry needs a share of."""
    return {"entry": sizeof(Entry), "wrapper": sizeof(EntryWrapper), "page": sizeof(MapPage),
            "branch": sizeof(MapBranch), "queue slot": sizeof(uint32_t), "payload header": sizeof(Payload)}


# Single structures -------------------------------------------------------------------------------

include "small_structures.pxi"


cdef class Map:
    """A position map filled with ids 0..count-1."""

    cdef MapMemory memory
    cdef PositionMap map
    cdef int64_t count

    def __init__(self, int64_t count):
        map_memory_init(&self.memory, CHUNK_BITS, MOST)
        map_init(&self.map, &self.memory)
        self.count = count

    def __dealloc__(self):
        map_destroy(&self.map)
        map_memory_destroy(&self.memory)

    def put(self) -> int:
        cdef int64_t start, i
        cdef uint32_t place
        with nogil:
            start = monotonic_ns()
            for i in range(self.count):
                map_put_if_absent(&self.map, position(LEDGER, i), <uint32_t>i + 1, &place)
            start = monotonic_ns() - start
        return start

    def find(self) -> int:
        cdef int64_t start, i, found = 0
        with nogil:
            start = monotonic_ns()
            for i in range(self.count):
                found += map_find(&self.map, position(LEDGER, i)) != 0
            start = monotonic_ns() - start
        if found != self.count:
            raise AssertionError(f"{found} of {self.count} positions found")
        return start

    def walk(self) -> int:
        cdef int64_t start
        cdef Position found
        cdef MapCursor cursor = map_cursor(position(0, 0), position(INT64_MAX, 0))
        with nogil:
            start = monotonic_ns()
            while map_next(&self.map, &cursor, &found):
                pass
            start = monotonic_ns() - start
        return start

    def remove(self) -> int:
        cdef int64_t start, i
        with nogil:
            start = monotonic_ns()
            for i in range(self.count):
                map_remove(&self.map, position(LEDGER, i), <uint32_t>i + 1)
            start = monotonic_ns() - start
        return start
