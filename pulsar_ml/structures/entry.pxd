# An entry: a position, a share of a payload, and perhaps a share of an expected-read count, pooled
# and reference-counted.
#
# Origin       EntryImpl (Pulsar 4.1). The payload is a shared native buffer instead of a Netty ByteBuf;
#              on-deallocate callbacks are one native function with one argument.
# Threads      retain, release, copies: any thread that holds a reference (retain also tries on a stale
#              handle). Setters: the creator, before others know the handle.
# Invariants   EN-1 (I12-I14) see refcount.pxd.
#              EN-2 (I18) fields are read under a reference only; a stale handle may only be retained.
#              EN-3 (I69) a counting copy marks its read once, when it is deallocated.
#              EN-4 (I20) the callback runs once an incarnation, before the payload is given back.
#              EN-5 (I2, I19) payload bytes do not change and stay while any entry shares them.
# Ordering     See refcount.pxd and object_pool.pxd. Fields are plain: written before publication, read
#              after a successful retain.
# Reclamation  The thread whose release reached zero gives everything back. Entry memory is type-stable;
#              the payload is freed.
# Not promised That entry_retain on a stale handle retains the entry it once named: compare the position
#              afterwards.

from libc.stdint cimport int32_t, int64_t, uint32_t

from pulsar_ml.structures.object_pool cimport (
    Pool, pool_at, pool_destroy, pool_give, pool_init, pool_take,
)
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.read_count cimport (
    read_count_mark_read, read_count_new, read_count_pool_init, read_count_release, read_count_retain,
    read_count_value,
)
from pulsar_ml.structures.refcount cimport (
    RELEASED_LAST, ReleaseResult, refcount_publish, refcount_release,
    refcount_retain, refcount_value,
)
from pulsar_ml.structures.status cimport PML_NO_MEMORY, PML_OK, Status
from pulsar_ml.sync.atomics cimport (
    i64_load_relaxed, i64_store_relaxed, pml_i32, pml_i64,
)
from pulsar_ml.sync.memory cimport allocate, release


ctypedef void (*DeallocateCallback)(void* context, int64_t argument) noexcept nogil


# The bytes of an entry, shared by its copies. The bytes follow the header.
cdef struct Payload:
    pml_i32 references
    uint32_t length


# What an entry with an on-deallocate callback has beyond the others.
cdef struct Callback:
    DeallocateCallback function
    void* context
    int64_t argument
    pml_i64 link            # next free callback while pooled
    uint32_t read_count     # the entry's, moved here


cdef enum:
    # `extra` of an entry: a handle and two marks.
    EXTRA_HANDLE = 0x3FFFFFFF
    EXTRA_IS_CALLBACK = 0x40000000  # the handle names a Callback, otherwise a read count (0: none)
    EXTRA_COUNTS_READ = 0x80000000  # deallocation marks a read (decreaseReadCountOnRelease)


cdef struct Entry:          # 32 bytes
    int64_t ledger_id
    int64_t entry_id
    pml_i64 payload         # address of the Payload; next free entry while pooled
    pml_i32 references
    uint32_t extra


cdef struct EntryPool:
    Pool entries
    Pool read_counts
    Pool callbacks


# limit: most entries, at most EXTRA_HANDLE.
cdef inline Status entry_pool_init(EntryPool* pool, uint32_t chunk_bits, uint32_t limit) noexcept nogil:
    cdef Status status = pool_init(&pool.entries, sizeof(Entry), <size_t>&(<Entry*>NULL).payload,
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


cdef inline Entry* entry_at(const EntryPool* pool, uint32_t handle) noexcept nogil:
    return <Entry*>pool_at(&pool.entries, handle)


# Payloads --------------------------------------------------------------------------------------

# Uninitialised bytes with one reference, or NULL. The creator fills them before it shares them.
cdef inline Payload* payload_new(uint32_t length) noexcept nogil:
    cdef Payload* payload = <Payload*>allocate(sizeof(Payload) + <size_t>length)
    if payload is not NULL:
        payload.length = length
        refcount_publish(&payload.references)
    return payload


cdef inline char* payload_bytes(Payload* payload) noexcept nogil:
    return <char*>payload + sizeof(Payload)


cdef inline void payload_release(Payload* payload) noexcept nogil:
    if refcount_release(&payload.references, 1) == RELEASED_LAST:
        release(payload)


cdef inline Payload* entry_payload(const Entry* entry) noexcept nogil:
    return <Payload*>i64_load_relaxed(&entry.payload)


# Creation --------------------------------------------------------------------------------------

# An entry with one reference that takes over the caller's references to payload and read_count
# (0: none), or 0 when memory ran out; then the caller keeps both.
cdef inline uint32_t entry_new(
    EntryPool* pool, Position at, Payload* payload, uint32_t read_count, bint counts_read
) noexcept nogil:
    cdef uint32_t handle = pool_take(&pool.entries)
    cdef Entry* entry
    if not handle:
        return 0
    entry = entry_at(pool, handle)
    entry.ledger_id = at.ledger_id
    entry.entry_id = at.entry_id
    i64_store_relaxed(&entry.payload, <int64_t>payload)
    entry.extra = read_count | (EXTRA_COUNTS_READ if counts_read else 0)
    # Last: from here a stale handle can retain this incarnation.
    refcount_publish(&entry.references)
    return handle


# A new entry for the same bytes and the same expected reads, or 0 when memory ran out. The caller
# holds a reference to the original. A dispatch copy counts its read when it is released.
cdef inline uint32_t entry_copy(EntryPool* pool, uint32_t handle, bint counts_read) noexcept nogil:
    cdef Entry* entry = entry_at(pool, handle)
    cdef uint32_t read_count = entry_read_count(pool, handle)
    cdef uint32_t copy
    refcount_retain(&entry_payload(entry).references)
    if read_count:
        read_count_retain(&pool.read_counts, read_count)
    copy = entry_new(pool, position(entry.ledger_id, entry.entry_id), entry_payload(entry),
                     read_count, counts_read)
    if not copy:
        payload_release(entry_payload(entry))
        if read_count:
            read_count_release(&pool.read_counts, read_count)
    return copy


# Runs function(context, argument) when this incarnation is deallocated. Once an incarnation, by
# the holder of the only reference.
cdef inline Status entry_on_deallocate(
    EntryPool* pool, uint32_t handle, DeallocateCallback function, void* context, int64_t argument
) noexcept nogil:
    cdef Entry* entry = entry_at(pool, handle)
    cdef uint32_t callback = pool_take(&pool.callbacks)
    cdef Callback* made
    if not callback:
        return PML_NO_MEMORY
    made = <Callback*>pool_at(&pool.callbacks, callback)
    made.function = function
    made.context = context
    made.argument = argument
    made.read_count = entry.extra & EXTRA_HANDLE
    entry.extra = callback | EXTRA_IS_CALLBACK | (entry.extra & EXTRA_COUNTS_READ)
    return PML_OK


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
    if result == RELEASED_LAST:
        entry_deallocate(pool, handle)
    return result


cdef inline void entry_deallocate(EntryPool* pool, uint32_t handle) noexcept nogil:
    cdef Entry* entry = entry_at(pool, handle)
    cdef uint32_t read_count = entry_read_count(pool, handle)
    if read_count and entry.extra & EXTRA_COUNTS_READ:
        read_count_mark_read(&pool.read_counts, read_count)
    if entry.extra & EXTRA_IS_CALLBACK:
        entry_run_callback(pool, entry.extra & EXTRA_HANDLE)
    payload_release(entry_payload(entry))
    if read_count:
        read_count_release(&pool.read_counts, read_count)
    entry.ledger_id = -1
    entry.entry_id = -1
    entry.extra = 0
    pool_give(&pool.entries, handle)


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


cdef inline bint entry_matches(const EntryPool* pool, uint32_t handle, Position at) noexcept nogil:
    cdef Entry* entry = entry_at(pool, handle)
    return entry.entry_id == at.entry_id and entry.ledger_id == at.ledger_id


# The handle of the shared read count, 0 when no read was expected.
cdef inline uint32_t entry_read_count(const EntryPool* pool, uint32_t handle) noexcept nogil:
    cdef uint32_t extra = entry_at(pool, handle).extra
    if extra & EXTRA_IS_CALLBACK:
        return (<Callback*>pool_at(&pool.callbacks, extra & EXTRA_HANDLE)).read_count
    return extra & EXTRA_HANDLE


cdef inline bint entry_has_expected_reads(const EntryPool* pool, uint32_t handle) noexcept nogil:
    cdef uint32_t read_count = entry_read_count(pool, handle)
    return read_count != 0 and read_count_value(&pool.read_counts, read_count) >= 1
