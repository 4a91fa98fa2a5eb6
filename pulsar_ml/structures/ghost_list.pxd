# The keys that left lately, first in, first out, with a table to find them.
#
# Origin       The ghost queue of S3-FIFO (Yang et al., SOSP 2023), bounded by the bytes that the
#              entries had. Keys are 64-bit hashes; open addressing with linear probing.
# Threads      One at a time: the caller excludes others.
# Invariants   GL-1 a key is remembered until it is taken, or until later keys had `most_bytes`.
# Ordering     None.
# Reclamation  List and table go with it.
# Not promised That two different keys never have one hash. Without memory a key is not remembered.

from libc.stdint cimport uint64_t
from libc.string cimport memset

from pulsar_ml.structures.value_ring cimport (
    RingSlot, ValueRing, ring_at, ring_count, ring_destroy, ring_pop, ring_push,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef struct GhostCell:
    uint64_t key            # 0: free
    uint64_t index          # of the key in the list


cdef struct GhostList:
    ValueRing ring          # keys with their sizes; a key that was taken has none
    GhostCell* cells
    uint64_t mask
    uint64_t count
    uint64_t bytes


cdef inline void ghost_destroy(GhostList* ghost) noexcept nogil:
    ring_destroy(&ghost.ring)
    release(ghost.cells)
    memset(ghost, 0, sizeof(GhostList))


# splitmix64's finalizer (Steele, Lea and Flood, 2014)
cdef inline uint64_t ghost_mix(uint64_t x) noexcept nogil:
    x = (x ^ x >> 30) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ x >> 27) * <uint64_t>0x94D049BB133111EB
    return x ^ x >> 31


cdef inline uint64_t ghost_key(uint64_t owner, uint64_t ledger_id, uint64_t entry_id) noexcept nogil:
    cdef uint64_t key = ghost_mix(
        ghost_mix(ghost_mix(owner + <uint64_t>0x9E3779B97F4A7C15) ^ ledger_id) ^ entry_id)
    return key if key else 1


# The cell of a key, or the free one where it would go. There is always a free one.
cdef inline GhostCell* ghost_cell(const GhostList* ghost, uint64_t key) noexcept nogil:
    cdef uint64_t at = key & ghost.mask
    while ghost.cells[at].key and ghost.cells[at].key != key:
        at = (at + 1) & ghost.mask
    return &ghost.cells[at]


cdef inline bint ghost_grow(GhostList* ghost) noexcept nogil:
    cdef uint64_t size = (ghost.mask + 1) * 2 if ghost.cells is not NULL else 64
    cdef GhostCell* cells = ghost.cells
    cdef uint64_t before = ghost.mask + 1 if cells is not NULL else 0
    cdef uint64_t i
    cdef GhostCell* fresh = <GhostCell*>allocate_zeroed(size, sizeof(GhostCell))
    if fresh is NULL:
        return False
    ghost.cells = fresh
    ghost.mask = size - 1
    for i in range(before):
        if cells[i].key:
            ghost_cell(ghost, cells[i].key)[0] = cells[i]
    release(cells)
    return True


# Frees a cell and moves those after it that would not be found any more.
cdef inline void ghost_free_cell(GhostList* ghost, GhostCell* cell) noexcept nogil:
    cdef uint64_t hole = <uint64_t>(cell - ghost.cells)
    cdef uint64_t at = hole
    cell.key = 0
    ghost.count -= 1
    while True:
        at = (at + 1) & ghost.mask
        if not ghost.cells[at].key:
            return
        # Its own place is not between the hole and here: it may move.
        if ((at - ghost.cells[at].key) & ghost.mask) >= ((at - hole) & ghost.mask):
            ghost.cells[hole] = ghost.cells[at]
            ghost.cells[at].key = 0
            hole = at


# Forgets a key; whether it was remembered.
cdef inline bint ghost_take(GhostList* ghost, uint64_t key) noexcept nogil:
    cdef GhostCell* cell
    cdef RingSlot* slot
    if not ghost.count:
        return False
    cell = ghost_cell(ghost, key)
    if not cell.key:
        return False
    slot = ring_at(&ghost.ring, cell.index)
    ghost.bytes -= slot.size
    slot.value = 0
    slot.size = 0
    ghost_free_cell(ghost, cell)
    return True


# Remembers a key, which is not remembered yet, and forgets the oldest beyond `most_bytes`.
cdef inline void ghost_add(GhostList* ghost, uint64_t key, uint64_t size, uint64_t most_bytes) noexcept nogil:
    cdef GhostCell* cell
    cdef RingSlot oldest
    if (ghost.cells is NULL or ghost.count * 2 > ghost.mask) and not ghost_grow(ghost):
        return
    ghost_take(ghost, key)
    if not ring_push(&ghost.ring, key, size):
        return
    cell = ghost_cell(ghost, key)
    cell.key = key
    cell.index = ghost.ring.tail - 1
    ghost.count += 1
    ghost.bytes += size
    while ring_count(&ghost.ring) and (
            ghost.bytes > most_bytes or not ring_at(&ghost.ring, ghost.ring.head).value):
        oldest = ring_pop(&ghost.ring)
        if oldest.value:
            ghost.bytes -= oldest.size
            ghost_free_cell(ghost, ghost_cell(ghost, oldest.value))
