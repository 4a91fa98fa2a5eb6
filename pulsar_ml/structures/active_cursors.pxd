# The active cursors of a managed ledger, in groups sorted by position: how many are at or before
# one of them.
#
# Origin       ActiveManagedCursorContainerImpl (Pulsar 4.1, PIP-430). Changes are recorded and
#              applied by the next query. Here the list is of groups, not of cursors, so that a
#              move crosses many cursors in one step; many or far moves end in one sweep. Mended:
#              moves of the tail out of or onto a shared group, null updates, queries under the
#              wrong lock, retained cursors.
# Threads      Any thread, except init and destroy.
# Invariants   AC-3 (I75) a cursor is in the list of changes at most once, and a cursor that is not
#              in the list is in place.
#              AC-4 (I77) every field but the counters is changed in a write section.
#              AC-5 (I78) removed cursors that are not yet given back are fewer than max(64,
#              registered cursors), and none when no cursor is registered.
#              AC-6 groups in the list and spare groups are as many as registered cursors and
#              removed cursors that are not given back: a flush never allocates.
#              AC-7 added entries are cached while a cursor is registered, and for the grace period
#              after the last one left.
#              AC-8 (I73) after a flush, inside any section, a group's rank is the number of tracked
#              cursors at its position or before it.
#              AC-9 (I76) after a flush, inside any section, no change is pending.
# Ordering     Queries read relaxed cells under a stamp while nothing is pending. A cursor's group
#              is stored with release and read with acquire: the reader may be ahead of its stamp,
#              and then must find the group's memory made.
# Reclamation  Cursors and groups come from pools shared by all containers of a memory. A removed
#              cursor goes back with the next flush, which a removal makes itself when enough have
#              gathered or nobody is left. Each cursor brings a group with it, so a flush never
#              allocates.
# Not promised Queries that take no lock while changes are pending. A rank is of a moment during the
#              call.

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsar_ml.structures.active_groups cimport (
    ActiveCursor, CursorGroup, CursorGroups, cursor_group, cursor_hand_over, groups_leave, groups_merge,
    groups_move, groups_spare, groups_take_spare,
)
from pulsar_ml.structures.cursor_registry cimport (
    CursorNode, CursorPosition, CursorRegistry, CursorState, registry_changed, registry_find,
    registry_give, registry_idle, registry_init, registry_publish_slowest, registry_register,
    registry_set_durable, registry_size, registry_slowest, registry_state, registry_take,
    registry_withdraw, tracked_at, untracked,
)
from pulsar_ml.structures.object_pool cimport Pool, pool_at, pool_destroy, pool_give, pool_init, pool_take
from pulsar_ml.structures.position cimport Position, position_less
from pulsar_ml.structures.stamped_lock cimport (
    stamped_lock_read, stamped_lock_write, stamped_optimistic, stamped_unlock_read, stamped_unlock_write,
    stamped_validate,
)
from pulsar_ml.structures.status cimport PML_OK, Status
from pulsar_ml.sync.atomics cimport (
    i64_load_relaxed, i64_store_relaxed, pml_i64, ptr_load_acquire, ptr_store_release,
    u64_load_relaxed,
)


cdef enum:
    ACTIVE_FEWEST_REMOVALS = 64     # removed cursors that may wait for another thread's flush


# The memory that all containers of a manager share.
cdef struct ActiveMemory:
    Pool cursors
    Pool groups


cdef struct ActiveCursors:
    CursorRegistry registry
    ActiveMemory* memory
    CursorGroups groups
    ActiveCursor* changes
    pml_i64 pending         # length of that list
    int64_t removed         # cursors removed and not given back yet
    int64_t grace           # nanoseconds


# Memory and life ---------------------------------------------------------------------------------

# chunk_bits: objects of a chunk as a power of two; limit: most objects of a kind. On failure
# everything is given back.
cdef inline Status active_memory_init(
    ActiveMemory* memory, uint32_t chunk_bits, uint32_t limit
) noexcept nogil:
    cdef Status status
    memset(memory, 0, sizeof(ActiveMemory))
    status = pool_init(&memory.cursors, sizeof(ActiveCursor), <size_t>&(<CursorNode*>NULL).link, chunk_bits,
                       limit)
    if status == PML_OK:
        status = pool_init(&memory.groups, sizeof(CursorGroup), <size_t>&(<CursorGroup*>NULL).link,
                           chunk_bits, limit)
    if status != PML_OK:
        active_memory_destroy(memory)
    return status


# When no container of the memory is left.
cdef inline void active_memory_destroy(ActiveMemory* memory) noexcept nogil:
    pool_destroy(&memory.cursors)
    pool_destroy(&memory.groups)


# grace: nanoseconds for which added entries are still cached after the last cursor left, or after
# `now`; 0 or less: not at all.
cdef inline void active_cursors_init(
    ActiveCursors* container, ActiveMemory* memory, int64_t grace, int64_t now
) noexcept nogil:
    memset(container, 0, sizeof(ActiveCursors))
    registry_init(&container.registry, &memory.cursors, now)
    container.memory = memory
    container.grace = grace


# Gives all cursors back. Nobody else inside.
cdef inline void active_cursors_destroy(ActiveCursors* container) noexcept nogil:
    while container.registry.first is not NULL:
        active_cursors_remove(container, u64_load_relaxed(&container.registry.first.id), 0)


# Changes -----------------------------------------------------------------------------------------

# Registers a cursor and stores its id. The data version that this made, or 0 without memory, and
# then nothing changed.
cdef inline int64_t active_cursors_add(
    ActiveCursors* container, CursorPosition target, bint durable, uint64_t* id
) noexcept nogil:
    cdef ActiveCursor* cursor = <ActiveCursor*>registry_take(&container.registry)
    cdef uint32_t handle
    cdef CursorGroup* group
    cdef int64_t version
    if cursor is NULL:
        return 0
    handle = pool_take(&container.memory.groups)
    if not handle:
        registry_give(&container.registry, &cursor.node)
        return 0
    group = <CursorGroup*>pool_at(&container.memory.groups, handle)
    group.handle = handle
    ptr_store_release(&cursor.group, NULL)
    cursor.target = target
    cursor.changed = False
    cursor.removed = False
    stamped_lock_write(&container.registry.lock)
    groups_spare(&container.groups, group)
    id[0] = registry_register(&container.registry, &cursor.node, durable)
    if target.tracked:
        active_change(container, cursor)
    version = registry_changed(&container.registry)
    stamped_unlock_write(&container.registry.lock)
    return version


# Says where a cursor is now, or that it is not tracked any more; applied by the next query. The
# data version that this made, or 0 when there is no such cursor.
cdef inline int64_t active_cursors_update(
    ActiveCursors* container, uint64_t id, CursorPosition target
) noexcept nogil:
    cdef ActiveCursor* cursor
    cdef int64_t version = 0
    stamped_lock_write(&container.registry.lock)
    cursor = <ActiveCursor*>registry_find(&container.registry, id)
    if cursor is not NULL:
        cursor.target = target
        active_change(container, cursor)
        version = registry_changed(&container.registry)
    stamped_unlock_write(&container.registry.lock)
    return version


# Replaces a registered cursor's position and durability, as when its name is added again. Answers
# as update does.
cdef inline int64_t active_cursors_replace(
    ActiveCursors* container, uint64_t id, CursorPosition target, bint durable
) noexcept nogil:
    cdef ActiveCursor* cursor
    cdef int64_t version = 0
    stamped_lock_write(&container.registry.lock)
    cursor = <ActiveCursor*>registry_find(&container.registry, id)
    if cursor is not NULL:
        cursor.target = target
        registry_set_durable(&container.registry, &cursor.node, durable)
        active_change(container, cursor)
        version = registry_changed(&container.registry)
    stamped_unlock_write(&container.registry.lock)
    return version


# Removes a cursor at the time `now`. The data version that this made, or 0 when there is no such
# cursor.
cdef inline int64_t active_cursors_remove(
    ActiveCursors* container, uint64_t id, int64_t now
) noexcept nogil:
    cdef ActiveCursor* cursor
    cdef int64_t version = 0
    stamped_lock_write(&container.registry.lock)
    cursor = <ActiveCursor*>registry_find(&container.registry, id)
    if cursor is not NULL:
        registry_withdraw(&container.registry, &cursor.node, now)
        cursor.target = untracked()
        cursor.removed = True
        container.removed += 1
        active_change(container, cursor)
        version = registry_changed(&container.registry)
        if active_is_crowded(container):
            active_flush(container)
    stamped_unlock_write(&container.registry.lock)
    return version


# True if so many removed cursors wait that this removal has to flush them.
cdef inline bint active_is_crowded(const ActiveCursors* container) noexcept nogil:
    cdef int64_t size = registry_size(&container.registry)
    return size == 0 or container.removed >= max(size, <int64_t>ACTIVE_FEWEST_REMOVALS)


cdef inline void active_change(ActiveCursors* container, ActiveCursor* cursor) noexcept nogil:
    if cursor.changed:
        return
    cursor.changed = True
    cursor.next_changed = container.changes
    container.changes = cursor
    i64_store_relaxed(&container.pending, i64_load_relaxed(&container.pending) + 1)


# Queries -----------------------------------------------------------------------------------------

# The number of tracked cursors at this cursor's position or before it, itself included; 0 for a
# cursor that is not tracked or not registered.
cdef inline int64_t active_cursors_rank(ActiveCursors* container, uint64_t id) noexcept nogil:
    cdef uint32_t stamp = stamped_optimistic(&container.registry.lock)
    cdef int64_t rank
    if not i64_load_relaxed(&container.pending):
        rank = active_rank(container, id)
        if stamped_validate(&container.registry.lock, stamp):
            return rank
    stamped_lock_write(&container.registry.lock)
    active_flush(container)
    rank = active_rank(container, id)
    stamped_unlock_write(&container.registry.lock)
    return rank


cdef inline int64_t active_rank(const ActiveCursors* container, uint64_t id) noexcept nogil:
    cdef ActiveCursor* cursor = <ActiveCursor*>registry_find(&container.registry, id)
    cdef CursorGroup* group = NULL
    if cursor is not NULL:
        # Pairs with the release in groups_join.
        group = <CursorGroup*>ptr_load_acquire(&cursor.group)
    return 0 if group is NULL else i64_load_relaxed(&group.rank)


# The number of tracked cursors at a position or before it. The walk begins at the cursor if that is
# not behind the position, so it is short where the position is one that the cursor reads next.
cdef inline int64_t active_cursors_rank_at(
    ActiveCursors* container, uint64_t id, Position at
) noexcept nogil:
    cdef ActiveCursor* cursor
    cdef CursorGroup* group = NULL
    cdef int64_t rank = 0
    stamped_lock_write(&container.registry.lock)
    active_flush(container)
    cursor = <ActiveCursor*>registry_find(&container.registry, id)
    if cursor is not NULL:
        group = cursor_group(cursor)
    if group is NULL or position_less(at, group.at):
        group = container.groups.head
    while group is not NULL and not position_less(at, group.at):
        rank = i64_load_relaxed(&group.rank)
        group = group.after
    stamped_unlock_write(&container.registry.lock)
    return rank


# The lowest position of all tracked cursors.
cdef inline CursorPosition active_cursors_slowest(ActiveCursors* container) noexcept nogil:
    cdef uint32_t stamp = stamped_optimistic(&container.registry.lock)
    cdef CursorPosition slowest
    if not i64_load_relaxed(&container.pending):
        slowest = registry_slowest(&container.registry)
        if stamped_validate(&container.registry.lock, stamp):
            return slowest
    stamped_lock_write(&container.registry.lock)
    active_flush(container)
    slowest = registry_slowest(&container.registry)
    stamped_unlock_write(&container.registry.lock)
    return slowest


# The cursor of an id. Its place is the newest, also before a flush.
cdef inline CursorState active_cursors_look(ActiveCursors* container, uint64_t id) noexcept nogil:
    cdef CursorState state
    cdef ActiveCursor* cursor
    stamped_lock_read(&container.registry.lock)
    cursor = <ActiveCursor*>registry_find(&container.registry, id)
    state = registry_state(
        <CursorNode*>cursor, untracked() if cursor is NULL else cursor.target)
    stamped_unlock_read(&container.registry.lock)
    return state


# A cursor at the lowest position; of several the one that was registered first.
cdef inline CursorState active_cursors_slowest_cursor(ActiveCursors* container) noexcept nogil:
    cdef CursorNode* node
    cdef CursorNode* slowest = NULL
    cdef CursorPosition place, least = untracked()
    cdef CursorState state
    stamped_lock_read(&container.registry.lock)
    node = container.registry.first
    while node is not NULL:
        place = (<ActiveCursor*>node).target
        if place.tracked and (slowest is NULL or position_less(place.at, least.at)):
            slowest = node
            least = place
        node = node.after
    state = registry_state(slowest, least)
    stamped_unlock_read(&container.registry.lock)
    return state


# True if an entry that is added now is worth caching: a cursor may read it soon.
cdef inline bint active_cursors_should_cache(const ActiveCursors* container, int64_t now) noexcept nogil:
    return not registry_idle(&container.registry, now, container.grace)


# How often an entry that is added now will be read: every active cursor is before it.
cdef inline int64_t active_cursors_reads_of_added(const ActiveCursors* container) noexcept nogil:
    return registry_size(&container.registry)


# Flush -------------------------------------------------------------------------------------------

# Applies all changes: one by one as long as that is cheaper than one sweep over the whole list. A
# cursor that comes takes the place of one that leaves and goes on from there: far fewer groups are
# between.
cdef inline void active_flush(ActiveCursors* container) noexcept nogil:
    cdef int64_t budget = container.groups.count + 16
    cdef ActiveCursor* waiting = NULL   # one that comes or leaves and has met no counterpart
    cdef ActiveCursor* cursor
    if container.changes is NULL:
        return
    while container.changes is not NULL and budget > 0:
        cursor = active_next_change(container)
        if waiting is NULL and active_comes_or_leaves(cursor):
            waiting = cursor
            continue
        if waiting is not NULL and active_comes_or_leaves(cursor) and (
                waiting.target.tracked != cursor.target.tracked):
            cursor_hand_over(waiting, cursor)
            budget -= active_settle(container, waiting)
            waiting = NULL
        budget -= active_settle(container, cursor)
    if waiting is not NULL:
        active_settle(container, waiting)
    if container.changes is not NULL:
        active_sweep(container)
    registry_publish_slowest(
        &container.registry,
        untracked() if container.groups.head is NULL else tracked_at(container.groups.head.at))


cdef inline bint active_comes_or_leaves(const ActiveCursor* cursor) noexcept nogil:
    return cursor.target.tracked == (cursor_group(cursor) is NULL)


# Applies one change; the groups that were touched.
cdef inline int64_t active_settle(ActiveCursors* container, ActiveCursor* cursor) noexcept nogil:
    cdef int64_t steps = groups_move(&container.groups, cursor)
    active_give_removed(container, cursor)
    return steps


cdef inline ActiveCursor* active_next_change(ActiveCursors* container) noexcept nogil:
    cdef ActiveCursor* cursor = container.changes
    container.changes = cursor.next_changed
    cursor.next_changed = NULL
    cursor.changed = False
    i64_store_relaxed(&container.pending, i64_load_relaxed(&container.pending) - 1)
    return cursor


# A removed cursor that stands nowhere goes back, with a group.
cdef inline void active_give_removed(ActiveCursors* container, ActiveCursor* cursor) noexcept nogil:
    if not cursor.removed:
        return
    container.removed -= 1
    pool_give(&container.memory.groups, groups_take_spare(&container.groups).handle)
    registry_give(&container.registry, &cursor.node)


# All changes at once: everybody leaves, then those that stay tracked are merged into the list in
# order.
cdef inline void active_sweep(ActiveCursors* container) noexcept nogil:
    cdef ActiveCursor* arriving = NULL
    cdef ActiveCursor* cursor
    cdef int64_t count = 0
    while container.changes is not NULL:
        cursor = active_next_change(container)
        if cursor_group(cursor) is not NULL:
            groups_leave(&container.groups, cursor)
        if cursor.target.tracked:
            cursor.next_changed = arriving
            arriving = cursor
            count += 1
        else:
            active_give_removed(container, cursor)
    groups_merge(&container.groups, arriving, count)
