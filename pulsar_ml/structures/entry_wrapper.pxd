# The pooled cell between the map, the removal queue and an entry: a stamped lock around
# (key, value, owner), which readers copy without taking the lock.
#
# Origin       RangeCacheEntryWrapper (Pulsar 4.1, PIP-430). Keys are values here, so "the same key
#              instance" becomes "equal position and the same owning cache".
# Threads      wrapper_look, wrapper_read: any thread, on any wrapper it found, however stale.
#              Everything else: inside the wrapper's write section.
#              wrapper_recycle: the eviction policy after it let go of it, or the thread that
#              emptied a wrapper that was never queued.
# Invariants   EW-1 (I9) key, value and owner that a read used came from one write section.
#              EW-2 (I28) an empty wrapper has no key, no value, no owner and size 0.
#              EW-3 (I32) wrapper_clear succeeds once for each incarnation.
#              EW-4 (I29) the lock word is never reset, and its count of write sections only grows.
#              EW-5 (I30) an incarnation starts with a requeue count of 0.
# Ordering     See stamped_lock.pxd. Key, value and owner are relaxed cells because they are read
#              under an optimistic stamp. The release fence in stamped_lock_write -> the acquire of
#              the value in wrapper_read: its entry is looked at before the stamp is validated.
# Reclamation  Type-stable: wrappers go back to their pool and stay mapped.
# Not promised The `visits` of a slow reader may land on a later incarnation: a spurious "recently
#              used".

from libc.stdint cimport UINT16_MAX, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from pulsar_ml.structures.object_pool cimport Pool, pool_give, pool_init, pool_place
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.stamped_lock cimport (
    stamped_lock_read, stamped_optimistic, stamped_unlock_read, stamped_validate, stamped_wait,
)
from pulsar_ml.structures.status cimport Status
from pulsar_ml.sync.atomics cimport (
    i64_load_relaxed, i64_store_relaxed, pml_i64, pml_u32, pml_u64, pml_u8, u32_load_acquire,
    u32_load_relaxed, u32_store_relaxed, u8_store_relaxed,
)
from pulsar_ml.sync.branch cimport likely


cdef enum:
    NO_LEDGER = -1          # the ledger id of an empty wrapper's key


cdef struct EntryWrapper:   # 48 bytes
    pml_u64 lock
    pml_i64 ledger_id
    pml_i64 entry_id
    pml_i64 timestamp       # nanoseconds; next free wrapper while pooled
    pml_u32 value           # handle of the entry; one of its references belongs to the wrapper
    pml_u32 owner           # handle of the range cache
    uint32_t size           # bytes counted for this incarnation
    uint16_t requeue_count  # stays at its largest value
    pml_u8 visits           # outside the lock; hits that s3_fifo counts, 0 to 3


cdef inline Status wrapper_pool_init(Pool* pool, uint32_t chunk_bits, uint32_t limit) noexcept nogil:
    return pool_init(pool, sizeof(EntryWrapper), <size_t>&(<EntryWrapper*>NULL).timestamp,
                     chunk_bits, limit)


cdef inline EntryWrapper* wrapper_at(const Pool* pool, uint32_t handle) noexcept nogil:
    return <EntryWrapper*>pool_place(pool, handle, sizeof(EntryWrapper))


# Inside the write section of a wrapper just taken from the pool.
cdef inline void wrapper_fill(
    EntryWrapper* wrapper, Position key, uint32_t value, uint32_t owner, uint32_t size, int64_t now
) noexcept nogil:
    i64_store_relaxed(&wrapper.ledger_id, key.ledger_id)
    i64_store_relaxed(&wrapper.entry_id, key.entry_id)
    u32_store_relaxed(&wrapper.value, value)
    u32_store_relaxed(&wrapper.owner, owner)
    i64_store_relaxed(&wrapper.timestamp, now)
    wrapper.size = size
    wrapper.requeue_count = 0
    u8_store_relaxed(&wrapper.visits, 0)


# Inside the write section.
cdef inline void wrapper_empty(EntryWrapper* wrapper) noexcept nogil:
    i64_store_relaxed(&wrapper.ledger_id, NO_LEDGER)
    i64_store_relaxed(&wrapper.entry_id, NO_LEDGER)
    u32_store_relaxed(&wrapper.value, 0)
    u32_store_relaxed(&wrapper.owner, 0)
    i64_store_relaxed(&wrapper.timestamp, 0)
    wrapper.size = 0
    wrapper.requeue_count = 0


# Inside the write section: True if this incarnation holds `key` for `owner`. Outside, a guess.
cdef inline bint wrapper_holds(const EntryWrapper* wrapper, Position key, uint32_t owner) noexcept nogil:
    return (i64_load_relaxed(&wrapper.entry_id) == key.entry_id
            and i64_load_relaxed(&wrapper.ledger_id) == key.ledger_id
            and u32_load_relaxed(&wrapper.owner) == owner)


# Inside the write section: the key, whose ledger is NO_LEDGER in an empty wrapper.
cdef inline Position wrapper_key(const EntryWrapper* wrapper) noexcept nogil:
    return position(i64_load_relaxed(&wrapper.ledger_id), i64_load_relaxed(&wrapper.entry_id))


# Inside the write section, markRemoved: empties the wrapper if it holds `value` under `key` for
# `owner` and answers the size counted for it; otherwise -1, and nothing changed.
cdef inline int64_t wrapper_clear(
    EntryWrapper* wrapper, Position key, uint32_t value, uint32_t owner
) noexcept nogil:
    cdef int64_t size
    if not wrapper_holds(wrapper, key, owner) or u32_load_relaxed(&wrapper.value) != value:
        return -1
    size = wrapper.size
    wrapper_empty(wrapper)
    return size


# The entry under `key` of `owner` as one write section left it, or 0. Takes no lock unless a write
# section is running.
cdef inline uint32_t wrapper_look(EntryWrapper* wrapper, Position key, uint32_t owner) noexcept nogil:
    cdef uint64_t stamp = stamped_optimistic(&wrapper.lock)
    cdef int64_t ledger_id = i64_load_relaxed(&wrapper.ledger_id)
    cdef int64_t entry_id = i64_load_relaxed(&wrapper.entry_id)
    cdef uint32_t value = u32_load_relaxed(&wrapper.value)
    cdef uint32_t holder = u32_load_relaxed(&wrapper.owner)
    if not stamped_validate(&wrapper.lock, stamp):
        stamped_lock_read(&wrapper.lock)
        ledger_id = i64_load_relaxed(&wrapper.ledger_id)
        entry_id = i64_load_relaxed(&wrapper.entry_id)
        value = u32_load_relaxed(&wrapper.value)
        holder = u32_load_relaxed(&wrapper.owner)
        stamped_unlock_read(&wrapper.lock)
    if entry_id != key.entry_id or ledger_id != key.ledger_id or holder != owner:
        return 0
    return value


# getValue: an entry, which is the one under `key` of `owner` if wrapper_unchanged agrees
# afterwards; or 0, as one write section left it. Waits for a write section that is running.
cdef inline uint32_t wrapper_read(
    const EntryWrapper* wrapper, Position key, uint32_t owner, uint64_t* stamp
) noexcept nogil:
    cdef uint32_t value
    # Turns when a write section came between and nothing was seen.
    while True:
        stamp[0] = stamped_wait(&wrapper.lock)
        if likely(wrapper_holds(wrapper, key, owner)):
            # Pairs with the fence before wrapper_fill: the caller looks at the entry before it
            # validates.
            value = u32_load_acquire(&wrapper.value)
            if likely(value != 0):
                return value
        # A thread that saw the key go must not find it in the map afterwards.
        if wrapper_unchanged(wrapper, stamp[0]):
            return 0


# True if no write section began since wrapper_read answered the stamp. Then its answer is of one
# section, the wrapper kept its reference to the entry meanwhile, and a reference retained in
# between is of that entry.
cdef inline bint wrapper_unchanged(const EntryWrapper* wrapper, uint64_t stamp) noexcept nogil:
    return stamped_validate(&wrapper.lock, stamp)


# Inside the consumer's write section, the requeue mark (I59); `charge` is 1 when it counts, else 0.
cdef inline void wrapper_mark_requeued(EntryWrapper* wrapper, int64_t now, uint16_t charge) noexcept nogil:
    i64_store_relaxed(&wrapper.timestamp, now)
    if wrapper.requeue_count < UINT16_MAX:
        wrapper.requeue_count += charge


cdef inline void wrapper_recycle(Pool* pool, uint32_t handle) noexcept nogil:
    # The fields were emptied inside a write section before; the pool's release publishes them.
    pool_give(pool, handle)
