# Sets of byte strings of one length; each member has room for a few more bytes.
#
# Members are compared by their bytes, never by hash only: a checker that answers "illegal" must not
# have confused two configurations. Emptying costs nothing: the slots of earlier uses have an older
# stamp.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset
from pulsar_ml.harness.linearize.limits.arrays cimport array_free, array_resized, room_for, slots_emptied


cdef struct Pool:
    uint8_t* bytes
    size_t stride         # the bytes from one member to the next
    size_t length         # the number of bytes that are compared
    int64_t used
    int64_t room          # in bytes, as limit
    uint64_t* slots       # stamp << 32 | index + 1
    uint64_t mask
    uint32_t stamp
    int64_t limit


cdef enum:
    POOL_FULL = -1        # no memory, or above the limit
    SURE = 128            # members that are within every limit
    MOST_EXPECTED = 4_096 # members for which there is room at once


cdef inline uint64_t mixed(uint64_t x) noexcept nogil:
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ULL
    return x ^ (x >> 29)


cdef inline void pool_clear(Pool* pool) noexcept nogil:
    pool.used = 0
    pool.stamp += 1
    if pool.stamp == 0 and pool.slots is not NULL:
        memset(pool.slots, 0, (pool.mask + 1) * sizeof(uint64_t))
        pool.stamp = 1


# Empties the pool and sets the length of its members.
cdef inline void pool_shape(Pool* pool, size_t length, size_t extra, int64_t limit) noexcept nogil:
    pool.stride = (length + extra + 7) // 8 * 8
    pool.length = length
    pool.limit = limit
    pool_clear(pool)


cdef inline int64_t pool_bytes(const Pool* pool) noexcept nogil:
    return pool.room + <int64_t>((pool.mask + 1) * sizeof(uint64_t))


cdef inline void pool_free(Pool* pool) noexcept nogil:
    array_free(pool.bytes, pool.room)
    array_free(pool.slots, <int64_t>((pool.mask + 1) * sizeof(uint64_t)))
    memset(pool, 0, sizeof(Pool))


cdef inline uint8_t* pool_at(const Pool* pool, int64_t index) noexcept nogil:
    return pool.bytes + index * <int64_t>pool.stride


cdef inline bint pool_grow_slots(Pool* pool) noexcept nogil:
    cdef int64_t before = <int64_t>((pool.mask + 1) * sizeof(uint64_t)) if pool.slots is not NULL else 0
    cdef int64_t bytes = 2 * before if before else 256 * <int64_t>sizeof(uint64_t)
    cdef uint64_t mask = <uint64_t>bytes // sizeof(uint64_t) - 1
    cdef uint64_t* slots
    cdef uint64_t at
    cdef int64_t i
    if pool.room + bytes > pool.limit and before:
        return False
    slots = <uint64_t*>slots_emptied(pool.slots, before, bytes)
    if slots is NULL:
        return False
    if pool.stamp == 0:
        pool.stamp = 1
    for i in range(pool.used):
        # The last eight bytes of a member are its hash; see pool_add.
        at = (<uint64_t*>(pool_at(pool, i) + pool.stride - 8))[0] & mask
        while slots[at]:
            at = (at + 1) & mask
        slots[at] = (<uint64_t>pool.stamp << 32) | <uint64_t>(i + 1)
    pool.slots = slots
    pool.mask = mask
    return True


cdef inline bint pool_grow_bytes(Pool* pool) noexcept nogil:
    cdef int64_t least = (pool.used + 1) * <int64_t>pool.stride
    cdef int64_t slots = <int64_t>((pool.mask + 1) * sizeof(uint64_t))
    cdef int64_t room = min(room_for(least, 1), pool.limit - slots)
    cdef void* grown
    if pool.used < SURE:
        room = max(room, SURE * <int64_t>pool.stride)
    if room < least or pool.used >= 0xFFFFFFFELL:
        return False
    grown = array_resized(pool.bytes, pool.room, room)
    if grown is NULL:
        return False
    pool.bytes = <uint8_t*>grown
    pool.room = room
    return True


# Makes room at once for the members that an empty pool will have.
cdef inline void pool_expect(Pool* pool, int64_t members) noexcept nogil:
    cdef int64_t slots = 256
    cdef void* grown
    if pool.used or pool.slots is not NULL or pool.bytes is not NULL or members > MOST_EXPECTED:
        return
    while 3 * slots < 4 * (members + 1):
        slots *= 2
    if (members * <int64_t>pool.stride) + 8 * slots > pool.limit:
        return
    grown = slots_emptied(NULL, 0, 8 * slots)
    if grown is NULL:
        return
    pool.stamp = max(pool.stamp, <uint32_t>1)
    pool.slots = <uint64_t*>grown
    pool.mask = <uint64_t>slots - 1
    grown = array_resized(NULL, 0, members * <int64_t>pool.stride)
    if grown is not NULL:
        pool.bytes = <uint8_t*>grown
        pool.room = members * <int64_t>pool.stride


# The index of the member equal to ``key``, which is added if missing; *entered tells which. The
# stride includes eight bytes for the hash at the end.
cdef inline int64_t pool_add(Pool* pool, const void* key, uint64_t hash, bint* entered) noexcept nogil:
    cdef uint64_t at, slot
    cdef uint8_t* member
    if pool.slots is NULL or 4 * <uint64_t>pool.used >= 3 * (pool.mask + 1):
        # Without memory for twice as many slots, most of the free ones are taken.
        if not pool_grow_slots(pool) and 8 * <uint64_t>pool.used >= 7 * pool.mask:
            return POOL_FULL
    at = hash & pool.mask
    entered[0] = False
    while True:
        slot = pool.slots[at]
        if slot == 0 or (slot >> 32) != pool.stamp:
            break
        member = pool_at(pool, <int64_t>(<uint32_t>slot) - 1)
        if (<uint64_t*>(member + pool.stride - 8))[0] == hash and memcmp(member, key, pool.length) == 0:
            return <int64_t>(<uint32_t>slot) - 1
        at = (at + 1) & pool.mask
    if (pool.used + 1) * <int64_t>pool.stride > pool.room and not pool_grow_bytes(pool):
        return POOL_FULL
    member = pool_at(pool, pool.used)
    memcpy(member, key, pool.length)
    (<uint64_t*>(member + pool.stride - 8))[0] = hash
    pool.slots[at] = (<uint64_t>pool.stamp << 32) | <uint64_t>(pool.used + 1)
    pool.used += 1
    entered[0] = True
    return pool.used - 1
