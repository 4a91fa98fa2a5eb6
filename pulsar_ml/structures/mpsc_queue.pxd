# An unbounded first-in first-out queue of 32-bit handles: many producers, one consumer, in chunks.
#
# Origin       JCTools MpscUnboundedArrayQueue as the removal queue uses it. The claim of a slot by
#              exchanging a tail index that was read together with its chunk follows the block queue
#              of crossbeam (SegQueue). The caller chooses the chunk.
# Threads      offer: any thread. peek, poll: one consumer at a time (the caller excludes others).
# Invariants   MQ-1 every offered handle is polled exactly once, after every handle whose offer was
#              finished before its own began, and with all that its producer wrote before.
#              MQ-2 (I104) a producer stopped between claiming a slot and filling it delays the
#              consumer at that slot; nothing is lost or reordered.
#              MQ-3 offer never fails after it claimed: the next chunk is ready before the last slot
#              of a chunk is claimed.
# Ordering     offer's store of the slot (release) -> peek's load (acquire).
#              Installing a chunk: its address, then the tail index (release) -> the producers' load
#              of the index (acquire). Its next link (release) -> the consumer's load (acquire).
# Reclamation  The consumer frees a chunk after its last slot. The producer that filled that slot
#              wrote it last, and producers touch a chunk only after they claimed a slot of it, so
#              none is inside. One chunk is kept for the next producer that needs one.
# Not promised Lock freedom: a producer stopped while installing a chunk holds up the other
#              producers. Handle 0 cannot be queued.

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from pulsar_ml.structures.status cimport PML_NO_MEMORY, PML_OK, Status
from pulsar_ml.sync.atomics cimport (
    pml_ptr, pml_u32, pml_u64, ptr_cas_strong_acq_rel, ptr_load_acquire, ptr_load_relaxed,
    ptr_store_relaxed, ptr_store_release, u32_load_acquire, u32_store_relaxed, u32_store_release,
    u64_cas_weak_relaxed, u64_load_acquire, u64_load_relaxed, u64_store_release,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release
from pulsar_ml.sync.wait cimport spin


cdef struct MpscChunk:
    pml_ptr next
    pml_u32[1] slots        # as many as the queue says; 0: not filled


cdef struct MpscQueue:
    # The consumer's line.
    MpscChunk* head_chunk
    uint64_t head           # index of the next slot to poll
    uint32_t last           # the last place of a chunk; it holds no slot
    char[44] apart
    # The producers' line. An index counts last + 1 places a chunk, a power of two; its last place
    # stands for "the next chunk is being installed".
    pml_u64 tail
    pml_ptr tail_chunk
    pml_ptr spare           # a chunk ready for use, or NULL


cdef inline MpscChunk* mpsc_new_chunk(MpscQueue* queue) noexcept nogil:
    # Only compared: the exchange that takes the spare acquires it. All its slots are 0: the
    # consumer cleared each after polling it.
    cdef void* spare = ptr_load_relaxed(&queue.spare)
    if spare is not NULL and ptr_cas_strong_acq_rel(&queue.spare, &spare, NULL):
        ptr_store_relaxed(&(<MpscChunk*>spare).next, NULL)
        return <MpscChunk*>spare
    return <MpscChunk*>allocate_zeroed(1, sizeof(MpscChunk) + queue.last * sizeof(pml_u32))


cdef inline void mpsc_drop_chunk(MpscQueue* queue, MpscChunk* chunk) noexcept nogil:
    cdef void* none = NULL
    if not ptr_cas_strong_acq_rel(&queue.spare, &none, chunk):
        release(chunk)


# A chunk holds 2**chunk_bits - 1 handles.
cdef inline Status mpsc_init(MpscQueue* queue, uint32_t chunk_bits) noexcept nogil:
    memset(queue, 0, sizeof(MpscQueue))
    queue.last = (<uint32_t>1 << chunk_bits) - 1
    queue.head_chunk = mpsc_new_chunk(queue)
    if queue.head_chunk is NULL:
        return PML_NO_MEMORY
    ptr_store_relaxed(&queue.tail_chunk, queue.head_chunk)
    return PML_OK


# Nobody else inside. Handles still queued are forgotten.
cdef inline void mpsc_destroy(MpscQueue* queue) noexcept nogil:
    cdef MpscChunk* chunk = queue.head_chunk
    cdef MpscChunk* next_chunk
    while chunk is not NULL:
        next_chunk = <MpscChunk*>ptr_load_relaxed(&chunk.next)
        release(chunk)
        chunk = next_chunk
    release(ptr_load_relaxed(&queue.spare))
    queue.head_chunk = NULL


# PML_NO_MEMORY leaves the queue as it was.
cdef inline Status mpsc_offer(MpscQueue* queue, uint32_t handle) noexcept nogil:
    cdef MpscChunk* next_chunk = NULL
    cdef MpscChunk* chunk
    cdef uint64_t tail = u64_load_acquire(&queue.tail)
    cdef uint64_t place
    cdef uint32_t turn = 0
    while True:
        place = tail & queue.last
        if place == queue.last:
            # Ends when the producer of the last slot has installed the next chunk.
            turn = spin(turn)
            tail = u64_load_acquire(&queue.tail)
            continue
        if place + 1 == queue.last and next_chunk is NULL:
            next_chunk = mpsc_new_chunk(queue)
            if next_chunk is NULL:
                return PML_NO_MEMORY
        # The chunk belongs to this tail if the exchange wins: the index only grows, so it did not
        # change in between. The exchange fails when another producer claimed the slot. It may be
        # relaxed: as a read-modify-write it continues the release sequence of the last install.
        chunk = <MpscChunk*>ptr_load_relaxed(&queue.tail_chunk)
        if u64_cas_weak_relaxed(&queue.tail, &tail, tail + 1):
            break
        tail = u64_load_acquire(&queue.tail)
    if place + 1 == queue.last:
        ptr_store_relaxed(&queue.tail_chunk, next_chunk)
        # Pairs with the producers' acquire of the tail.
        u64_store_release(&queue.tail, tail + 2)
        # Pairs with the consumer's acquire in mpsc_advance.
        ptr_store_release(&chunk.next, next_chunk)
    elif next_chunk is not NULL:
        mpsc_drop_chunk(queue, next_chunk)
    # Pairs with the acquire in mpsc_peek.
    u32_store_release(&chunk.slots[place], handle)
    return PML_OK


# The oldest handle, or 0 when the queue is empty. Waits for a producer that claimed the slot.
cdef inline uint32_t mpsc_peek(MpscQueue* queue) noexcept nogil:
    cdef uint64_t place = queue.head & queue.last
    cdef uint32_t handle = u32_load_acquire(&queue.head_chunk.slots[place])
    cdef uint32_t turn = 0
    if handle:
        return handle
    if u64_load_acquire(&queue.tail) == queue.head:
        return 0
    # Ends when the producer that claimed this slot has filled it.
    while True:
        handle = u32_load_acquire(&queue.head_chunk.slots[place])
        if handle:
            return handle
        turn = spin(turn)


# Removes the handle that mpsc_peek returned.
cdef inline void mpsc_poll(MpscQueue* queue) noexcept nogil:
    cdef MpscChunk* chunk = queue.head_chunk
    cdef uint64_t place = queue.head & queue.last
    u32_store_relaxed(&chunk.slots[place], 0)
    queue.head += 1
    if place + 1 == queue.last:
        # The producer of the last slot linked the next chunk before it filled the slot.
        queue.head += 1
        queue.head_chunk = <MpscChunk*>ptr_load_acquire(&chunk.next)
        mpsc_drop_chunk(queue, chunk)


# Handles queued, exact at quiescence.
cdef inline uint64_t mpsc_size(const MpscQueue* queue) noexcept nogil:
    cdef uint64_t places = <uint64_t>queue.last + 1
    cdef uint64_t tail = u64_load_relaxed(&queue.tail)
    return (tail - tail // places) - (queue.head - queue.head // places)


# The index that the next handle gets, or one before it: what is offered from now on is polled while
# the consumer's `head` is at or past it.
cdef inline uint64_t mpsc_tail(const MpscQueue* queue) noexcept nogil:
    return u64_load_relaxed(&queue.tail)
