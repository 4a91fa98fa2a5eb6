# Sets of byte strings of one length; each member has room for a few more bytes.
#
# Members are compared by their bytes, never by hash only: a checker that answers "illegal" must not
# have confused two configurations. Emptying costs nothing: the slots of earlier uses have an older
# stamp.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memset
from pulsar_ml.harness.linearize.limits._memory cimport fits
from pulsar_ml.harness.linearize.limits.arrays cimport MAPPED, PIECE


cdef struct Pool:
    uint8_t* bytes
    size_t stride         # the bytes from one member to the next
    size_t length         # the number of bytes that are compared
    int64_t used
    int64_t room
    uint64_t* slots       # stamp << 32 | index + 1
    uint64_t mask
    uint32_t stamp
    int64_t limit         # the most bytes of the pool


cdef enum:
    POOL_FULL = -1        # no memory, or above the limit
    MANY_SLOTS = 1 << 16  # slots that are worth a look at the memory of the process


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
    cdef size_t stride = (length + extra + 7) // 8 * 8
    if pool.stride:
        pool.room = <int64_t>(pool.room * pool.stride // stride)
    pool.stride = stride
    pool.length = length
    pool.limit = limit
    pool_clear(pool)


cdef inline int64_t pool_bytes(const Pool* pool) noexcept nogil:
    return pool.room * <int64_t>pool.stride + <int64_t>((pool.mask + 1) * sizeof(uint64_t))


cdef inline void pool_free(Pool* pool) noexcept nogil:
    free(pool.bytes)
    free(pool.slots)
    memset(pool, 0, sizeof(Pool))


cdef inline uint8_t* pool_at(const Pool* pool, int64_t index) noexcept nogil:
    return pool.bytes + index * <int64_t>pool.stride


cdef inline bint pool_grow_slots(Pool* pool) noexcept nogil:
    cdef uint64_t size = 2 * (pool.mask + 1) if pool.slots is not NULL else 256
    cdef uint64_t* slots
    cdef uint64_t i, at, old
    cdef uint8_t* member
    # For a moment there are the new slots and the old ones.
    if pool.room * <int64_t>pool.stride + <int64_t>size * 12 > pool.limit and size > 256:
        return False
    if size >= MANY_SLOTS and not fits(<int64_t>size * 8):
        return False
    slots = <uint64_t*>calloc(size, sizeof(uint64_t))
    if slots is NULL:
        return False
    if pool.slots is not NULL:
        for i in range(pool.mask + 1):
            old = pool.slots[i]
            if old and (old >> 32) == pool.stamp:
                # The last eight bytes of a member are its hash; see pool_add.
                member = pool_at(pool, <int64_t>(<uint32_t>old) - 1)
                at = (<uint64_t*>(member + pool.stride - 8))[0] & (size - 1)
                while slots[at]:
                    at = (at + 1) & (size - 1)
                slots[at] = old
        free(pool.slots)
    elif pool.stamp == 0:
        pool.stamp = 1
    pool.slots = slots
    pool.mask = size - 1
    return True


cdef inline bint pool_grow_bytes(Pool* pool) noexcept nogil:
    cdef int64_t room = pool.room + pool.room // 2 if pool.room >= 64 else 128
    cdef int64_t bytes = room * <int64_t>pool.stride + <int64_t>((pool.mask + 1) * sizeof(uint64_t))
    cdef uint8_t* more
    if pool.room * <int64_t>pool.stride >= MAPPED:
        if not fits(PIECE):
            return False
        room = pool.room + PIECE // <int64_t>pool.stride + 1
        bytes = room * <int64_t>pool.stride + <int64_t>((pool.mask + 1) * sizeof(uint64_t))
    elif bytes >= PIECE and not fits(bytes):
        return False
    if bytes > pool.limit and room > 128:
        return False
    if room >= 0xFFFFFFFELL:
        return False
    more = <uint8_t*>realloc(pool.bytes, <size_t>room * pool.stride)
    if more is NULL:
        return False
    pool.bytes = more
    pool.room = room
    return True


# The index of the member equal to ``key``, which is added if missing; *entered tells which. The
# stride includes eight bytes for the hash at the end.
cdef inline int64_t pool_add(Pool* pool, const void* key, uint64_t hash, bint* entered) noexcept nogil:
    cdef uint64_t at, slot
    cdef uint8_t* member
    if pool.slots is NULL or 4 * <uint64_t>pool.used >= 3 * (pool.mask + 1):
        if not pool_grow_slots(pool):
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
    if pool.used == pool.room and not pool_grow_bytes(pool):
        return POOL_FULL
    member = pool_at(pool, pool.used)
    memcpy(member, key, pool.length)
    (<uint64_t*>(member + pool.stride - 8))[0] = hash
    pool.slots[at] = (<uint64_t>pool.stamp << 32) | <uint64_t>(pool.used + 1)
    pool.used += 1
    entered[0] = True
    return pool.used - 1
