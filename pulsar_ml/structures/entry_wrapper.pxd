# The pooled cell between the map, the removal queue and an entry: a stamped lock around
# (place, value), which readers copy without taking the lock.
#
# Origin       RangeCacheEntryWrapper (Pulsar 4.1, PIP-430). Its key is a place of the position map
#              here, so "the same key instance" becomes "the place has the position, in that map".
# Threads      wrapper_look, wrapper_read: any thread, on any wrapper it found, however stale.
#              Everything else: inside the wrapper's write section.
#              wrapper_recycle: the eviction policy after it let go of it, or the thread that
#              emptied a wrapper that was never queued.
# Invariants   EW-1 (I9) place, its position and map, and value that a read used were of one write
#              section.
#              EW-2 (I28) an empty wrapper has no place, no value and size 0.
#              EW-3 (I32) wrapper_clear succeeds once for each incarnation.
#              EW-4 (I29) the lock word is never reset, and each write section counts in it.
# Ordering     See stamped_lock.pxd and map_pages.pxd. Place and value are atomic cells because they
#              are read under an optimistic stamp. The place (release) -> a read (acquire): the
#              page's memory and label. The release fence in stamped_lock_write -> the acquire of
#              the value in wrapper_read: its entry is looked at before the stamp is validated. A
#              slot is taken for as long as its place stands in a wrapper, so its page is labelled
#              anew after a write section of the wrapper: the release fence in node_start -> the
#              acquire fence in stamped_validate: a stamp of before does not validate for a thread
#              that read the later label.
# Reclamation  Type-stable: wrappers go back to their pool and stay mapped.
# Not promised That the entry of a value that was read is alive: retain it, then ask whether the
#              wrapper is unchanged.

from libc.stdint cimport UINT16_MAX, int64_t, uint16_t, uint32_t

from pulsar_ml.structures.map_pages cimport MapMemory, place_position, place_requeues, place_serves
from pulsar_ml.structures.object_pool cimport Pool, pool_give, pool_init, pool_place
from pulsar_ml.structures.position cimport Position
from pulsar_ml.structures.stamped_lock cimport (
    stamped_lock_read, stamped_optimistic, stamped_unlock_read, stamped_validate, stamped_wait,
)
from pulsar_ml.structures.status cimport Status
from pulsar_ml.sync.atomics cimport (
    i64_store_relaxed, pml_i64, pml_u32, u32_load_acquire, u32_load_relaxed, u32_store_relaxed,
    u32_store_release,
)
from pulsar_ml.sync.branch cimport likely


cdef struct EntryWrapper:   # 24 bytes
    pml_u32 lock
    uint32_t size           # bytes counted for this incarnation
    pml_i64 timestamp       # nanoseconds; next free wrapper while pooled
    pml_u32 place           # where it stands in the position map, 0: it is empty
    pml_u32 value           # handle of the entry; one of its references belongs to the wrapper


cdef inline Status wrapper_pool_init(Pool* pool, uint32_t chunk_bits, uint32_t limit) noexcept nogil:
    return pool_init(pool, sizeof(EntryWrapper), <size_t>&(<EntryWrapper*>NULL).timestamp,
                     chunk_bits, limit)


cdef inline EntryWrapper* wrapper_at(const Pool* pool, uint32_t handle) noexcept nogil:
    return <EntryWrapper*>pool_place(pool, handle, sizeof(EntryWrapper))


# Inside the write section of an empty wrapper that stands at this place.
cdef inline void wrapper_fill(
    EntryWrapper* wrapper, uint32_t place, uint32_t value, uint32_t size, int64_t now
) noexcept nogil:
    # Pairs with the acquire of a read: it looks at the page before it validates.
    u32_store_release(&wrapper.place, place)
    u32_store_relaxed(&wrapper.value, value)
    i64_store_relaxed(&wrapper.timestamp, now)
    wrapper.size = size


# Inside the write section.
cdef inline void wrapper_empty(EntryWrapper* wrapper) noexcept nogil:
    u32_store_relaxed(&wrapper.place, 0)
    u32_store_relaxed(&wrapper.value, 0)
    i64_store_relaxed(&wrapper.timestamp, 0)
    wrapper.size = 0


# Inside the write section.
cdef inline bint wrapper_is_empty(const EntryWrapper* wrapper) noexcept nogil:
    return u32_load_relaxed(&wrapper.place) == 0


# Inside the write section: True if this incarnation holds `key` of the map `owner`. Outside, a
# guess.
cdef inline bint wrapper_holds(
    const EntryWrapper* wrapper, const MapMemory* memory, const void* owner, Position key
) noexcept nogil:
    return place_serves(memory, u32_load_acquire(&wrapper.place), owner, key)


# Inside the write section of a wrapper that is not empty.
cdef inline Position wrapper_key(const EntryWrapper* wrapper, const MapMemory* memory) noexcept nogil:
    return place_position(memory, u32_load_relaxed(&wrapper.place))


# Inside the write section, markRemoved: empties the wrapper if it holds `value` at `place` and
# answers the size counted for it; otherwise -1, and nothing changed.
cdef inline int64_t wrapper_clear(EntryWrapper* wrapper, uint32_t place, uint32_t value) noexcept nogil:
    cdef int64_t size
    if u32_load_relaxed(&wrapper.place) != place or u32_load_relaxed(&wrapper.value) != value:
        return -1
    size = wrapper.size
    wrapper_empty(wrapper)
    return size


# The entry under `key` of `owner` as one write section left it, or 0. Takes no lock unless a write
# section is running.
cdef inline uint32_t wrapper_look(
    EntryWrapper* wrapper, const MapMemory* memory, const void* owner, Position key
) noexcept nogil:
    cdef uint32_t stamp = stamped_optimistic(&wrapper.lock)
    cdef bint holds = wrapper_holds(wrapper, memory, owner, key)
    cdef uint32_t value = u32_load_relaxed(&wrapper.value)
    if not stamped_validate(&wrapper.lock, stamp):
        stamped_lock_read(&wrapper.lock)
        holds = wrapper_holds(wrapper, memory, owner, key)
        value = u32_load_relaxed(&wrapper.value)
        stamped_unlock_read(&wrapper.lock)
    return value if holds else 0


# getValue: an entry, which is the one under `key` of `owner` if wrapper_unchanged agrees
# afterwards; or 0, as one write section left it. Waits for a write section that is running.
cdef inline uint32_t wrapper_read(
    const EntryWrapper* wrapper, const MapMemory* memory, const void* owner, Position key,
    uint32_t* stamp
) noexcept nogil:
    cdef uint32_t value
    # Turns when a write section came between and nothing was seen.
    while True:
        stamp[0] = stamped_wait(&wrapper.lock)
        if likely(wrapper_holds(wrapper, memory, owner, key)):
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
cdef inline bint wrapper_unchanged(const EntryWrapper* wrapper, uint32_t stamp) noexcept nogil:
    return stamped_validate(&wrapper.lock, stamp)


# Inside the consumer's write section, the requeue mark (I59); `charge` is 1 when it counts, else 0.
cdef inline void wrapper_mark_requeued(
    EntryWrapper* wrapper, const MapMemory* memory, int64_t now, uint16_t charge
) noexcept nogil:
    cdef uint16_t* requeues = place_requeues(memory, u32_load_relaxed(&wrapper.place))
    i64_store_relaxed(&wrapper.timestamp, now)
    if requeues[0] < UINT16_MAX:
        requeues[0] += charge


# How often passes kept the entry of a wrapper that is not empty. Inside its write section, or under
# its shared lock.
cdef inline uint16_t wrapper_requeues(const EntryWrapper* wrapper, const MapMemory* memory) noexcept nogil:
    return place_requeues(memory, u32_load_relaxed(&wrapper.place))[0]


cdef inline void wrapper_recycle(Pool* pool, uint32_t handle) noexcept nogil:
    # The fields were emptied inside a write section before; the pool's release publishes them.
    pool_give(pool, handle)
