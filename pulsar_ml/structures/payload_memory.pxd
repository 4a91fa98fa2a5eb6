# Memory of released payloads, kept by size for the next ones: the allocator is asked for few.
#
# Origin       The pooled buffers of Netty, in which Pulsar keeps entries. Here a list for each size
#              and one word that lets a thread in; a thread that finds another inside does not wait
#              but asks the allocator.
# Threads      take, give: any thread; a chain has one. init, destroy: nobody else inside.
# Invariants   BM-1 a block is handed to one taker at a time, and has the bytes that were asked for.
#              BM-2 the writes of a block's last user come before those of the next.
#              BM-3 at most the given number of bytes is kept while nobody is inside.
# Ordering     payload_memory_leave (release) -> payload_memory_enter (acquire). All else is plain
#              and touched inside only.
# Reclamation  What is too much goes back to the allocator, the rest with payload_memory_destroy.
# Not promised That a block which is kept is found, nor that one which is given back is kept.

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from pulsar_ml.structures.status cimport PML_NO_MEMORY, PML_OK, Status
from pulsar_ml.sync.atomics cimport pml_u32, u32_exchange_acquire, u32_load_relaxed, u32_store_release
from pulsar_ml.sync.memory cimport allocate, allocate_zeroed, release


cdef enum:
    # What the caches of Python keep: as many as a pass over 100,000 entries of 100 bytes releases.
    KEPT_PAYLOAD_BYTES = 1 << 24
    # Sizes are steps of 16 bytes, less the 8 that glibc has of its own in each block.
    BLOCK_STEP_BITS = 4
    BLOCK_OVERHEAD = 8
    BLOCK_SIZES = 257           # blocks of at most 4088 bytes are kept


# A block while it is kept.
cdef struct KeptBlock:
    KeptBlock* next


# Blocks of one size that a thread gives back together. All zero: none.
cdef struct BlockChain:
    KeptBlock* first
    KeptBlock* last
    uint32_t size
    uint32_t blocks


# All zero: one that keeps nothing and allocates just the bytes that are asked for.
cdef struct PayloadMemory:
    KeptBlock** first       # of each size; NULL: nothing is kept. Constant, like `most`
    int64_t most            # bytes
    int64_t bytes           # of all kept blocks
    uint32_t hand           # the size that gives way when there are too many bytes
    pml_u32 busy            # 1 while a thread is inside
    char[64] apart          # keeps what others read off the line of the word


# most: bytes that are kept, 0 for nothing.
cdef inline Status payload_memory_init(PayloadMemory* memory, int64_t most) noexcept nogil:
    memset(memory, 0, sizeof(PayloadMemory))
    if most > 0:
        memory.most = most
        memory.first = <KeptBlock**>allocate_zeroed(BLOCK_SIZES, sizeof(KeptBlock*))
        if memory.first is NULL:
            return PML_NO_MEMORY
    return PML_OK


# Blocks that are in use stay their users', who release them.
cdef inline void payload_memory_destroy(PayloadMemory* memory) noexcept nogil:
    memory.most = 0
    if memory.first is not NULL:
        blocks_release(payload_memory_drop(memory))
    release(memory.first)
    memory.first = NULL


cdef inline uint32_t block_size(size_t bytes) noexcept nogil:
    return <uint32_t>((bytes + BLOCK_OVERHEAD + (1 << BLOCK_STEP_BITS) - 1) >> BLOCK_STEP_BITS)


cdef inline bint payload_memory_keeps(const PayloadMemory* memory, uint32_t size) noexcept nogil:
    return memory.first is not NULL and size < BLOCK_SIZES


# False when another thread is inside.
cdef inline bint payload_memory_enter(PayloadMemory* memory) noexcept nogil:
    # Looking first leaves the line to the thread that is inside.
    return u32_load_relaxed(&memory.busy) == 0 and u32_exchange_acquire(&memory.busy, 1) == 0


cdef inline void payload_memory_leave(PayloadMemory* memory) noexcept nogil:
    # Pairs with the acquire in payload_memory_enter.
    u32_store_release(&memory.busy, 0)


# Uninitialised bytes, or NULL.
cdef inline void* payload_memory_take(PayloadMemory* memory, size_t bytes) noexcept nogil:
    cdef uint32_t size = block_size(bytes)
    cdef KeptBlock* block = NULL
    if not payload_memory_keeps(memory, size):
        return allocate(bytes)
    if payload_memory_enter(memory):
        block = memory.first[size]
        if block is not NULL:
            memory.first[size] = block.next
            memory.bytes -= <int64_t>size << BLOCK_STEP_BITS
        payload_memory_leave(memory)
    if block is NULL:
        # As many as any block of this size has.
        return allocate((<size_t>size << BLOCK_STEP_BITS) - BLOCK_OVERHEAD)
    return block


# Gives back what was taken with the same number of bytes.
cdef inline void payload_memory_give(PayloadMemory* memory, void* block, size_t bytes) noexcept nogil:
    cdef BlockChain chain = BlockChain(NULL, NULL, 0, 0)
    payload_memory_chain(memory, block, bytes, &chain)
    payload_memory_give_all(memory, &chain)


# payload_memory_give, but a block that may be kept joins a chain of the caller's, which is given
# back when a block of another size comes.
cdef inline void payload_memory_chain(
    PayloadMemory* memory, void* block, size_t bytes, BlockChain* chain
) noexcept nogil:
    cdef KeptBlock* kept = <KeptBlock*>block
    cdef uint32_t size = block_size(bytes)
    if not payload_memory_keeps(memory, size):
        release(block)
        return
    if chain.size != size:
        payload_memory_give_all(memory, chain)
        chain.size = size
    kept.next = chain.first
    chain.first = kept
    if chain.last is NULL:
        chain.last = kept
    chain.blocks += 1


# Gives a chain back, which is empty afterwards.
cdef inline void payload_memory_give_all(PayloadMemory* memory, BlockChain* chain) noexcept nogil:
    cdef KeptBlock* dropped = chain.first
    if dropped is NULL:
        return
    if payload_memory_enter(memory):
        chain.last.next = memory.first[chain.size]
        memory.first[chain.size] = chain.first
        memory.bytes += <int64_t>chain.blocks * chain.size << BLOCK_STEP_BITS
        dropped = payload_memory_drop(memory)
        payload_memory_leave(memory)
    chain.first = NULL
    chain.last = NULL
    chain.blocks = 0
    blocks_release(dropped)


# Inside: takes out what is too much, one size after the other.
cdef inline KeptBlock* payload_memory_drop(PayloadMemory* memory) noexcept nogil:
    cdef KeptBlock* dropped = NULL
    cdef KeptBlock* block
    while memory.bytes > memory.most:
        block = memory.first[memory.hand]
        if block is NULL:
            memory.hand = (memory.hand + 1) % BLOCK_SIZES
            continue
        memory.first[memory.hand] = block.next
        memory.bytes -= <int64_t>memory.hand << BLOCK_STEP_BITS
        block.next = dropped
        dropped = block
    return dropped


cdef inline void blocks_release(KeptBlock* block) noexcept nogil:
    cdef KeptBlock* after
    while block is not NULL:
        after = block.next
        release(block)
        block = after
