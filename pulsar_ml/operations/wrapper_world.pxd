# The world of the operations on wrappers: slots that play the map, a queue that plays the removal
# queue, the pool, and each thread's memory; and the oracles that look at a wrapper.
#
# A value tells key, owner and incarnation, so a read that mixes two write sections shows.

from libc.stdint cimport int32_t, int64_t, uint32_t

from pulsar_ml.harness.subjects.subject cimport PmlViolation
from pulsar_ml.operations.support cimport violate
from pulsar_ml.structures.entry_wrapper cimport (
    EntryWrapper, wrapper_at, wrapper_is_empty, wrapper_pool_init, wrapper_recycle,
)
from pulsar_ml.structures.map_pages cimport (
    SLOT_BITS, MapMemory, map_memory_destroy, map_memory_init, map_place, node_start, page_at,
)
from pulsar_ml.structures.mpsc_queue cimport MpscQueue, mpsc_destroy, mpsc_init
from pulsar_ml.structures.object_pool cimport Pool, pool_destroy, pool_take
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.stamped_lock cimport STAMPED_WRITER
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport (
    pml_u32, u32_fetch_add_relaxed, u32_fetch_sub_relaxed, u32_load_relaxed,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    EW_KEYS = 16
    EW_OWNERS = 3
    EW_LEDGER = 7
    EW_PAGE_BITS = 2        # pages of a chunk: one for each owner, and 0
    EW_STALE = 8            # handles that a thread remembers
    EW_CHURNED = 1 << 30    # added to values that were never linked

cdef extern from *:
    """
    /* Real threads meet by luck, so they repeat what they do; the engine's meet by its choice. It
     * also makes a world for each execution of a few operations. */
    #ifdef PML_CHECKED
    enum {
        EW_WATCHED = 64, EW_LIMIT = 1 << 12, EW_FILLS = 2, EW_MOST_TURNS = 2, EW_MOST_REPEATS = 2
    };
    #else
    enum {
        EW_WATCHED = 1024, EW_LIMIT = 1 << 20, EW_FILLS = 32, EW_MOST_TURNS = 8,
        EW_MOST_REPEATS = 64
    };
    #endif
    """
    enum:
        EW_WATCHED          # handles whose users are counted
        EW_LIMIT
        EW_FILLS            # fills of one write section of churn
        EW_MOST_TURNS
        EW_MOST_REPEATS


cdef struct StaleHandle:
    uint32_t handle
    int32_t key


cdef struct WrapperThread:
    StaleHandle[8] stale
    int64_t n_stale
    int64_t incarnations
    int64_t turns           # of churn
    int64_t filled          # queued incarnations, and their bytes
    int64_t filled_bytes
    int64_t cleared
    int64_t cleared_bytes
    int64_t dropped
    uint32_t sections[EW_WATCHED]   # the latest write section seen of each watched handle
    char[128] apart


cdef struct WrapperWorld:
    Pool pool
    MapMemory map           # a page for each owner, for ever: keys are slots of it
    char[3] owners          # their addresses are those of maps
    MpscQueue queue
    WrapperThread* threads
    int32_t n_threads
    int64_t n_keys
    pml_u32 churned         # the wrapper of the latest churn, for stale readers
    pml_u32[16] slots       # by key
    pml_u32 users[EW_WATCHED]       # takers less givers of a watched handle


cdef inline Position ew_position(int64_t key) noexcept nogil:
    return position(EW_LEDGER, key)


cdef inline const void* ew_owner(const WrapperWorld* world, int64_t key) noexcept nogil:
    return &world.owners[key % EW_OWNERS]


cdef inline uint32_t ew_place(int64_t key) noexcept nogil:
    return map_place(<uint32_t>(1 + key % EW_OWNERS), key)


# A value that tells its key and thereby its owner; never 0.
cdef inline uint32_t ew_value(int64_t key, int64_t incarnation) noexcept nogil:
    return <uint32_t>(((incarnation & 0x3FFFFFF) << 4 | key) + 1)


# True if the value is of an incarnation that is never linked nor queued.
cdef inline bint ew_is_churned(uint32_t value) noexcept nogil:
    return value > EW_CHURNED


cdef inline int64_t ew_value_key(uint32_t value) noexcept nogil:
    return (value - 1) & 15


cdef inline uint32_t ew_size(uint32_t value) noexcept nogil:
    return value % 1009 + 1


# Oracles ------------------------------------------------------------------------------------------

# SL-1, I29: what one thread sees of the lock word's section count never goes back.
cdef inline void ew_watch_lock(
    WrapperWorld* world, int32_t thread, uint32_t handle, PmlViolation* violation
) noexcept nogil:
    cdef uint32_t section
    if handle >= EW_WATCHED:
        return
    section = u32_load_relaxed(&wrapper_at(&world.pool, handle).lock) // (STAMPED_WRITER << 1)
    if section < world.threads[thread].sections[handle]:
        violate(violation, b"I29", b"wrapper %lld went back from write section %lld to %lld", handle,
                <int64_t>world.threads[thread].sections[handle], <int64_t>section)
    world.threads[thread].sections[handle] = section


# A wrapper from the pool, used by nobody else; 0 without memory.
cdef inline uint32_t ew_take(WrapperWorld* world, PmlViolation* violation) noexcept nogil:
    cdef uint32_t handle = pool_take(&world.pool)
    if handle and handle < EW_WATCHED and u32_fetch_add_relaxed(&world.users[handle], 1) != 0:
        violate(violation, b"I24", b"wrapper %lld was taken while in use", handle, 0, 0)
    return handle


cdef inline void ew_recycle(WrapperWorld* world, uint32_t handle, PmlViolation* violation) noexcept nogil:
    if handle < EW_WATCHED and u32_fetch_sub_relaxed(&world.users[handle], 1) != 1:
        violate(violation, b"I24", b"wrapper %lld was recycled while in its pool", handle, 0, 0)
        return
    wrapper_recycle(&world.pool, handle)


# I28, inside the write section.
cdef inline void ew_expect_empty(const EntryWrapper* wrapper, PmlViolation* violation) noexcept nogil:
    if not wrapper_is_empty(wrapper) or u32_load_relaxed(&wrapper.value) or wrapper.size:
        violate(violation, b"I28", b"an empty wrapper has place %lld, value %lld, size %lld",
                u32_load_relaxed(&wrapper.place), u32_load_relaxed(&wrapper.value), wrapper.size)


# I9, I11: a value that was read under a key is one of that key.
cdef inline void ew_expect_value(int64_t key, uint32_t value, PmlViolation* violation) noexcept nogil:
    if ew_value_key(value) != key:
        violate(violation, b"I9", b"a read under key %lld answers value %lld of key %lld", key, value,
                ew_value_key(value))


# Life ---------------------------------------------------------------------------------------------

cdef inline void* ew_create(const int64_t* settings, int32_t threads) noexcept nogil:
    cdef WrapperWorld* world = <WrapperWorld*>allocate_zeroed(1, sizeof(WrapperWorld))
    if world is NULL:
        return NULL
    world.n_threads = threads
    world.n_keys = settings[0]
    world.threads = <WrapperThread*>allocate_zeroed(threads, sizeof(WrapperThread))
    if (world.threads is NULL or not ew_make_pages(world)
            or wrapper_pool_init(&world.pool, <uint32_t>settings[1], EW_LIMIT) != PML_OK
            or mpsc_init(&world.queue, <uint32_t>settings[2]) != PML_OK):
        ew_release(world)
        return NULL
    return world


cdef inline bint ew_make_pages(WrapperWorld* world) noexcept nogil:
    cdef uint32_t page
    cdef int i
    if map_memory_init(&world.map, SLOT_BITS + EW_PAGE_BITS, 1 + EW_OWNERS) != PML_OK:
        return False
    for i in range(EW_OWNERS):
        page = pool_take(&world.map.pages)
        if not page:
            return False
        node_start(&page_at(&world.map, page).node, &world.owners[(page - 1) % EW_OWNERS], EW_LEDGER, 0)
    return True


cdef inline void ew_release(WrapperWorld* world) noexcept nogil:
    pool_destroy(&world.pool)
    map_memory_destroy(&world.map)
    release(world.threads)
    release(world)


cdef inline void ew_destroy(void* instance) noexcept nogil:
    cdef WrapperWorld* world = <WrapperWorld*>instance
    mpsc_destroy(&world.queue)
    ew_release(world)
