# A concurrent ordered map from position to wrapper handle: pages of 64 slots under branches of 64
# pages, and one sorted directory of branches.
#
# Origin       RangeCache's ConcurrentSkipListMap (Pulsar 4.1) and the 64-slot pages of its main
#              line. A ledger appends dense ids, so a branch (4,096 ids) replaces the skip list's
#              nodes and the directory holds one record for each.
# Threads      map_find, map_recall, iteration, map_put_if_absent, map_remove: any thread.
#              A MapNear: one thread. init, destroy: alone.
# Invariants   PM-1 (I35) of several puts of a free position exactly one succeeds.
#              PM-2 (I36) map_remove removes no handle but its argument.
#              PM-3 (I39) an empty page is unlinked from its branch, an empty branch from the
#              directory.
#              PM-4 (I7, I38) an iteration ends and ascends, and sees every handle that is in the
#              map during the whole iteration.
#              PM-5 (I7) map_find answers a handle that is in the map during the whole call.
#              PM-6 (I1, I11) what map_shows confirms was shown under the position in this map when
#              it looked.
# Ordering     put (release) -> find (acquire) of a slot; remove (release) -> put (acquire) of it;
#              linking a page (release) -> finding or recalling it (acquire); map_show (release)
#              -> map_shown (acquire), or map_shows (fence): the label of the page, and what the
#              caller wrote before; see map_directory.pxd and map_pages.pxd. Reads prove the
#              directory and nothing below it: a position that is present keeps its page and branch
#              from being sealed.
# Reclamation  Pages and branches are pooled and type-stable. A stale reader may look into one that
#              serves another range by now; what it finds there fails the wrapper's key check. Who
#              changes a count compares the label after the reservation, and makes sure that the
#              node is linked: a reserved node that is linked stays linked. Who wins the exchange
#              that unlinks a page gives it back. A freed slot keeps its page until map_leave_near.
# Not promised The number of positions. A range as of one moment. That a position that is present is
#              shown.

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsar_ml.structures.map_directory cimport (
    BranchArray, Directory, array_seek, directory_add, directory_destroy, directory_drop,
    directory_enter, directory_find, directory_init, directory_is_empty, directory_proved,
)
from pulsar_ml.structures.map_pages cimport (
    BLOCK_BITS, SLOT_BITS, SLOTS, MapBranch, MapMemory, MapPage, branch_at, map_block, map_entry_slot,
    map_first_id, map_page_slot, map_place, node_is_sealed, node_leave, node_reserve, node_serves,
    node_start, page_at, page_start_slot,
)
from pulsar_ml.structures.object_pool cimport pool_give, pool_take
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.status cimport PML_EXISTS, PML_NO_MEMORY, PML_OK, Status
from pulsar_ml.sync.atomics cimport (
    fence_acquire, i64_load_relaxed, pml_ptr, pml_u32, ptr_load_acquire, ptr_load_relaxed,
    ptr_store_release, u32_cas_strong_acq_rel, u32_load_acquire, u32_load_relaxed, u32_store_relaxed,
    u32_store_release, u64_cas_strong_acq_rel, u64_load_acquire, u64_load_relaxed,
)
from pulsar_ml.sync.wait cimport spin


cdef enum:
    NOWHERE = -1            # an end of a cursor that no position reaches
    RECENT = 32             # pages that a map remembers, a power of two: 2,048 ids in order


cdef struct PositionMap:
    MapMemory* memory
    Directory directory
    # By page number modulo RECENT: the page that was linked last, or NULL. It may be another map's
    # by now.
    pml_ptr[32] recent


# The page of the removals before, 0: none, and the reservations of its freed slots.
cdef struct MapNear:
    uint32_t page
    int32_t reservations


# An iteration over [at, last].
cdef struct MapCursor:
    Position at             # the next position to look at
    Position last
    MapPage* page           # the page of `at`, or NULL when it has to be looked up


# The map stays where it is: pages and branches know it by its address.
cdef inline Status map_init(PositionMap* map, MapMemory* memory) noexcept nogil:
    map.memory = memory
    memset(map.recent, 0, sizeof(map.recent))
    return directory_init(&map.directory)


# Nobody else inside, and every position was removed. A thread of another map that reserved a page
# by a stale handle may be about to leave it: waits until it has.
cdef inline void map_destroy(PositionMap* map) noexcept nogil:
    cdef uint32_t turn = 0
    while not map_is_empty(map):
        turn = spin(turn)
    directory_destroy(&map.directory)


# Pages and branches -----------------------------------------------------------------------------

# Gives reservations back. The label is read before: afterwards the page may serve another range.
# Its map need not be the caller's: the caller may have come by a stale handle.
cdef inline void page_leave(
    MapMemory* memory, MapPage* page, uint32_t handle, int32_t reservations
) noexcept nogil:
    cdef int64_t first_id = i64_load_relaxed(&page.node.first_id)
    cdef uint32_t parent
    if not node_leave(&page.node, reservations, &parent):
        return
    if parent:
        branch_unlink(memory, parent, map_page_slot(first_id))
    else:
        pool_give(&memory.pages, handle)


# Unlinks the page in a branch's slot if it is sealed. Whoever wins the exchange gives the page back
# and leaves the branch; the tag keeps a slot that was linked anew from being taken for the old one.
cdef inline void branch_unlink(MapMemory* memory, uint32_t parent, int64_t slot) noexcept nogil:
    cdef MapBranch* branch = branch_at(memory, parent)
    cdef uint64_t seen = u64_load_acquire(&branch.pages[slot])
    cdef uint32_t page = <uint32_t>seen
    if not page or not node_is_sealed(&page_at(memory, page).node):
        return
    if u64_cas_strong_acq_rel(&branch.pages[slot], &seen, ((seen >> 32) + 1) << 32):
        pool_give(&memory.pages, page)
        branch_leave(memory, branch, parent)


cdef inline void branch_leave(MapMemory* memory, MapBranch* branch, uint32_t handle) noexcept nogil:
    cdef PositionMap* map = <PositionMap*>ptr_load_relaxed(&branch.node.owner)
    cdef int64_t ledger_id = i64_load_relaxed(&branch.node.ledger_id)
    cdef int64_t first_id = i64_load_relaxed(&branch.node.first_id)
    cdef uint32_t linked
    if not node_leave(&branch.node, 1, &linked):
        return
    if linked:
        directory_drop(&map.directory, memory, ledger_id, map_block(first_id))
    else:
        pool_give(&memory.branches, handle)


# The branch of a position with a reservation of the caller's; 0 without memory.
cdef inline uint32_t map_reserve_branch(PositionMap* map, Position at) noexcept nogil:
    cdef int64_t block = map_block(at.entry_id)
    cdef int64_t first_id = block << BLOCK_BITS
    cdef uint32_t handle
    cdef uint64_t proof
    cdef MapBranch* branch
    cdef Status status
    # Turns when another thread sealed, dropped or added the branch; each turn helps it along.
    while True:
        handle = directory_find(&map.directory, at.ledger_id, block, &proof)
        if handle:
            branch = branch_at(map.memory, handle)
            if node_reserve(&branch.node):
                # Proved as well: the label alone is also that of a branch which was taken for the
                # same ids again and is not in the directory yet, or never will be.
                if (node_serves(&branch.node, map, at.ledger_id, first_id)
                        and directory_proved(&map.directory, proof)):
                    return handle
                branch_leave(map.memory, branch, handle)
            else:
                directory_drop(&map.directory, map.memory, at.ledger_id, block)
            continue
        handle = pool_take(&map.memory.branches)
        if not handle:
            return 0
        branch = branch_at(map.memory, handle)
        node_start(&branch.node, map, at.ledger_id, first_id)
        status = directory_add(&map.directory, at.ledger_id, block, handle)
        if status == PML_OK:
            u32_store_relaxed(&branch.node.parent, 1)
            return handle
        branch_leave(map.memory, branch, handle)
        if status == PML_NO_MEMORY:
            return 0


# The page of a position, and its handle, with a reservation of the caller's; NULL without memory.
cdef inline MapPage* map_reserve_page(PositionMap* map, Position at, uint32_t* found) noexcept nogil:
    cdef int64_t first_id = map_first_id(at.entry_id)
    cdef int64_t slot = map_page_slot(at.entry_id)
    cdef uint32_t parent, handle
    cdef uint64_t seen, proof
    cdef MapBranch* branch
    cdef MapPage* page
    # Turns when another thread sealed, unlinked or linked the page; each turn helps it along.
    while True:
        # The common case: branch and page are there, and one reservation is enough.
        parent = directory_find(&map.directory, at.ledger_id, map_block(at.entry_id), &proof)
        if parent:
            branch = branch_at(map.memory, parent)
            seen = u64_load_acquire(&branch.pages[slot])
            handle = <uint32_t>seen
            if handle:
                page = page_at(map.memory, handle)
                if node_reserve(&page.node):
                    # The link, tag and all, is compared as well: the label alone is also that of a
                    # page which was taken for the same ids again and is not linked. A linked page
                    # with this label keeps its branch, whatever array named it, in the directory.
                    if (node_serves(&page.node, map, at.ledger_id, first_id)
                            and u64_load_relaxed(&branch.pages[slot]) == seen):
                        found[0] = handle
                        return page
                    page_leave(map.memory, page, handle, 1)
                    continue
        parent = map_reserve_branch(map, at)
        if not parent:
            return NULL
        branch = branch_at(map.memory, parent)
        seen = u64_load_acquire(&branch.pages[slot])
        if <uint32_t>seen:
            # Linked meanwhile, or sealed: help to unlink it and look again.
            branch_unlink(map.memory, parent, slot)
            branch_leave(map.memory, branch, parent)
            continue
        handle = pool_take(&map.memory.pages)
        if not handle:
            branch_leave(map.memory, branch, parent)
            return NULL
        page = page_at(map.memory, handle)
        node_start(&page.node, map, at.ledger_id, first_id)
        # Pairs with the readers' acquire of the link. The reservation becomes the link's.
        if u64_cas_strong_acq_rel(&branch.pages[slot], &seen, ((seen >> 32) + 1) << 32 | handle):
            u32_store_relaxed(&page.node.parent, parent)
            # Pairs with the acquire in map_recall.
            ptr_store_release(&map.recent[map_recent_slot(at.entry_id)], page)
            found[0] = handle
            return page
        page_leave(map.memory, page, handle, 1)
        branch_leave(map.memory, branch, parent)


# Operations ------------------------------------------------------------------------------------

cdef inline int64_t map_recent_slot(int64_t entry_id) noexcept nogil:
    return (entry_id >> SLOT_BITS) & (RECENT - 1)


# The page of the position, or NULL, which says nothing: the short way to what was put last. By now
# the page may serve another range or map; with the proof, map_shows tells.
cdef inline MapPage* map_recall(const PositionMap* map, Position at, uint64_t* proof) noexcept nogil:
    cdef MapPage* page = <MapPage*>ptr_load_acquire(&map.recent[map_recent_slot(at.entry_id)])
    if page is NULL:
        return NULL
    # Pairs with the release in node_start.
    proof[0] = u64_load_acquire(&page.node.version)
    if not node_serves(&page.node, map, at.ledger_id, map_first_id(at.entry_id)):
        return NULL
    return page


# What a page shows under the position, or 0, which says nothing.
cdef inline uint32_t map_shown(const MapPage* page, Position at) noexcept nogil:
    # Pairs with the release in map_show.
    return u32_load_acquire(&page.shown[map_entry_slot(at.entry_id)])


# True if a page that map_recall answered with this proof shows `entry` under the position now.
cdef inline bint map_shows(
    const MapPage* page, Position at, uint32_t entry, uint64_t proof
) noexcept nogil:
    # Pairs with the release fence in node_start: where the label was that of a later incarnation,
    # what the one of the proof showed is not read any more.
    fence_acquire()
    # What a later incarnation shows is read with its version.
    return map_shown(page, at) == entry and u64_load_relaxed(&page.node.version) == proof


# Shows `entry` at a place in which the caller's handle stands, inside the write section of its
# wrapper. map_remove takes it away.
cdef inline void map_show(MapMemory* memory, uint32_t place, uint32_t entry) noexcept nogil:
    # Pairs with the acquire in map_shown.
    u32_store_release(&page_at(memory, place >> SLOT_BITS).shown[place & (SLOTS - 1)], entry)


# The handle in the position's slot of a page, or 0.
cdef inline uint32_t map_slot(const MapPage* page, Position at) noexcept nogil:
    # Pairs with the release of a removal: then nothing is shown any more.
    return u32_load_acquire(&page.slots[map_entry_slot(at.entry_id)])


cdef inline uint32_t map_find(const PositionMap* map, Position at) noexcept nogil:
    cdef uint64_t proof
    cdef uint32_t branch, page, found
    # Turns when the directory was replaced while it was searched.
    while True:
        found = 0
        branch = directory_find(&map.directory, at.ledger_id, map_block(at.entry_id), &proof)
        if branch:
            page = <uint32_t>u64_load_acquire(
                &branch_at(map.memory, branch).pages[map_page_slot(at.entry_id)])
            if page:
                found = u32_load_acquire(&page_at(map.memory, page).slots[map_entry_slot(at.entry_id)])
        if directory_proved(&map.directory, proof):
            return found


# PML_EXISTS when the position is taken, PML_NO_MEMORY when a page could not be made; then nothing
# changed. The position is a stored one (both ids >= 0). `place` becomes the handle's, otherwise 0.
cdef inline Status map_put_if_absent(
    PositionMap* map, Position at, uint32_t handle, uint32_t* place
) noexcept nogil:
    cdef uint32_t page_handle
    cdef MapPage* page = map_reserve_page(map, at, &page_handle)
    cdef uint32_t seen = 0
    place[0] = 0
    if page is NULL:
        return PML_NO_MEMORY
    # Pairs with the readers' acquire of the slot.
    if u32_cas_strong_acq_rel(&page.slots[map_entry_slot(at.entry_id)], &seen, handle):
        place[0] = map_place(page_handle, at.entry_id)
        page_start_slot(page, map_entry_slot(at.entry_id))
        return PML_OK
    page_leave(map.memory, page, page_handle, 1)
    return PML_EXISTS


# Removes `handle` from the position if it is there. The caller holds the wrapper's write section,
# so that the handle cannot be put again meanwhile.
cdef inline bint map_remove(PositionMap* map, Position at, uint32_t handle) noexcept nogil:
    cdef MapNear near
    cdef bint removed
    near.page = 0
    near.reservations = 0
    removed = map_remove_near(map, at, handle, &near)
    map_leave_near(map.memory, &near)
    return removed


# map_remove, which looks into the page of the removal before, and leaves the reservations of a page
# to map_leave_near.
cdef inline bint map_remove_near(
    PositionMap* map, Position at, uint32_t handle, MapNear* near
) noexcept nogil:
    cdef uint64_t proof
    cdef uint32_t branch, page
    if near.page and map_clear_slot(map, at, handle, near.page):
        near.reservations += 1
        return True
    while True:
        branch = directory_find(&map.directory, at.ledger_id, map_block(at.entry_id), &proof)
        if branch:
            page = <uint32_t>u64_load_acquire(
                &branch_at(map.memory, branch).pages[map_page_slot(at.entry_id)])
            if page and map_clear_slot(map, at, handle, page):
                map_leave_near(map.memory, near)
                near.page = page
                near.reservations = 1
                return True
        if directory_proved(&map.directory, proof):
            return False


# Gives back the reservations of the slots that were freed and not left yet.
cdef inline void map_leave_near(MapMemory* memory, MapNear* near) noexcept nogil:
    if near.reservations:
        page_leave(memory, page_at(memory, near.page), near.page, near.reservations)
        near.reservations = 0


# Frees the position's slot of a page, stale or not, if `handle` stands in it; its reservation is
# the caller's from then on. No exchange is needed: a handle stands in one slot at most, and came
# there and leaves inside write sections of its wrapper, so that this load sees the latest of them.
cdef inline bint map_clear_slot(
    PositionMap* map, Position at, uint32_t handle, uint32_t page_handle
) noexcept nogil:
    cdef MapPage* page = page_at(map.memory, page_handle)
    cdef pml_u32* slot = &page.slots[map_entry_slot(at.entry_id)]
    if u32_load_relaxed(slot) != handle:
        return False
    u32_store_relaxed(&page.shown[map_entry_slot(at.entry_id)], 0)
    # Pairs with the acquire of a put that finds the slot free.
    u32_store_release(slot, 0)
    return True


# Iteration -------------------------------------------------------------------------------------

cdef inline MapCursor map_cursor(Position first, Position last) noexcept nogil:
    cdef MapCursor cursor
    cursor.at = first
    cursor.last = last
    cursor.page = NULL
    if cursor.at.entry_id < 0:
        cursor.at.entry_id = 0
    if cursor.at.ledger_id < 0:
        cursor.at = position(0, 0)
    return cursor


# Moves to the next page at or after cursor.at that may hold something; False at the end.
cdef inline bint map_next_page(const PositionMap* map, MapCursor* cursor) noexcept nogil:
    cdef BranchArray* array
    cdef MapBranch* branch
    cdef int64_t count, index, slot, ledger_id, block
    cdef uint64_t proof
    cdef uint32_t handle, page
    while True:
        if cursor.at.ledger_id > cursor.last.ledger_id or (
            cursor.at.ledger_id == cursor.last.ledger_id and cursor.at.entry_id > cursor.last.entry_id
        ):
            return False
        array = directory_enter(&map.directory, &proof)
        count = i64_load_relaxed(&array.count)
        index = array_seek(array, count, cursor.at.ledger_id, map_block(cursor.at.entry_id))
        if index < count:
            ledger_id = i64_load_relaxed(&array.records[index].ledger_id)
            block = i64_load_relaxed(&array.records[index].block)
            handle = <uint32_t>u64_load_relaxed(&array.records[index].branch)
        # Skipping to another block claims that those between are absent.
        if not directory_proved(&map.directory, proof):
            continue
        if index >= count:
            return False
        if ledger_id != cursor.at.ledger_id or block != map_block(cursor.at.entry_id):
            cursor.at = position(ledger_id, block << BLOCK_BITS)
            continue
        branch = branch_at(map.memory, handle)
        slot = map_page_slot(cursor.at.entry_id)
        while slot < SLOTS:
            page = <uint32_t>u64_load_acquire(&branch.pages[slot])
            if page:
                if slot != map_page_slot(cursor.at.entry_id):
                    cursor.at.entry_id = (block << BLOCK_BITS) | (slot << SLOT_BITS)
                cursor.page = page_at(map.memory, page)
                break
            slot += 1
        else:
            if not map_step_block(cursor):
                return False
            continue
        return cursor.at.ledger_id < cursor.last.ledger_id or (
            cursor.at.ledger_id == cursor.last.ledger_id and cursor.at.entry_id <= cursor.last.entry_id)


# Moves to the first position after the block of cursor.at; False when there is none.
cdef inline bint map_step_block(MapCursor* cursor) noexcept nogil:
    cdef int64_t block = map_block(cursor.at.entry_id)
    if block < map_block(INT64_MAX):
        cursor.at.entry_id = (block + 1) << BLOCK_BITS
    elif cursor.at.ledger_id < INT64_MAX:
        cursor.at = position(cursor.at.ledger_id + 1, 0)
    else:
        return False
    return True


# The next handle at or after cursor.at, with its position, or 0 at the end. The handle was found
# under that position; the caller checks the wrapper's key.
cdef inline uint32_t map_next(const PositionMap* map, MapCursor* cursor, Position* found) noexcept nogil:
    cdef uint32_t handle
    cdef int64_t slot
    while cursor.page is not NULL or map_next_page(map, cursor):
        slot = map_entry_slot(cursor.at.entry_id)
        while slot < SLOTS:
            if (cursor.at.entry_id > cursor.last.entry_id
                    and cursor.at.ledger_id == cursor.last.ledger_id):
                return 0
            handle = u32_load_acquire(&cursor.page.slots[slot])
            slot += 1
            if handle:
                found[0] = cursor.at
                map_step(cursor, slot)
                return handle
            map_step(cursor, slot)
    return 0


# Moves the cursor one slot on; after the last slot its page has to be looked up anew.
cdef inline void map_step(MapCursor* cursor, int64_t slot) noexcept nogil:
    if slot == SLOTS:
        cursor.page = NULL
    if cursor.at.entry_id < INT64_MAX:
        cursor.at.entry_id += 1
    elif not map_step_block(cursor):
        cursor.last = position(NOWHERE, NOWHERE)


# True if the map is empty; exact at quiescence.
cdef inline bint map_is_empty(const PositionMap* map) noexcept nogil:
    return directory_is_empty(&map.directory)
