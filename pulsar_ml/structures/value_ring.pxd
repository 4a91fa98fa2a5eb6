# A first-in first-out ring of values with a size each, which grows; the lists of one consumer.
#
# Origin       A circular buffer of a power of two, doubled when full.
# Threads      One at a time: the caller excludes others.
# Invariants   VR-1 a value keeps its index from push to pop; indices only grow.
# Ordering     None.
# Reclamation  The buffer goes with the ring.
# Not promised That memory shrinks: the buffer stays as large as it once had to be.

from libc.stdint cimport uint64_t
from libc.string cimport memset

from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef struct RingSlot:
    uint64_t value          # 0: taken out of the middle
    uint64_t size


cdef struct ValueRing:
    RingSlot* slots
    uint64_t mask           # slots less one
    uint64_t head           # index of the oldest
    uint64_t tail           # the next index


cdef inline void ring_destroy(ValueRing* ring) noexcept nogil:
    release(ring.slots)
    memset(ring, 0, sizeof(ValueRing))


cdef inline uint64_t ring_count(const ValueRing* ring) noexcept nogil:
    return ring.tail - ring.head


# The slot of an index from head to tail, tail not included.
cdef inline RingSlot* ring_at(const ValueRing* ring, uint64_t index) noexcept nogil:
    return &ring.slots[index & ring.mask]


cdef inline bint ring_grow(ValueRing* ring) noexcept nogil:
    cdef uint64_t size = (ring.mask + 1) * 2 if ring.slots is not NULL else 16
    cdef RingSlot* slots = <RingSlot*>allocate_zeroed(size, sizeof(RingSlot))
    cdef uint64_t index
    if slots is NULL:
        return False
    for index in range(ring.head, ring.tail):
        slots[index & (size - 1)] = ring_at(ring, index)[0]
    release(ring.slots)
    ring.slots = slots
    ring.mask = size - 1
    return True


# True if one more value fits; the ring grows for it.
cdef inline bint ring_has_room(ValueRing* ring) noexcept nogil:
    return (ring.slots is not NULL and ring_count(ring) <= ring.mask) or ring_grow(ring)


# False without memory, and nothing changed.
cdef inline bint ring_push(ValueRing* ring, uint64_t value, uint64_t size) noexcept nogil:
    if not ring_has_room(ring):
        return False
    ring_at(ring, ring.tail)[0] = RingSlot(value, size)
    ring.tail += 1
    return True


# The oldest slot, taken out; the ring is not empty.
cdef inline RingSlot ring_pop(ValueRing* ring) noexcept nogil:
    ring.head += 1
    return ring_at(ring, ring.head - 1)[0]
