# Cursors in a heap by position: which is the slowest, after every change.
#
# Origin       ManagedCursorContainerImpl (Pulsar 4.1). Here the heap holds the positions
#              themselves, so that a comparison follows no pointer. Mended: a removal sifts the
#              cursor that takes the free place in either direction; adding a name twice leaves no
#              orphan; every query is under the lock or validated.
# Threads      Any thread, except init and destroy.
# Invariants   CH-1 (I81) no cursor is before the one above it in the heap, and a cursor's index is
#              its place.
#              CH-2 (I80) the published slowest position is that of the first place; there is none
#              exactly when the heap is empty.
#              CH-3 the heap has room for every registered cursor: an update never allocates.
#              CH-4 (I77) every field but the counters is changed in a write section.
# Ordering     See stamped_lock.pxd. The slowest position is published in relaxed cells, which
#              readers copy under a stamp; the heap's array may move and is touched in sections
#              only.
# Reclamation  Cursors come from a pool shared by all containers of a manager; the array goes with
#              the heap.
# Not promised The slowest position is of a moment during the call.

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pulsar_ml.structures.cursor_registry cimport (
    CursorNode, CursorPosition, CursorRegistry, CursorState, registry_changed, registry_find, registry_give,
    registry_init, registry_publish_slowest, registry_register, registry_set_durable, registry_size,
    registry_slowest, registry_state, registry_take, registry_withdraw, tracked_at, untracked,
)
from pulsar_ml.structures.object_pool cimport Pool, pool_init
from pulsar_ml.structures.position cimport Position, position_equal, position_less
from pulsar_ml.structures.stamped_lock cimport (
    stamped_lock_read, stamped_lock_write, stamped_optimistic, stamped_unlock_read, stamped_unlock_write,
    stamped_validate,
)
from pulsar_ml.structures.status cimport Status
from pulsar_ml.sync.atomics cimport u64_load_relaxed
from pulsar_ml.sync.memory cimport allocate, release


cdef enum:
    HEAP_NOWHERE = -1       # the index of a cursor that is not tracked
    HEAP_ARITY = 4          # places below each place
    HEAP_LEAST = 4          # places of the first array


cdef struct HeapCursor:
    CursorNode node
    int64_t index


cdef struct HeapPlace:
    Position at
    HeapCursor* cursor


cdef struct CursorHeap:
    CursorRegistry registry
    HeapPlace* places
    int64_t tracked         # places in use
    int64_t room


# The slowest position before and after an update.
cdef struct SlowestChange:
    CursorPosition previous
    CursorPosition slowest


# Memory and life ---------------------------------------------------------------------------------

cdef inline Status heap_pool_init(Pool* cursors, uint32_t chunk_bits, uint32_t limit) noexcept nogil:
    return pool_init(cursors, sizeof(HeapCursor), <size_t>&(<CursorNode*>NULL).link, chunk_bits, limit)


cdef inline void cursor_heap_init(CursorHeap* heap, Pool* cursors) noexcept nogil:
    memset(heap, 0, sizeof(CursorHeap))
    registry_init(&heap.registry, cursors, 0)


# Gives all cursors back. Nobody else inside.
cdef inline void cursor_heap_destroy(CursorHeap* heap) noexcept nogil:
    while heap.registry.first is not NULL:
        cursor_heap_remove(heap, u64_load_relaxed(&heap.registry.first.id))
    release(heap.places)
    heap.places = NULL


# Room for one more registered cursor; False without memory. In a write section.
cdef inline bint heap_make_room(CursorHeap* heap) noexcept nogil:
    cdef int64_t room
    cdef HeapPlace* places
    if registry_size(&heap.registry) < heap.room:
        return True
    room = max(2 * heap.room, <int64_t>HEAP_LEAST)
    places = <HeapPlace*>allocate(<size_t>room * sizeof(HeapPlace))
    if places is NULL:
        return False
    if heap.tracked:
        memcpy(places, heap.places, <size_t>heap.tracked * sizeof(HeapPlace))
    release(heap.places)
    heap.places = places
    heap.room = room
    return True


# Changes -----------------------------------------------------------------------------------------

# Registers a cursor and stores its id. The data version that this made, or 0 without memory, and
# then nothing changed.
cdef inline int64_t cursor_heap_add(
    CursorHeap* heap, CursorPosition target, bint durable, uint64_t* id
) noexcept nogil:
    cdef HeapCursor* cursor = <HeapCursor*>registry_take(&heap.registry)
    cdef int64_t version = 0
    if cursor is NULL:
        return 0
    stamped_lock_write(&heap.registry.lock)
    if heap_make_room(heap):
        cursor.index = HEAP_NOWHERE
        id[0] = registry_register(&heap.registry, &cursor.node, durable)
        heap_set(heap, cursor, target)
        version = registry_changed(&heap.registry)
    stamped_unlock_write(&heap.registry.lock)
    if not version:
        registry_give(&heap.registry, &cursor.node)
    return version


# Says where a tracked cursor is now, or that it is not tracked any more, and stores the slowest
# position before and after. The data version that this made, or 0 when there is no such cursor or
# it is not tracked.
cdef inline int64_t cursor_heap_update(
    CursorHeap* heap, uint64_t id, CursorPosition target, SlowestChange* change
) noexcept nogil:
    cdef HeapCursor* cursor
    cdef int64_t version = 0
    stamped_lock_write(&heap.registry.lock)
    cursor = <HeapCursor*>registry_find(&heap.registry, id)
    if cursor is not NULL and cursor.index != HEAP_NOWHERE:
        change.previous = registry_slowest(&heap.registry)
        heap_set(heap, cursor, target)
        change.slowest = registry_slowest(&heap.registry)
        version = registry_changed(&heap.registry)
    stamped_unlock_write(&heap.registry.lock)
    return version


# Replaces a registered cursor's position and durability, as when its name is added again. The data
# version of the change, or 0 when there is no such cursor.
cdef inline int64_t cursor_heap_replace(
    CursorHeap* heap, uint64_t id, CursorPosition target, bint durable
) noexcept nogil:
    cdef HeapCursor* cursor
    cdef int64_t version = 0
    stamped_lock_write(&heap.registry.lock)
    cursor = <HeapCursor*>registry_find(&heap.registry, id)
    if cursor is not NULL:
        registry_set_durable(&heap.registry, &cursor.node, durable)
        heap_set(heap, cursor, target)
        version = registry_changed(&heap.registry)
    stamped_unlock_write(&heap.registry.lock)
    return version


# The data version that this made, or 0 when there is no such cursor.
cdef inline int64_t cursor_heap_remove(CursorHeap* heap, uint64_t id) noexcept nogil:
    cdef HeapCursor* cursor
    cdef int64_t version = 0
    stamped_lock_write(&heap.registry.lock)
    cursor = <HeapCursor*>registry_find(&heap.registry, id)
    if cursor is not NULL:
        heap_set(heap, cursor, untracked())
        registry_withdraw(&heap.registry, &cursor.node, 0)
        version = registry_changed(&heap.registry)
    stamped_unlock_write(&heap.registry.lock)
    if version:
        registry_give(&heap.registry, &cursor.node)
    return version


# Queries -----------------------------------------------------------------------------------------

# The lowest position of all tracked cursors.
cdef inline CursorPosition cursor_heap_slowest(CursorHeap* heap) noexcept nogil:
    cdef uint32_t stamp = stamped_optimistic(&heap.registry.lock)
    cdef CursorPosition slowest = registry_slowest(&heap.registry)
    if stamped_validate(&heap.registry.lock, stamp):
        return slowest
    stamped_lock_read(&heap.registry.lock)
    slowest = registry_slowest(&heap.registry)
    stamped_unlock_read(&heap.registry.lock)
    return slowest


# The cursor of an id.
cdef inline CursorState cursor_heap_look(CursorHeap* heap, uint64_t id) noexcept nogil:
    cdef CursorState state
    cdef HeapCursor* cursor
    stamped_lock_read(&heap.registry.lock)
    cursor = <HeapCursor*>registry_find(&heap.registry, id)
    state = registry_state(<CursorNode*>cursor, heap_where(heap, cursor))
    stamped_unlock_read(&heap.registry.lock)
    return state


# A cursor at the lowest position; of several the one that was registered first.
cdef inline CursorState cursor_heap_slowest_cursor(CursorHeap* heap) noexcept nogil:
    cdef CursorNode* node
    cdef CursorPosition slowest, place
    cdef CursorState state
    stamped_lock_read(&heap.registry.lock)
    slowest = registry_slowest(&heap.registry)
    node = heap.registry.first if slowest.tracked else NULL
    while node is not NULL:
        place = heap_where(heap, <HeapCursor*>node)
        if place.tracked and position_equal(place.at, slowest.at):
            break
        node = node.after
    state = registry_state(node, slowest)
    stamped_unlock_read(&heap.registry.lock)
    return state


# Where a cursor stands; NULL stands nowhere. Inside a section, or under the shared lock.
cdef inline CursorPosition heap_where(const CursorHeap* heap, const HeapCursor* cursor) noexcept nogil:
    if cursor is NULL or cursor.index == HEAP_NOWHERE:
        return untracked()
    return tracked_at(heap.places[cursor.index].at)


# The heap, in write sections ---------------------------------------------------------------------

# Brings a cursor from where it is, if anywhere, to where it belongs, if anywhere.
cdef inline void heap_set(CursorHeap* heap, HeapCursor* cursor, CursorPosition target) noexcept nogil:
    cdef HeapPlace place
    cdef int64_t index = cursor.index
    place.at = target.at
    place.cursor = cursor
    if target.tracked:
        if index == HEAP_NOWHERE:
            index = heap.tracked
            heap.tracked += 1
        heap_settle(heap, index, place)
    elif index != HEAP_NOWHERE:
        cursor.index = HEAP_NOWHERE
        heap.tracked -= 1
        if index < heap.tracked:
            # The last one fills the gap; it may belong above it or below.
            heap_settle(heap, index, heap.places[heap.tracked])
    registry_publish_slowest(
        &heap.registry, tracked_at(heap.places[0].at) if heap.tracked else untracked())


# Puts what is held into the free place, or where it belongs from there.
cdef inline void heap_settle(CursorHeap* heap, int64_t index, HeapPlace held) noexcept nogil:
    if index and position_less(held.at, heap.places[(index - 1) // HEAP_ARITY].at):
        heap_sift_up(heap, index, held)
    else:
        heap_sift_down(heap, index, held)


cdef inline void heap_place(CursorHeap* heap, int64_t index, HeapPlace held) noexcept nogil:
    heap.places[index] = held
    held.cursor.index = index


cdef inline void heap_sift_up(CursorHeap* heap, int64_t index, HeapPlace held) noexcept nogil:
    cdef int64_t above
    while index:
        above = (index - 1) // HEAP_ARITY
        if not position_less(held.at, heap.places[above].at):
            break
        heap_place(heap, index, heap.places[above])
        index = above
    heap_place(heap, index, held)


cdef inline void heap_sift_down(CursorHeap* heap, int64_t index, HeapPlace held) noexcept nogil:
    cdef int64_t below, other, least
    while True:
        below = index * HEAP_ARITY + 1
        if below >= heap.tracked:
            break
        least = below
        for other in range(below + 1, min(below + HEAP_ARITY, heap.tracked)):
            if position_less(heap.places[other].at, heap.places[least].at):
                least = other
        if not position_less(heap.places[least].at, held.at):
            break
        heap_place(heap, index, heap.places[least])
        index = least
    heap_place(heap, index, held)
