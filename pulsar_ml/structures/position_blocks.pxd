# A list of records in ascending order of positions, in blocks: a directory of arrays of up to 128
# records.
#
# Origin       The B+-tree cut to two levels; Pulsar keeps the same in a TreeRangeSet or in bitmaps
#              by ledger.
# Threads      One at a time changes it, and nobody reads meanwhile: its owner's lock.
# Invariants   PB-1 keys ascend strictly, over the blocks too; no block is empty; `count` is their
#              sum.
# Ordering     The owner's lock.
# Reclamation  A block is freed when its last record goes.
# Not promised Records stay where they are: an insertion or removal moves those behind it in the
#              block.

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memmove, memset

from pulsar_ml.structures.position cimport Position, position_less
from pulsar_ml.sync.memory cimport allocate, release


cdef enum:
    BLOCK_RECORDS = 128


# The records follow; each begins with its key, a Position.
cdef struct PositionBlock:
    int64_t used


cdef struct PositionBlocks:
    PositionBlock** blocks
    int64_t used            # blocks
    int64_t room            # places for blocks
    int64_t count           # records
    int64_t record          # bytes of one


# Where a record is; behind the last one, `block` is the number of blocks.
cdef struct BlockSpot:
    int64_t block
    int64_t slot


cdef inline void blocks_init(PositionBlocks* blocks, int64_t record) noexcept nogil:
    memset(blocks, 0, sizeof(PositionBlocks))
    blocks.record = record


cdef inline void blocks_destroy(PositionBlocks* blocks) noexcept nogil:
    cdef int64_t i
    for i in range(blocks.used):
        release(blocks.blocks[i])
    release(blocks.blocks)
    blocks_init(blocks, blocks.record)


cdef inline char* block_record(
    const PositionBlocks* blocks, PositionBlock* block, int64_t slot
) noexcept nogil:
    return <char*>block + sizeof(PositionBlock) + slot * blocks.record


# The record of a spot, NULL behind the last one.
cdef inline void* blocks_at(const PositionBlocks* blocks, BlockSpot spot) noexcept nogil:
    if spot.block >= blocks.used:
        return NULL
    return block_record(blocks, blocks.blocks[spot.block], spot.slot)


cdef inline BlockSpot blocks_first() noexcept nogil:
    cdef BlockSpot spot
    spot.block = 0
    spot.slot = 0
    return spot


cdef inline BlockSpot blocks_next(const PositionBlocks* blocks, BlockSpot spot) noexcept nogil:
    spot.slot += 1
    if spot.slot >= blocks.blocks[spot.block].used:
        spot.block += 1
        spot.slot = 0
    return spot


# The record before a spot, NULL for the first one.
cdef inline void* blocks_before(const PositionBlocks* blocks, BlockSpot spot) noexcept nogil:
    if spot.slot > 0:
        return block_record(blocks, blocks.blocks[spot.block], spot.slot - 1)
    if spot.block > 0:
        return block_record(blocks, blocks.blocks[spot.block - 1], blocks.blocks[spot.block - 1].used - 1)
    return NULL


# The first record whose key is behind a position.
cdef inline BlockSpot blocks_above(const PositionBlocks* blocks, Position at) noexcept nogil:
    cdef BlockSpot spot
    cdef int64_t low = 0
    cdef int64_t high = blocks.used
    cdef int64_t middle
    # The block that may have the position: the last one whose first key is not behind it.
    while low < high:
        middle = (low + high) >> 1
        if position_less(at, (<Position*>block_record(blocks, blocks.blocks[middle], 0))[0]):
            high = middle
        else:
            low = middle + 1
    spot.block = low - 1
    spot.slot = 0
    if low == 0:
        spot.block = 0
        return spot
    low = 0
    high = blocks.blocks[spot.block].used
    while low < high:
        middle = (low + high) >> 1
        if position_less(at, (<Position*>block_record(blocks, blocks.blocks[spot.block], middle))[0]):
            high = middle
        else:
            low = middle + 1
    spot.slot = low
    if low == blocks.blocks[spot.block].used:
        spot.block += 1
        spot.slot = 0
    return spot


# A new, empty block at a place of the directory; False without memory, and nothing changed.
cdef inline bint blocks_open(PositionBlocks* blocks, int64_t at) noexcept nogil:
    cdef PositionBlock** grown
    cdef PositionBlock* fresh = <PositionBlock*>allocate(
        sizeof(PositionBlock) + <size_t>(BLOCK_RECORDS * blocks.record))
    cdef int64_t room
    if fresh is NULL:
        return False
    if blocks.used == blocks.room:
        room = 2 * blocks.room if blocks.room else 4
        grown = <PositionBlock**>allocate(<size_t>room * sizeof(PositionBlock*))
        if grown is NULL:
            release(fresh)
            return False
        if blocks.used:
            memcpy(grown, blocks.blocks, <size_t>blocks.used * sizeof(PositionBlock*))
        release(blocks.blocks)
        blocks.blocks = grown
        blocks.room = room
    fresh.used = 0
    memmove(&blocks.blocks[at + 1], &blocks.blocks[at], <size_t>(blocks.used - at) * sizeof(PositionBlock*))
    blocks.blocks[at] = fresh
    blocks.used += 1
    return True


# Copies a record in before a spot, which is where its key belongs. False without memory: nothing
# changed.
cdef inline bint blocks_insert(PositionBlocks* blocks, BlockSpot spot, const void* record) noexcept nogil:
    cdef PositionBlock* block
    cdef PositionBlock* upper
    cdef int64_t half
    # At a border the record goes to the end of the block before: ascending insertions fill blocks.
    if spot.slot == 0 and spot.block > 0:
        spot.block -= 1
        spot.slot = blocks.blocks[spot.block].used
    if blocks.used == 0:
        if not blocks_open(blocks, 0):
            return False
    elif blocks.blocks[spot.block].used == BLOCK_RECORDS:
        if not blocks_open(blocks, spot.block + 1):
            return False
        block = blocks.blocks[spot.block]
        upper = blocks.blocks[spot.block + 1]
        if spot.slot == BLOCK_RECORDS:
            # Likewise: what is behind everything begins a block of its own.
            spot.block += 1
            spot.slot = 0
        else:
            half = BLOCK_RECORDS // 2
            memcpy(block_record(blocks, upper, 0), block_record(blocks, block, half),
                   <size_t>((BLOCK_RECORDS - half) * blocks.record))
            upper.used = BLOCK_RECORDS - half
            block.used = half
            if spot.slot > half:
                spot.block += 1
                spot.slot -= half
    block = blocks.blocks[spot.block]
    memmove(block_record(blocks, block, spot.slot + 1), block_record(blocks, block, spot.slot),
            <size_t>((block.used - spot.slot) * blocks.record))
    memcpy(block_record(blocks, block, spot.slot), record, <size_t>blocks.record)
    block.used += 1
    blocks.count += 1
    return True


cdef inline void blocks_remove(PositionBlocks* blocks, BlockSpot spot) noexcept nogil:
    cdef PositionBlock* block = blocks.blocks[spot.block]
    block.used -= 1
    blocks.count -= 1
    memmove(block_record(blocks, block, spot.slot), block_record(blocks, block, spot.slot + 1),
            <size_t>((block.used - spot.slot) * blocks.record))
    if block.used == 0:
        release(block)
        blocks.used -= 1
        memmove(&blocks.blocks[spot.block], &blocks.blocks[spot.block + 1],
                <size_t>(blocks.used - spot.block) * sizeof(PositionBlock*))


# Removes all records before a spot.
cdef inline void blocks_remove_before(PositionBlocks* blocks, BlockSpot spot) noexcept nogil:
    cdef PositionBlock* block
    cdef int64_t i
    for i in range(spot.block):
        blocks.count -= blocks.blocks[i].used
        release(blocks.blocks[i])
    if spot.block:
        blocks.used -= spot.block
        memmove(blocks.blocks, &blocks.blocks[spot.block], <size_t>blocks.used * sizeof(PositionBlock*))
    if spot.slot:
        block = blocks.blocks[0]
        block.used -= spot.slot
        blocks.count -= spot.slot
        memmove(block_record(blocks, block, 0), block_record(blocks, block, spot.slot),
                <size_t>(block.used * blocks.record))
