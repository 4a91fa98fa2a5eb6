# The two kinds of node of the position map: pages of 64 wrapper slots, and branches of 64 pages.
#
# Origin       The 64-slot pages of Pulsar's main line (5.0), which are sealed when they become
#              empty.
# Threads      Any thread; labels are read under a reservation.
# Invariants   MP-1 (I39) the count is the number of occupied plus reserved slots; at zero it
#              becomes SEALED, takes nothing more, and the node is unlinked.
#              MP-2 the label (map, ledger, first id) is stable while a reservation is held.
#              MP-3 the version only grows: each incarnation has its own.
#              MP-4 (I30) who takes a slot sets its requeues and its visits to zero.
# Ordering     node_start (release) -> node_reserve (acquire): the label of an incarnation. Each
#              node_leave (acquire and release) -> the one that seals: all slots were emptied
#              before. The version (release) -> map_recall (acquire): the label, and that earlier
#              incarnations show nothing more. The release fence before a label is written -> the
#              acquire fence in map_shows: the same, to a thread that read this label beside the
#              version before.
# Reclamation  Pooled and type-stable: a stale handle may name a node that serves another range by
#              now.
#              A place stays what it is while its slot is taken or reserved.
# Not promised The `visits` of a slow reader may land on a later entry of the place: a spurious
#              "recently used". A reservation says nothing about the label: compare it afterwards.
#              Nor does the label say that the node is linked: its creator may not have linked it
#              yet, or lose to another one.

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t

from pulsar_ml.structures.object_pool cimport Pool, pool_destroy, pool_init, pool_place
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.status cimport PML_OK, Status
from pulsar_ml.sync.atomics cimport (
    fence_release, i32_cas_weak_acq_rel, i32_cas_weak_acquire, i32_load_acquire, i32_load_relaxed,
    i32_store_release, i64_load_relaxed, i64_store_relaxed, pml_i32, pml_i64, pml_ptr, pml_u32, pml_u64,
    pml_u8, ptr_load_relaxed, ptr_store_relaxed, u32_load_relaxed, u32_store_relaxed, u64_load_relaxed,
    u64_store_release, u8_store_relaxed,
)


cdef enum:
    SLOT_BITS = 6
    SLOTS = 64
    BLOCK_BITS = 12         # ids of a branch: 64 pages of 64
    MOST_PAGES = 1 << 26    # a place has 32 bits
    SEALED = -1


cdef inline int64_t map_block(int64_t entry_id) noexcept nogil:
    return entry_id >> BLOCK_BITS


cdef inline int64_t map_page_slot(int64_t entry_id) noexcept nogil:
    return (entry_id >> SLOT_BITS) & (SLOTS - 1)


cdef inline int64_t map_entry_slot(int64_t entry_id) noexcept nogil:
    return entry_id & (SLOTS - 1)


cdef inline int64_t map_first_id(int64_t entry_id) noexcept nogil:
    return entry_id & ~<int64_t>(SLOTS - 1)


# The common part of a page and a branch. The label says which ids the node serves.
cdef struct MapNode:
    pml_i32 count           # occupied + reserved slots, or SEALED
    pml_u32 parent          # the branch of a page, 1 for a branch in a directory; 0: not linked
    pml_ptr owner           # label: the map
    pml_i64 ledger_id       # label
    pml_i64 first_id        # label: the first entry id it serves
    pml_u64 version         # counts incarnations
    pml_i64 link            # next free node while pooled


cdef struct MapPage:
    MapNode node
    pml_u32[64] slots       # wrapper handles, 0 when free
    pml_u32[64] shown       # of a slot that is taken: the entry once it can be read; otherwise 0
    # Of what stands in a slot that is taken: fields of its wrapper, which has no room for them.
    uint16_t[64] requeues   # in its write section; stays at its largest value
    pml_u8[64] visits       # outside of it; hits that s3_fifo counts, 0 to 3


cdef struct MapBranch:
    MapNode node
    pml_u64[64] pages       # tag << 32 | page handle; the tag changes with every change


cdef struct MapMemory:
    Pool pages
    Pool branches


cdef inline Status map_memory_init(MapMemory* memory, uint32_t chunk_bits, uint32_t limit) noexcept nogil:
    cdef uint32_t bits = chunk_bits - SLOT_BITS if chunk_bits > SLOT_BITS else 0
    cdef Status status = pool_init(&memory.pages, sizeof(MapPage), <size_t>&(<MapNode*>NULL).link,
                                   bits, min(limit, <uint32_t>MOST_PAGES))
    if status == PML_OK:
        status = pool_init(&memory.branches, sizeof(MapBranch), <size_t>&(<MapNode*>NULL).link,
                           bits, limit)
    return status


cdef inline void map_memory_destroy(MapMemory* memory) noexcept nogil:
    pool_destroy(&memory.pages)
    pool_destroy(&memory.branches)


cdef inline MapPage* page_at(const MapMemory* memory, uint32_t handle) noexcept nogil:
    return <MapPage*>pool_place(&memory.pages, handle, sizeof(MapPage))


cdef inline MapBranch* branch_at(const MapMemory* memory, uint32_t handle) noexcept nogil:
    return <MapBranch*>pool_place(&memory.branches, handle, sizeof(MapBranch))


# Labels a node taken from its pool, not linked yet; its count holds one reservation, the caller's.
cdef inline void node_start(
    MapNode* node, const void* owner, int64_t ledger_id, int64_t first_id
) noexcept nogil:
    # Pairs with the acquire fence in map_shows: the slots of the incarnation before are empty.
    fence_release()
    ptr_store_relaxed(&node.owner, <void*>owner)
    i64_store_relaxed(&node.ledger_id, ledger_id)
    i64_store_relaxed(&node.first_id, first_id)
    u32_store_relaxed(&node.parent, 0)
    # Pairs with the acquire in map_recall.
    u64_store_release(&node.version, u64_load_relaxed(&node.version) + 1)
    # Pairs with the acquire in node_reserve: a stale handle may reserve from here on.
    i32_store_release(&node.count, 1)


# One more slot of the node is spoken for; False when it is sealed.
cdef inline bint node_reserve(MapNode* node) noexcept nogil:
    cdef int32_t seen = i32_load_relaxed(&node.count)
    # The exchange fails when another thread reserved or gave back.
    while seen != SEALED:
        # Pairs with the release of node_start: the label of the incarnation.
        if i32_cas_weak_acquire(&node.count, &seen, seen + 1):
            return True
    return False


cdef inline bint node_serves(
    const MapNode* node, const void* owner, int64_t ledger_id, int64_t first_id
) noexcept nogil:
    return (i64_load_relaxed(&node.first_id) == first_id
            and i64_load_relaxed(&node.ledger_id) == ledger_id
            and ptr_load_relaxed(&node.owner) == owner)


# Gives so many reservations back; True when they were the last and the node is sealed now. `parent`
# is what the node hung in then: it is set while the creator's reservation is held, so it is final
# once the count shows the caller's alone.
cdef inline bint node_leave(MapNode* node, int32_t reservations, uint32_t* parent) noexcept nogil:
    cdef int32_t seen, after
    # The exchange fails when another thread reserved or left.
    while True:
        seen = i32_load_acquire(&node.count)
        parent[0] = u32_load_relaxed(&node.parent)
        after = SEALED if seen == reservations else seen - reservations
        if i32_cas_weak_acq_rel(&node.count, &seen, after):
            return after == SEALED


# A place: a page's handle and a slot of it, never 0.
cdef inline uint32_t map_place(uint32_t page, int64_t entry_id) noexcept nogil:
    return page << SLOT_BITS | <uint32_t>map_entry_slot(entry_id)


# What the thread that took a slot of a page does before others come to its wrapper.
cdef inline void page_start_slot(MapPage* page, int64_t slot) noexcept nogil:
    page.requeues[slot] = 0
    u8_store_relaxed(&page.visits[slot], 0)


# How often passes kept the entry of a place. Inside the write section of the wrapper there.
cdef inline uint16_t* place_requeues(const MapMemory* memory, uint32_t place) noexcept nogil:
    return &page_at(memory, place >> SLOT_BITS).requeues[place & (SLOTS - 1)]


# The hits of a place, which is taken or was.
cdef inline pml_u8* place_visits(const MapMemory* memory, uint32_t place) noexcept nogil:
    return &page_at(memory, place >> SLOT_BITS).visits[place & (SLOTS - 1)]


# True if a place is that of the position in a map: for as long as the place is taken. Of a place
# that may be free by now, a guess.
cdef inline bint place_serves(
    const MapMemory* memory, uint32_t place, const void* owner, Position at
) noexcept nogil:
    return (place != 0 and <int64_t>(place & (SLOTS - 1)) == map_entry_slot(at.entry_id)
            and node_serves(&page_at(memory, place >> SLOT_BITS).node, owner, at.ledger_id,
                            map_first_id(at.entry_id)))


# The position of a place that is taken.
cdef inline Position place_position(const MapMemory* memory, uint32_t place) noexcept nogil:
    cdef const MapNode* node = &page_at(memory, place >> SLOT_BITS).node
    return position(i64_load_relaxed(&node.ledger_id),
                    i64_load_relaxed(&node.first_id) | (place & (SLOTS - 1)))


# The map of a place that is taken.
cdef inline void* place_owner(const MapMemory* memory, uint32_t place) noexcept nogil:
    return ptr_load_relaxed(&page_at(memory, place >> SLOT_BITS).node.owner)


cdef inline bint node_is_sealed(const MapNode* node) noexcept nogil:
    # Pairs with the exchange in node_leave that sealed it.
    return i32_load_acquire(&node.count) == SEALED
