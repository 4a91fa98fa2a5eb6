"""Measured loops of the cursor containers, native and without the GIL. Each returns begin and end.

Cursors begin within 100 entries of each other. An operation picks a cursor at random and moves it
forward by 1 to 99 entries; queries come now and then. Each thread moves its own cursors.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from pulsar_ml.structures.active_cursors cimport (
    ActiveCursors, ActiveMemory, active_cursors_add, active_cursors_destroy, active_cursors_init,
    active_cursors_rank, active_cursors_remove, active_cursors_slowest, active_cursors_update,
    active_memory_destroy, active_memory_init,
)
from pulsar_ml.structures.active_groups cimport ActiveCursor, CursorGroup
from pulsar_ml.structures.cursor_heap cimport (
    CursorHeap, HeapCursor, HeapPlace, SlowestChange, cursor_heap_add, cursor_heap_destroy, cursor_heap_init,
    cursor_heap_remove, cursor_heap_slowest, cursor_heap_update, heap_pool_init,
)
from pulsar_ml.structures.cursor_registry cimport tracked_at
from pulsar_ml.structures.object_pool cimport Pool, pool_destroy
from pulsar_ml.structures.position cimport position
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport i32_fetch_add_release, i32_load_acquire, pml_i32
from pulsar_ml.sync.clock cimport monotonic_ns
from pulsar_ml.sync.wait cimport spin

cdef enum:
    CHUNK_BITS = 12
    MOST = 1 << 20
    LEDGER = 7
    SEEK = 99


cdef inline uint64_t next_random(uint64_t* state) noexcept nogil:
    # xorshift64 (Marsaglia, 2003)
    cdef uint64_t x = state[0]
    x ^= x << 13
    x ^= x >> 7
    x ^= x << 17
    state[0] = x
    return x


# The cursors that threads move: thread t of n owns every n-th from t on.
cdef class Cursors:
    cdef uint64_t* ids
    cdef int64_t* entries
    cdef int64_t count
    cdef int32_t threads
    cdef pml_i32 waiting
    cdef readonly int64_t answers   # of the queries, so that they are needed

    def __cinit__(self, int64_t count, int32_t threads):
        cdef uint64_t state = 88172645463325252
        cdef int64_t i
        self.count = count
        self.threads = threads
        self.ids = <uint64_t*>calloc(<size_t>count, sizeof(uint64_t))
        self.entries = <int64_t*>calloc(<size_t>count, sizeof(int64_t))
        if self.ids is NULL or self.entries is NULL:
            raise MemoryError
        for i in range(count):
            self.entries[i] = <int64_t>(next_random(&state) % 100)

    def __dealloc__(self):
        free(self.ids)
        free(self.entries)

    cdef void enter(self) noexcept nogil:
        cdef uint32_t turn = 0
        i32_fetch_add_release(&self.waiting, 1)
        while i32_load_acquire(&self.waiting) < self.threads:
            turn = spin(turn)

    # One of the thread's cursors, moved forward.
    cdef int64_t seek(self, int32_t thread, uint64_t* state) noexcept nogil:
        cdef uint64_t drawn = next_random(state)
        cdef int64_t own = (self.count - thread + self.threads - 1) // self.threads
        cdef int64_t at = <int64_t>((drawn >> 8) % <uint64_t>own) * self.threads + thread
        self.entries[at] += 1 + <int64_t>((drawn >> 48) % SEEK)
        return at

    # Replaces the cursor at this index, in the container of a subclass.
    cdef void exchange(self, int64_t i, int64_t at) noexcept nogil:
        pass

    def churn(self, int64_t operations, int32_t thread) -> tuple[int, int]:
        """The time at which cursors begin to come and go, and the time at which they end."""
        cdef uint64_t state = 362436069362436069 + <uint64_t>thread
        cdef int64_t start, end, i
        with nogil:
            self.enter()
            start = monotonic_ns()
            for i in range(operations):
                self.exchange(i, self.seek(thread, &state))
            end = monotonic_ns()
        return start, end


cdef class Active(Cursors):
    cdef ActiveMemory memory
    cdef ActiveCursors container

    def __init__(self, int64_t count, int32_t threads):
        cdef int64_t i
        if active_memory_init(&self.memory, CHUNK_BITS, MOST) != PML_OK:
            raise MemoryError
        active_cursors_init(&self.container, &self.memory, 0, 0)
        for i in range(count):
            active_cursors_add(&self.container, tracked_at(position(LEDGER, self.entries[i])), False,
                               &self.ids[i])
        active_cursors_slowest(&self.container)

    def __dealloc__(self):
        active_cursors_destroy(&self.container)
        active_memory_destroy(&self.memory)

    def run(
        self, int64_t operations, int32_t thread, int64_t rank_every, int64_t slowest_every
    ) -> tuple[int, int]:
        """Seeks, with a rank or the slowest position asked for every so many of them; 0: never."""
        cdef uint64_t state = 362436069362436069 + <uint64_t>thread
        cdef int64_t start, end, i, at
        with nogil:
            self.enter()
            start = monotonic_ns()
            for i in range(1, operations + 1):
                at = self.seek(thread, &state)
                active_cursors_update(&self.container, self.ids[at],
                                      tracked_at(position(LEDGER, self.entries[at])))
                if rank_every and i % rank_every == 0:
                    active_cursors_rank(&self.container, self.ids[at])
                if slowest_every and i % slowest_every == 0:
                    active_cursors_slowest(&self.container)
            end = monotonic_ns()
        return start, end

    cdef void exchange(self, int64_t i, int64_t at) noexcept nogil:
        # A cursor leaves, and another comes at its position and asks for its rank.
        active_cursors_remove(&self.container, self.ids[at], i)
        active_cursors_add(&self.container, tracked_at(position(LEDGER, self.entries[at])), False,
                           &self.ids[at])
        active_cursors_rank(&self.container, self.ids[at])

    def ask(self, int64_t operations, int32_t thread, bint rank) -> tuple[int, int]:
        """Queries while nothing changes."""
        cdef uint64_t state = 362436069362436069 + <uint64_t>thread
        cdef int64_t start, end, i, answers = 0
        with nogil:
            self.enter()
            start = monotonic_ns()
            for i in range(operations):
                if rank:
                    answers += active_cursors_rank(
                        &self.container, self.ids[(next_random(&state) >> 8) % <uint64_t>self.count])
                else:
                    answers += active_cursors_slowest(&self.container).at.entry_id
            end = monotonic_ns()
            self.answers = answers
        return start, end


cdef class Heap(Cursors):
    cdef Pool cursors
    cdef CursorHeap heap

    def __init__(self, int64_t count, int32_t threads):
        cdef int64_t i
        if heap_pool_init(&self.cursors, CHUNK_BITS, MOST) != PML_OK:
            raise MemoryError
        cursor_heap_init(&self.heap, &self.cursors)
        for i in range(count):
            cursor_heap_add(&self.heap, tracked_at(position(LEDGER, self.entries[i])), False, &self.ids[i])

    def __dealloc__(self):
        cursor_heap_destroy(&self.heap)
        pool_destroy(&self.cursors)

    def run(self, int64_t operations, int32_t thread) -> tuple[int, int]:
        """Seeks; each answers the slowest position before and after."""
        cdef uint64_t state = 362436069362436069 + <uint64_t>thread
        cdef int64_t start, end, i, at
        cdef SlowestChange change
        with nogil:
            self.enter()
            start = monotonic_ns()
            for i in range(operations):
                at = self.seek(thread, &state)
                cursor_heap_update(&self.heap, self.ids[at],
                                   tracked_at(position(LEDGER, self.entries[at])), &change)
            end = monotonic_ns()
        return start, end

    cdef void exchange(self, int64_t i, int64_t at) noexcept nogil:
        # A cursor leaves, and another comes at its position.
        cursor_heap_remove(&self.heap, self.ids[at])
        cursor_heap_add(&self.heap, tracked_at(position(LEDGER, self.entries[at])), False,
                        &self.ids[at])

    def ask(self, int64_t operations, int32_t thread) -> tuple[int, int]:
        """The slowest position while nothing changes."""
        cdef int64_t start, end, i, answers = 0
        with nogil:
            self.enter()
            start = monotonic_ns()
            for i in range(operations):
                answers += cursor_heap_slowest(&self.heap).at.entry_id
            end = monotonic_ns()
            self.answers = answers
        return start, end


def sizes() -> dict:
    """Native bytes of a cursor in each container."""
    return {"Active": sizeof(ActiveCursor) + sizeof(CursorGroup),
            "Heap": sizeof(HeapCursor) + sizeof(HeapPlace)}
