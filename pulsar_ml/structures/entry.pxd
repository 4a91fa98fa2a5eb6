# An entry: a position, a share of a payload, and perhaps a share of an expected-read count, pooled
# and reference-counted.
#
# Origin       EntryImpl (Pulsar 4.1). The payload is a shared native buffer, or a slice of a
#              receive buffer, instead of a Netty ByteBuf; on-deallocate callbacks are one native
#              function with one argument.
# Threads      retain, release, copies: any thread that holds a reference (retain also tries on a
#              stale handle). Setters: the creator, before others know the handle.
# Invariants   EN-1 (I12-I14) an entry's references are counted as refcount.pxd says.
#              EN-2 (I18) fields are read under a reference only; a stale handle may only be
#              retained.
#              EN-3 (I69) a counting copy marks its read once, when it is deallocated.
#              EN-4 (I20) the callback runs once for each incarnation, before the payload is given
#              back.
#              EN-5 (I2, I19) payload bytes do not change and stay while any entry shares them.
#              EN-6 (I67, I70) a read count is reached under a reference of its own: while it is
#              replaced, a reader holds the old one or the new one.
#              EN-7 an entry has one parsed value at most; copies made after it was attached share
#              it, and it is released with the last entry that has it, before the payload.
#              EN-8 (I30, I59) a mark of an access is set by the exchange that takes a reader's
#              reference, and forgotten inside a write section of the entry's wrapper.
# Ordering     See refcount.pxd and object_pool.pxd. Fields are plain: written before publication,
#              read after a successful retain; but `extra`, whose read count changes while it is
#              shared: exchanged with release -> loaded with acquire. Likewise `payload`, to which
#              a parsed value comes once.
# Reclamation  The thread whose release reached zero gives everything back. Entry memory is
#              type-stable; the payload is freed, and with a slice its reference to the receive
#              buffer goes back.
# Not promised That a mark is one cache's alone where two caches hold the entry, or of this
#              incarnation: a reader that comes too late marks what its handle names by then.
#              That entry_retain on a stale handle retains the entry it once named: compare the
#              position afterwards.

from libc.stdint cimport int32_t, int64_t, uint32_t

from pulsar_ml.structures.object_pool cimport (
    Pool, PoolChain, pool_at, pool_chain, pool_destroy, pool_give, pool_give_all, pool_init,
    pool_place, pool_take, pool_take_chained,
)
from pulsar_ml.structures.parsed_value cimport (
    PAYLOAD_IS_PARSED, Metadata, ReleaseValue, metadata_new, share_metadata, share_payload, share_release,
    share_retain,
)
from pulsar_ml.structures.payload cimport (
    Payload, payload_bytes, payload_copy, payload_length, payload_new, payload_release, payload_retain,
    payload_slice, payload_source,
)
from pulsar_ml.structures.payload_memory cimport (
    BlockChain, PayloadMemory, payload_memory_destroy, payload_memory_give_all, payload_memory_init,
)
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.read_count cimport (
    read_count_increment, read_count_mark_read, read_count_new, read_count_pool_init, read_count_release,
    read_count_retain,
    read_count_value,
)
from pulsar_ml.structures.refcount cimport (
    RELEASED_LAST, ReleaseResult, refcount_forget_mark, refcount_publish, refcount_release,
    refcount_retain, refcount_value, refcount_was_marked,
)
from pulsar_ml.structures.status cimport PML_EXISTS, PML_NO_MEMORY, PML_OK, Status
from pulsar_ml.sync.atomics cimport (
    i64_cas_strong_acq_rel, i64_load_acquire, i64_store_relaxed, pml_i32, pml_i64, pml_u32,
    u32_cas_strong_acq_rel, u32_load_acquire, u32_load_relaxed, u32_store_relaxed,
)
from pulsar_ml.sync.memory cimport release


ctypedef void (*DeallocateCallback)(void* context, int64_t argument) noexcept nogil


# The part of an entry with an on-deallocate callback that other entries lack.
cdef struct Callback:
    DeallocateCallback function
    void* context
    int64_t argument
    pml_i64 link            # next free callback while pooled
    pml_u32 read_count      # the entry's, moved here


cdef enum:
    # `extra` of an entry: a handle and two marks.
    EXTRA_HANDLE = 0x1FFFFFFF
    EXTRA_IS_CALLBACK = 0x40000000  # the handle names a Callback, otherwise a read count (0: none)
    EXTRA_COUNTS_READ = 0x80000000  # deallocation marks a read (decreaseReadCountOnRelease)


cdef struct Entry:          # 32 bytes
    int64_t ledger_id
    int64_t entry_id
    pml_i64 payload         # address of the Payload, and a mark; next free entry while pooled
    pml_i32 references      # and the mark: read since it was cached, or since a pass requeued it
    pml_u32 extra


# Entries, and memory of payloads, that one thread gives back together.
cdef struct EntryChain:
    PoolChain entries
    BlockChain blocks


cdef struct EntryPool:
    # Read counts as Pulsar 4.2.4 has them: an entry of which no read was expected at first has none
    # and gets none, and marks go below zero. Constant once entries exist.
    bint counts_of_4
    Pool entries
    Pool read_counts
    Pool callbacks
    PayloadMemory payloads


# limit: most entries, at most EXTRA_HANDLE. Nothing of released payloads is kept: see
# entry_pool_keep_payloads.
cdef inline Status entry_pool_init(EntryPool* pool, uint32_t chunk_bits, uint32_t limit) noexcept nogil:
    cdef Status status
    pool.counts_of_4 = False
    payload_memory_init(&pool.payloads, 0)
    status = pool_init(&pool.entries, sizeof(Entry), <size_t>&(<Entry*>NULL).payload,
                       chunk_bits, limit)
    if status == PML_OK:
        status = read_count_pool_init(&pool.read_counts, chunk_bits, limit)
    if status == PML_OK:
        status = pool_init(&pool.callbacks, sizeof(Callback), <size_t>&(<Callback*>NULL).link,
                           chunk_bits, limit)
    return status


# Nobody else inside. Entries still held keep their payload: the caller released them all.
cdef inline void entry_pool_destroy(EntryPool* pool) noexcept nogil:
    pool_destroy(&pool.entries)
    pool_destroy(&pool.read_counts)
    pool_destroy(&pool.callbacks)
    payload_memory_destroy(&pool.payloads)


# Keeps at most these bytes of released payloads for new ones. Before entries exist.
cdef inline Status entry_pool_keep_payloads(EntryPool* pool, int64_t most) noexcept nogil:
    return payload_memory_init(&pool.payloads, most)


cdef inline EntryChain entry_chain() noexcept nogil:
    return EntryChain(PoolChain(0, 0), BlockChain(NULL, NULL, 0, 0))


cdef inline Entry* entry_at(const EntryPool* pool, uint32_t handle) noexcept nogil:
    return <Entry*>pool_place(&pool.entries, handle, sizeof(Entry))


cdef inline Payload* entry_payload(const Entry* entry) noexcept nogil:
    return share_payload(i64_load_acquire(&entry.payload))


# Creation --------------------------------------------------------------------------------------

# An entry with one reference that takes over the caller's references to payload and read_count
# (0: none), or 0 when memory ran out; then the caller keeps both.
cdef inline uint32_t entry_new(
    EntryPool* pool, Position at, Payload* payload, uint32_t read_count, bint counts_read
) noexcept nogil:
    cdef uint32_t handle = pool_take(&pool.entries)
    if handle:
        entry_start(pool, handle, at, <int64_t>payload, read_count, counts_read)
    return handle


# A new incarnation of an entry that is in use by nobody.
cdef inline void entry_start(
    EntryPool* pool, uint32_t handle, Position at, int64_t share, uint32_t read_count, bint counts_read
) noexcept nogil:
    cdef Entry* entry = entry_at(pool, handle)
    entry.ledger_id = at.ledger_id
    entry.entry_id = at.entry_id
    i64_store_relaxed(&entry.payload, share)
    u32_store_relaxed(&entry.extra, read_count | (EXTRA_COUNTS_READ if counts_read else 0))
    # Last: from here a stale handle can retain this incarnation.
    refcount_publish(&entry.references)


# A new entry for the same bytes and the same expected reads, or 0 when memory ran out. The caller
# holds a reference to the original. A dispatch copy counts its read when it is released. Both share
# a handler from here, made now if no read was expected: later expectations are of both.
cdef inline uint32_t entry_copy(EntryPool* pool, uint32_t handle, bint counts_read) noexcept nogil:
    cdef EntryChain chain = entry_chain()
    return entry_copy_chained(pool, handle, counts_read, &chain)


# entry_copy, which takes the entry from a chain of the caller's while that has one: a dispatcher's,
# in which entry_release_chained left copies, needs no exchange with the pool for the next ones.
cdef inline uint32_t entry_copy_chained(
    EntryPool* pool, uint32_t handle, bint counts_read, EntryChain* chain
) noexcept nogil:
    cdef Entry* entry = entry_at(pool, handle)
    cdef uint32_t read_count = entry_hold_reads(pool, handle, True)
    cdef int64_t share
    cdef uint32_t copy
    if not read_count and not pool.counts_of_4:
        return 0
    copy = pool_take_chained(&pool.entries, &chain.entries)
    if not copy:
        if read_count:
            read_count_release(&pool.read_counts, read_count)
        return 0
    share = i64_load_acquire(&entry.payload)
    share_retain(share)
    entry_start(pool, copy, position(entry.ledger_id, entry.entry_id), share, read_count, counts_read)
    return copy


# A new entry as entry_copy makes, with the bytes in memory of their own, or 0 when memory ran out.
# It has no parsed value: that may point into the bytes that it was parsed from.
cdef inline uint32_t entry_copy_bytes(EntryPool* pool, uint32_t handle, bint counts_read) noexcept nogil:
    cdef Entry* entry = entry_at(pool, handle)
    cdef Payload* payload = payload_copy(&pool.payloads, entry_payload(entry))
    cdef uint32_t read_count
    cdef uint32_t copy = 0
    if payload is NULL:
        return 0
    read_count = entry_hold_reads(pool, handle, True)
    if read_count or pool.counts_of_4:
        copy = entry_new(pool, position(entry.ledger_id, entry.entry_id), payload, read_count, counts_read)
        if not copy and read_count:
            read_count_release(&pool.read_counts, read_count)
    if not copy:
        payload_release(&pool.payloads, payload)
    return copy


# Runs function(context, argument) when this incarnation is deallocated. Once an incarnation, by
# the holder of the only reference.
cdef inline Status entry_on_deallocate(
    EntryPool* pool, uint32_t handle, DeallocateCallback function, void* context, int64_t argument
) noexcept nogil:
    cdef Entry* entry = entry_at(pool, handle)
    cdef uint32_t callback = pool_take(&pool.callbacks)
    cdef Callback* fresh
    if not callback:
        return PML_NO_MEMORY
    fresh = <Callback*>pool_at(&pool.callbacks, callback)
    fresh.function = function
    fresh.context = context
    fresh.argument = argument
    u32_store_relaxed(&fresh.read_count, u32_load_relaxed(&entry.extra) & EXTRA_HANDLE)
    u32_store_relaxed(&entry.extra, callback | EXTRA_IS_CALLBACK
                      | (u32_load_relaxed(&entry.extra) & EXTRA_COUNTS_READ))
    return PML_OK


# True if the entry has an on-deallocate callback. The caller holds the only reference.
cdef inline bint entry_has_callback(const EntryPool* pool, uint32_t handle) noexcept nogil:
    return (u32_load_relaxed(&entry_at(pool, handle).extra) & EXTRA_IS_CALLBACK) != 0


# setMessageMetadata: the entry has this value from here, and later copies share it. The function is
# called when no entry has the value any more; see metadata.pxd. PML_EXISTS where the entry has a
# value, and PML_NO_MEMORY: the caller keeps its own.
cdef inline Status entry_attach_metadata(
    EntryPool* pool, uint32_t handle, ReleaseValue function, void* context, int64_t value
) noexcept nogil:
    cdef Entry* entry = entry_at(pool, handle)
    cdef int64_t seen = i64_load_acquire(&entry.payload)
    cdef Metadata* metadata
    if seen & PAYLOAD_IS_PARSED:
        return PML_EXISTS
    metadata = metadata_new(seen, function, context, value)
    if metadata is NULL:
        return PML_NO_MEMORY
    # Fails when another thread was first.
    if i64_cas_strong_acq_rel(&entry.payload, &seen, <int64_t>metadata | PAYLOAD_IS_PARSED):
        return PML_OK
    release(metadata)
    return PML_EXISTS


# True if the entry has a parsed value, which is stored then.
cdef inline bint entry_metadata(
    const EntryPool* pool, uint32_t handle, int64_t* value
) noexcept nogil:
    cdef int64_t share = i64_load_acquire(&entry_at(pool, handle).payload)
    if share & PAYLOAD_IS_PARSED:
        value[0] = share_metadata(share).value
        return True
    return False


# maybeCreate: no handler unless reads are expected. False when memory ran out; nothing changed.
cdef inline bint read_count_maybe_new(
    EntryPool* pool, int32_t expected, uint32_t* handle
) noexcept nogil:
    handle[0] = 0
    if expected > 0:
        handle[0] = read_count_new(&pool.read_counts, expected)
        return handle[0] != 0
    return True


# References ------------------------------------------------------------------------------------

cdef inline bint entry_retain(EntryPool* pool, uint32_t handle) noexcept nogil:
    return refcount_retain(&entry_at(pool, handle).references)


cdef inline ReleaseResult entry_release(
    EntryPool* pool, uint32_t handle, int32_t references
) noexcept nogil:
    cdef ReleaseResult result = refcount_release(&entry_at(pool, handle).references, references)
    cdef BlockChain blocks = BlockChain(NULL, NULL, 0, 0)
    if result == RELEASED_LAST:
        entry_deallocate(pool, entry_at(pool, handle), &blocks)
        payload_memory_give_all(&pool.payloads, &blocks)
        pool_give(&pool.entries, handle)
    return result


# entry_release, but an entry that was released by this, and the memory of its payload, join a
# chain, which the caller gives back by entry_give_chain.
cdef inline ReleaseResult entry_release_chained(
    EntryPool* pool, uint32_t handle, int32_t references, EntryChain* chain
) noexcept nogil:
    cdef Entry* entry = entry_at(pool, handle)
    cdef ReleaseResult result = refcount_release(&entry.references, references)
    if result == RELEASED_LAST:
        entry_deallocate(pool, entry, &chain.blocks)
        pool_chain(&chain.entries, handle, &entry.payload)
    return result


# Gives a chain back, which is empty afterwards.
cdef inline void entry_give_chain(EntryPool* pool, EntryChain* chain) noexcept nogil:
    payload_memory_give_all(&pool.payloads, &chain.blocks)
    pool_give_all(&pool.entries, &chain.entries)


# Everything but the way to the pool, by the thread whose release was the last.
cdef inline void entry_deallocate(EntryPool* pool, Entry* entry, BlockChain* blocks) noexcept nogil:
    cdef uint32_t read_count = entry_reads(pool, entry)
    cdef uint32_t extra = u32_load_relaxed(&entry.extra)
    if read_count and extra & EXTRA_COUNTS_READ:
        read_count_mark_read(&pool.read_counts, read_count, pool.counts_of_4)
    if extra & EXTRA_IS_CALLBACK:
        entry_run_callback(pool, extra & EXTRA_HANDLE)
    share_release(&pool.payloads, i64_load_acquire(&entry.payload), blocks)
    if read_count:
        read_count_release(&pool.read_counts, read_count)
    entry.ledger_id = -1
    entry.entry_id = -1
    u32_store_relaxed(&entry.extra, 0)


cdef inline void entry_run_callback(EntryPool* pool, uint32_t handle) noexcept nogil:
    cdef Callback* callback = <Callback*>pool_at(&pool.callbacks, handle)
    cdef DeallocateCallback function = callback.function
    cdef void* context = callback.context
    cdef int64_t argument = callback.argument
    pool_give(&pool.callbacks, handle)
    function(context, argument)


# Questions; the caller holds a reference --------------------------------------------------------

cdef inline int32_t entry_references(const EntryPool* pool, uint32_t handle) noexcept nogil:
    return refcount_value(&entry_at(pool, handle).references)


# Bytes of the payload.
cdef inline uint32_t entry_length(const EntryPool* pool, uint32_t handle) noexcept nogil:
    return payload_length(entry_payload(entry_at(pool, handle)))


cdef inline bint entry_matches(const EntryPool* pool, uint32_t handle, Position at) noexcept nogil:
    return entry_is_at(entry_at(pool, handle), at)


cdef inline bint entry_is_at(const Entry* entry, Position at) noexcept nogil:
    return entry.entry_id == at.entry_id and entry.ledger_id == at.ledger_id


# Accesses ----------------------------------------------------------------------------------------

# Inside the write section of the entry's wrapper, like the next one.
cdef inline bint entry_was_accessed(const EntryPool* pool, uint32_t handle) noexcept nogil:
    return refcount_was_marked(&entry_at(pool, handle).references)


cdef inline void entry_forget_access(EntryPool* pool, uint32_t handle) noexcept nogil:
    refcount_forget_mark(&entry_at(pool, handle).references)


# Expected reads; the caller holds a reference to the entry ----------------------------------------

# The cell whose lower bits name the read count.
cdef inline pml_u32* entry_reads_cell(const EntryPool* pool, Entry* entry) noexcept nogil:
    cdef uint32_t extra = u32_load_relaxed(&entry.extra)
    if extra & EXTRA_IS_CALLBACK:
        return &(<Callback*>pool_at(&pool.callbacks, extra & EXTRA_HANDLE)).read_count
    return &entry.extra


# The handle of the shared read count, 0 when no read was expected and nobody shares it yet. Of a
# cached entry it may be replaced at any time, but inside the write section of its wrapper.
cdef inline uint32_t entry_read_count(const EntryPool* pool, uint32_t handle) noexcept nogil:
    return entry_reads(pool, entry_at(pool, handle))


cdef inline uint32_t entry_reads(const EntryPool* pool, Entry* entry) noexcept nogil:
    # Pairs with the release of the thread that made the read count or let the entry adopt it.
    return u32_load_acquire(entry_reads_cell(pool, entry)) & EXTRA_HANDLE


# The read count with a reference for the caller. If there is none, a new one of 0 with `create`,
# and otherwise 0; also 0 when memory ran out. With counts_of_4 none is made.
cdef inline uint32_t entry_hold_reads(EntryPool* pool, uint32_t handle, bint create) noexcept nogil:
    cdef pml_u32* cell = entry_reads_cell(pool, entry_at(pool, handle))
    cdef uint32_t seen = u32_load_acquire(cell)
    cdef uint32_t fresh
    while True:
        if seen & EXTRA_HANDLE:
            # A read count that was replaced before this may have been given back, and be another
            # entry's now.
            if read_count_retain(&pool.read_counts, seen & EXTRA_HANDLE):
                fresh = u32_load_acquire(cell)
                if (fresh ^ seen) & EXTRA_HANDLE == 0:
                    return seen & EXTRA_HANDLE
                read_count_release(&pool.read_counts, seen & EXTRA_HANDLE)
            seen = u32_load_acquire(cell)
            continue
        fresh = read_count_new(&pool.read_counts, 0) if create and not pool.counts_of_4 else 0
        if not fresh:
            return 0
        read_count_retain(&pool.read_counts, fresh)
        # Fails when another thread was first.
        if u32_cas_strong_acq_rel(cell, &seen, seen | fresh):
            return fresh
        read_count_release(&pool.read_counts, fresh)
        read_count_release(&pool.read_counts, fresh)


# updateExpectedReadCount: the entry shares the newest addition's read count from here, also none.
cdef inline void entry_adopt_reads(EntryPool* pool, uint32_t handle, uint32_t newest) noexcept nogil:
    cdef pml_u32* cell = entry_reads_cell(pool, entry_at(pool, handle))
    cdef uint32_t adopted = entry_hold_reads(pool, newest, False)
    cdef uint32_t seen = u32_load_acquire(cell)
    # Fails when a copy made a read count meanwhile.
    while not u32_cas_strong_acq_rel(cell, &seen, (seen & ~<uint32_t>EXTRA_HANDLE) | adopted):
        pass
    if seen & EXTRA_HANDLE:
        read_count_release(&pool.read_counts, seen & EXTRA_HANDLE)


# One more read is expected, as of an entry that joins a replay queue. False when memory ran out.
# With counts_of_4 an entry without a read count stays without.
cdef inline bint entry_expect_read(EntryPool* pool, uint32_t handle) noexcept nogil:
    cdef uint32_t read_count = entry_hold_reads(pool, handle, True)
    if not read_count:
        return pool.counts_of_4
    read_count_increment(&pool.read_counts, read_count)
    read_count_release(&pool.read_counts, read_count)
    return True


# Reads expected, 0 where none ever were; it may be negative with counts_of_4 or under stash_queue.
cdef inline int32_t entry_expected_reads(EntryPool* pool, uint32_t handle) noexcept nogil:
    cdef uint32_t read_count = entry_hold_reads(pool, handle, False)
    cdef int32_t expected
    if not read_count:
        return 0
    expected = read_count_value(&pool.read_counts, read_count)
    read_count_release(&pool.read_counts, read_count)
    return expected


# A copy that nobody was given marks no read.
cdef inline void entry_not_delivered(EntryPool* pool, uint32_t handle) noexcept nogil:
    cdef Entry* entry = entry_at(pool, handle)
    cdef uint32_t seen = u32_load_relaxed(&entry.extra)
    # Fails when another thread made a read count.
    while not u32_cas_strong_acq_rel(&entry.extra, &seen, seen & ~<uint32_t>EXTRA_COUNTS_READ):
        pass


# Inside the write section of the entry's wrapper, or for an entry that is not cached.
cdef inline bint entry_has_expected_reads(const EntryPool* pool, uint32_t handle) noexcept nogil:
    cdef uint32_t read_count = entry_read_count(pool, handle)
    return read_count != 0 and read_count_value(&pool.read_counts, read_count) >= 1
