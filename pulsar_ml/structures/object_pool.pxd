# A pool of equal objects named by 32-bit handles, whose memory stays what it is for the pool's
# life.
#
# Origin       Netty's Recycler as Pulsar uses it for entries and wrappers. Here chunks that grow
#              and are never unmapped, and a free list (Treiber, "Systems Programming: Coping with
#              Parallelism", 1986) whose head carries a tag against ABA.
# Threads      take, give, at: any thread. init, destroy: nobody else inside. in_use: quiescence.
# Invariants   OP-1 an object is handed to one taker at a time: the handles taken are those given
#              back and those held.
#              OP-2 (I24, I34) an object in the pool is used by nobody, and the writes of its last
#              user come before those of the next.
#              OP-3 the memory behind a handle is mapped and of one type until pool_destroy.
# Ordering     pool_give (release) -> pool_take (acquire) of the same object: the fields of a
#              finished incarnation are written before those of the next (I34). All changes of the
#              head are read-modify-writes, so an acquire of the head sees every earlier give.
#              Installing a chunk (release) -> finding it (acquire).
# Reclamation  Chunks go with the pool. Stale readers may look at objects in the pool.
# Not promised Order of reuse. Fields of an object taken anew hold what its last user left; only
#              memory that was never used is zero.

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsar_ml.structures.status cimport PML_NO_MEMORY, PML_OK, Status
from pulsar_ml.sync.atomics cimport (
    i64_load_relaxed, i64_store_relaxed, pml_i64, pml_ptr, pml_u32, pml_u64, ptr_cas_strong_acq_rel,
    ptr_load_acquire, ptr_load_relaxed, u32_cas_weak_relaxed, u32_load_relaxed, u32_store_relaxed,
    u64_cas_weak_acquire, u64_cas_weak_release, u64_load_acquire, u64_load_relaxed,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef struct Pool:
    # Read only after pool_init.
    pml_ptr* chunks         # directory of chunks, each 2**chunk_bits objects
    size_t stride           # bytes from object to object
    size_t link             # offset of the i64 cell that links free objects
    uint32_t chunk_bits
    uint32_t chunk_mask     # of a handle's bits below chunk_bits
    uint32_t limit          # handles are 1 .. limit - 1
    char[28] apart          # keeps the words below off the line that readers use
    pml_u64 head            # tag << 32 | first free handle, 0 when none
    pml_u32 used            # handles below were handed out at least once


# Objects that one thread gives back together. All zero: none.
cdef struct PoolChain:
    uint32_t first
    uint32_t last


cdef inline Status pool_init(
    Pool* pool, size_t stride, size_t link, uint32_t chunk_bits, uint32_t limit
) noexcept nogil:
    memset(pool, 0, sizeof(Pool))
    pool.stride = stride
    pool.link = link
    pool.chunk_bits = chunk_bits
    pool.chunk_mask = (<uint32_t>1 << chunk_bits) - 1
    pool.limit = limit
    pool.chunks = <pml_ptr*>allocate_zeroed((limit >> chunk_bits) + 1, sizeof(pml_ptr))
    if pool.chunks is NULL:
        return PML_NO_MEMORY
    u32_store_relaxed(&pool.used, 1)  # handle 0 means "none"
    return PML_OK


cdef inline void pool_destroy(Pool* pool) noexcept nogil:
    cdef size_t i
    if pool.chunks is NULL:
        return
    # Chunks are made in order; the one of the next new handle may be there already.
    for i in range(<size_t>(u32_load_relaxed(&pool.used) >> pool.chunk_bits) + 1):
        release(ptr_load_relaxed(&pool.chunks[i]))
    release(pool.chunks)
    pool.chunks = NULL


cdef inline void* pool_at(const Pool* pool, uint32_t handle) noexcept nogil:
    return pool_place(pool, handle, pool.stride)


# pool_at where the stride is known when this is compiled: no multiplication on the way.
cdef inline void* pool_place(const Pool* pool, uint32_t handle, size_t stride) noexcept nogil:
    # Relaxed: a thread that holds a handle got it from a take or through a release that follows
    # one.
    cdef char* chunk = <char*>ptr_load_relaxed(&pool.chunks[handle >> pool.chunk_bits])
    return chunk + (handle & pool.chunk_mask) * stride


cdef inline pml_i64* pool_link(const Pool* pool, uint32_t handle) noexcept nogil:
    return <pml_i64*>(<char*>pool_at(pool, handle) + pool.link)


# A handle, or 0 when memory or handles ran out.
cdef inline uint32_t pool_take(Pool* pool) noexcept nogil:
    cdef uint64_t seen = u64_load_acquire(&pool.head)
    cdef uint64_t after
    # The exchange fails when another thread took or gave; the tag makes a link that is stale by
    # then harmless.
    while <uint32_t>seen:
        after = ((seen >> 32) + 1) << 32
        after |= <uint32_t>i64_load_relaxed(pool_link(pool, <uint32_t>seen))
        # Pairs with the release in pool_give.
        if u64_cas_weak_acquire(&pool.head, &seen, after):
            return <uint32_t>seen
        seen = u64_load_acquire(&pool.head)
    return pool_take_new(pool)


cdef inline uint32_t pool_take_new(Pool* pool) noexcept nogil:
    cdef uint32_t handle = u32_load_relaxed(&pool.used)
    # The exchange fails when another thread took the next handle.
    while handle < pool.limit:
        if not pool_ensure_chunk(pool, handle >> pool.chunk_bits):
            return 0
        if u32_cas_weak_relaxed(&pool.used, &handle, handle + 1):
            return handle
    return 0


cdef inline bint pool_ensure_chunk(Pool* pool, uint32_t index) noexcept nogil:
    cdef void* seen = ptr_load_acquire(&pool.chunks[index])
    cdef void* fresh
    if seen is not NULL:
        return True
    fresh = allocate_zeroed(<size_t>1 << pool.chunk_bits, pool.stride)
    if fresh is NULL:
        return False
    # Pairs with the acquire above and with the releases that later publish handles.
    if not ptr_cas_strong_acq_rel(&pool.chunks[index], &seen, fresh):
        release(fresh)
    return True


cdef inline void pool_give(Pool* pool, uint32_t handle) noexcept nogil:
    pool_give_chain(pool, handle, handle)


# Gives back a chain first -> ... -> last that the caller linked through the link cells.
cdef inline void pool_give_chain(Pool* pool, uint32_t first, uint32_t last) noexcept nogil:
    cdef uint64_t seen = u64_load_relaxed(&pool.head)
    cdef pml_i64* link = pool_link(pool, last)
    # The exchange fails when another thread took or gave.
    while True:
        i64_store_relaxed(link, <uint32_t>seen)
        # Pairs with the acquire in pool_take.
        if u64_cas_weak_release(&pool.head, &seen, ((seen >> 32) + 1) << 32 | first):
            return


# Puts an object with this link cell before those of a chain: it is in use by nobody, and not in the
# pool before pool_give_all.
cdef inline void pool_chain(PoolChain* chain, uint32_t handle, pml_i64* link) noexcept nogil:
    i64_store_relaxed(link, chain.first)
    chain.first = handle
    if not chain.last:
        chain.last = handle


# The object that joined a chain last, or one of the pool if the chain is empty; 0 when memory or
# handles ran out. The chain is the caller's, who wrote the object's fields, or saw them written.
cdef inline uint32_t pool_take_chained(Pool* pool, PoolChain* chain) noexcept nogil:
    cdef uint32_t handle = chain.first
    if not handle:
        return pool_take(pool)
    chain.first = <uint32_t>i64_load_relaxed(pool_link(pool, handle))
    if not chain.first:
        chain.last = 0
    return handle


# Gives a chain back, which is empty afterwards.
cdef inline void pool_give_all(Pool* pool, PoolChain* chain) noexcept nogil:
    if chain.first:
        pool_give_chain(pool, chain.first, chain.last)
        chain.first = 0
        chain.last = 0


# Objects in use, by walking the free list: exact at quiescence, otherwise any number.
cdef inline int64_t pool_in_use(const Pool* pool) noexcept nogil:
    cdef uint32_t used = u32_load_relaxed(&pool.used)
    cdef int64_t in_use = <int64_t>used - 1
    cdef uint32_t handle = <uint32_t>u64_load_acquire(&pool.head)
    # An object that was taken meanwhile has something else in its link: the walk stays among the
    # objects that exist and takes at most as many steps as there are.
    while 0 < handle < used and in_use > 0:
        if ptr_load_acquire(&pool.chunks[handle >> pool.chunk_bits]) is NULL:
            break
        in_use -= 1
        handle = <uint32_t>i64_load_relaxed(pool_link(pool, handle))
    return in_use
