# Loops over one small structure each: nanoseconds of the thread for ``count`` rounds.


def refcount(int64_t count) -> int:
    """retain and release."""
    cdef pml_i32 references
    cdef int64_t start, i
    with nogil:
        refcount_publish(&references)
        start = thread_ns()
        for i in range(count):
            refcount_retain(&references)
            refcount_release(&references, 1)
        start = thread_ns() - start
    return start


def stamped_lock_write_section(int64_t count) -> int:
    cdef pml_u32 lock
    cdef int64_t start, i
    memset(&lock, 0, sizeof(lock))
    with nogil:
        start = monotonic_ns()
        for i in range(count):
            stamped_lock_write(&lock)
            stamped_unlock_write(&lock)
        start = monotonic_ns() - start
    return start


def stamped_lock_optimistic(int64_t count) -> int:
    cdef pml_u32 lock
    cdef int64_t start, i, valid = 0
    memset(&lock, 0, sizeof(lock))
    with nogil:
        start = monotonic_ns()
        for i in range(count):
            valid += stamped_validate(&lock, stamped_optimistic(&lock))
        start = monotonic_ns() - start
    if valid != count:
        raise AssertionError("an undisturbed optimistic read did not validate")
    return start


cdef struct Pooled:
    pml_i64 link
    int64_t[3] fields


def object_pool(int64_t count) -> int:
    """take and give."""
    cdef Pool pool
    cdef int64_t start, i
    pool_init(&pool, sizeof(Pooled), 0, CHUNK_BITS, MOST)
    with nogil:
        start = monotonic_ns()
        for i in range(count):
            pool_give(&pool, pool_take(&pool))
        start = monotonic_ns() - start
        pool_destroy(&pool)
    return start


def payload_memory(int64_t count) -> int:
    """take and give of 100 bytes, of which enough are kept."""
    return blocks(count, KEPT_PAYLOAD_BYTES)


def allocator(int64_t count) -> int:
    """take and give of 100 bytes, of which none are kept."""
    return blocks(count, 0)


# Blocks are taken 1,000 at a time, as a pass gives back more than an allocator's own stash has.
cdef int64_t blocks(int64_t count, int64_t most) noexcept:
    cdef PayloadMemory memory
    cdef (void*)[1000] taken
    cdef int64_t start, group, i
    payload_memory_init(&memory, most)
    with nogil:
        start = monotonic_ns()
        for group in range(count // 1000):
            for i in range(1000):
                taken[i] = payload_memory_take(&memory, 100)
            for i in range(1000):
                payload_memory_give(&memory, taken[i], 100)
        start = monotonic_ns() - start
        payload_memory_destroy(&memory)
    return start


def mpsc_queue(int64_t count) -> int:
    """offer, peek and poll, 64 handles deep."""
    cdef MpscQueue queue
    cdef int64_t start, i, batch
    mpsc_init(&queue, CHUNK_BITS)
    with nogil:
        start = monotonic_ns()
        for batch in range(count // 64):
            for i in range(64):
                mpsc_offer(&queue, 1)
            for i in range(64):
                if mpsc_peek(&queue):
                    mpsc_poll(&queue)
        start = monotonic_ns() - start
        mpsc_destroy(&queue)
    return start


def read_count(int64_t count) -> int:
    """one more and one less expected read."""
    cdef Pool pool
    cdef uint32_t handle
    cdef int64_t start, i
    read_count_pool_init(&pool, CHUNK_BITS, MOST)
    with nogil:
        handle = read_count_new(&pool, 1)
        start = monotonic_ns()
        for i in range(count):
            read_count_increment(&pool, handle)
            read_count_mark_read(&pool, handle, False)
        start = monotonic_ns() - start
        pool_destroy(&pool)
    return start


def entry(int64_t count) -> int:
    """a copy made and released."""
    cdef EntryPool pool
    cdef uint32_t handle, copy
    cdef int64_t start, i
    memset(&pool, 0, sizeof(pool))
    entry_pool_init(&pool, CHUNK_BITS, MOST)
    with nogil:
        handle = entry_new(&pool, position(1, 2), payload_new(&pool.payloads, 100), 0, True)
        start = monotonic_ns()
        for i in range(count):
            copy = entry_copy(&pool, handle, True)
            entry_release(&pool, copy, 1)
        start = monotonic_ns() - start
        entry_release(&pool, handle, 1)
        entry_pool_destroy(&pool)
    return start


def entry_wrapper(int64_t count) -> int:
    """an optimistic read."""
    cdef EntryWrapper wrapper
    cdef MapMemory memory
    cdef PositionMap map
    cdef uint32_t stamp
    cdef uint32_t place
    cdef int64_t start, i, hits = 0
    memset(&wrapper, 0, sizeof(wrapper))
    memset(&memory, 0, sizeof(memory))
    memset(&map, 0, sizeof(map))
    map_memory_init(&memory, 6, 8)
    map_init(&map, &memory)
    with nogil:
        map_put_if_absent(&map, position(1, 2), 1, &place)
        wrapper_fill(&wrapper, place, 3, 5, 6)
        start = monotonic_ns()
        for i in range(count):
            hits += (wrapper_read(&wrapper, &memory, &map, position(1, 2), &stamp) == 3
                     and wrapper_unchanged(&wrapper, stamp))
        start = monotonic_ns() - start
        map_remove(&map, position(1, 2), 1)
        map_destroy(&map)
        map_memory_destroy(&memory)
    if hits != count:
        raise AssertionError("an undisturbed read missed")
    return start
