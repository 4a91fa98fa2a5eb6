# Groups of cursors in the order of their positions, each knowing how many cursors are at or before
# it.
#
# Origin       The sorted list of nodes of ActiveManagedCursorContainerImpl (Pulsar 4.1), whose
#              nodes at one position share a counter. Here those are one group, and the list is of
#              groups.
# Threads      One at a time: the thread in the container's write section. Queries read `group` and
#              `rank` under a stamp; see active_cursors.pxd.
# Invariants   AG-1 (I72) groups ascend strictly, their links, head and tail agree, and no group is
#              empty.
#              AG-2 (I73) a group's rank is the number of members of all groups up to it.
#              AG-3 (I74) cursors of one position share one group.
# Ordering     A cursor's group is stored with release: a thread that reads it with acquire finds
#              its memory made.
# Reclamation  Groups come with the cursors and go with them; those not in the list are kept as
#              spare ones. There is one for each cursor, so nothing here allocates or fails.
# Not promised Any order among the cursors of a group.

from libc.stdint cimport int64_t, uint32_t

from pulsar_ml.structures.cursor_registry cimport CursorNode, CursorPosition
from pulsar_ml.structures.position cimport Position, position_equal, position_less
from pulsar_ml.sync.atomics cimport (
    i64_load_relaxed, i64_store_relaxed, pml_i64, pml_ptr, ptr_load_relaxed, ptr_store_release,
)


# The cursors at one position.
cdef struct CursorGroup:
    Position at
    pml_i64 rank
    int64_t members
    CursorGroup* before
    CursorGroup* after
    pml_i64 link            # next free group while pooled
    uint32_t handle


cdef struct ActiveCursor:
    CursorNode node
    pml_ptr group           # where it stands since the last flush, NULL when not tracked then
    CursorPosition target   # where it belongs
    ActiveCursor* next_changed
    bint changed            # in the list of changes
    bint removed


cdef struct CursorGroups:
    CursorGroup* head
    CursorGroup* tail
    CursorGroup* spare
    int64_t count           # in the list


cdef inline void groups_spare(CursorGroups* groups, CursorGroup* group) noexcept nogil:
    group.after = groups.spare
    groups.spare = group


cdef inline CursorGroup* groups_take_spare(CursorGroups* groups) noexcept nogil:
    cdef CursorGroup* group = groups.spare
    groups.spare = group.after
    return group


# A new group between two neighbours, either of them NULL at an end.
cdef inline CursorGroup* groups_insert(
    CursorGroups* groups, CursorGroup* before, CursorGroup* after, Position at
) noexcept nogil:
    cdef CursorGroup* group = groups_take_spare(groups)
    group.at = at
    group.members = 0
    group.before = before
    group.after = after
    if before is NULL:
        groups.head = group
    else:
        before.after = group
    if after is NULL:
        groups.tail = group
    else:
        after.before = group
    groups.count += 1
    return group


cdef inline void groups_drop(CursorGroups* groups, CursorGroup* group) noexcept nogil:
    if group.before is NULL:
        groups.head = group.after
    else:
        group.before.after = group.after
    if group.after is NULL:
        groups.tail = group.before
    else:
        group.after.before = group.before
    groups.count -= 1
    groups_spare(groups, group)


cdef inline void groups_join(ActiveCursor* cursor, CursorGroup* group) noexcept nogil:
    group.members += 1
    # Pairs with the acquire in active_rank.
    ptr_store_release(&cursor.group, group)


cdef inline CursorGroup* cursor_group(const ActiveCursor* cursor) noexcept nogil:
    return <CursorGroup*>ptr_load_relaxed(&cursor.group)


# The cursor stands nowhere; its group goes when that was the last member. Ranks are the caller's
# matter.
cdef inline void groups_leave(CursorGroups* groups, ActiveCursor* cursor) noexcept nogil:
    cdef CursorGroup* group = cursor_group(cursor)
    ptr_store_release(&cursor.group, NULL)
    group.members -= 1
    if not group.members:
        groups_drop(groups, group)


# Exchanges two cursors of which one stands in a group and the other nowhere; no rank changes.
cdef inline void cursor_hand_over(ActiveCursor* a, ActiveCursor* b) noexcept nogil:
    cdef CursorGroup* group = cursor_group(a)
    ptr_store_release(&a.group, cursor_group(b))
    ptr_store_release(&b.group, group)


cdef inline void group_add(CursorGroup* group, int64_t amount) noexcept nogil:
    i64_store_relaxed(&group.rank, i64_load_relaxed(&group.rank) + amount)


# True if the cursor is alone in its group and the group may stay where it is in the list.
cdef inline bint group_fits(const ActiveCursor* cursor, const CursorGroup* group) noexcept nogil:
    return (group.members == 1 and cursor.target.tracked
            and (group.before is NULL or position_less(group.before.at, cursor.target.at))
            and (group.after is NULL or position_less(cursor.target.at, group.after.at)))


# Brings one cursor to its place and the ranks of the groups between up to date; their number. A
# cursor that was not tracked comes from behind the tail, one that is not tracked any more goes
# there.
cdef inline int64_t groups_move(CursorGroups* groups, ActiveCursor* cursor) noexcept nogil:
    cdef CursorGroup* group = cursor_group(cursor)
    cdef CursorGroup* before = groups.tail
    cdef CursorGroup* after = NULL
    cdef CursorPosition target = cursor.target
    cdef int64_t steps = 1
    if group is NULL and not target.tracked:
        return steps
    if group is not NULL:
        if group_fits(cursor, group):
            group.at = target.at
            return steps
        if target.tracked and position_equal(group.at, target.at):
            return steps
        before = group.before
        after = group.after
        if group.members > 1:
            # The group stays: it is on the one side or on the other of the cursor from now on.
            if target.tracked and position_less(target.at, group.at):
                after = group
            else:
                group_add(group, -1)
                before = group
        groups_leave(groups, cursor)
    # Only one of the loops has anything to do.
    while after is not NULL and (not target.tracked or position_less(after.at, target.at)):
        group_add(after, -1)
        before = after
        after = after.after
        steps += 1
    while target.tracked and before is not NULL and not position_less(before.at, target.at):
        group_add(before, 1)
        after = before
        before = before.before
        steps += 1
    if target.tracked:
        if after is NULL or not position_equal(after.at, target.at):
            after = groups_insert(groups, before, after, target.at)
            i64_store_relaxed(&after.rank, 1 + (0 if before is NULL else i64_load_relaxed(&before.rank)))
        groups_join(cursor, after)
    return steps


# So many cursors that stand nowhere, linked through next_changed, come to their places; all ranks
# are made anew.
cdef inline void groups_merge(CursorGroups* groups, ActiveCursor* arriving, int64_t count) noexcept nogil:
    cdef ActiveCursor* cursor
    cdef CursorGroup* before = NULL
    cdef CursorGroup* after = groups.head
    cdef int64_t rank = 0
    if count:
        arriving = cursors_sorted(&arriving, count)
    while arriving is not NULL or after is not NULL:
        if arriving is not NULL and (after is NULL or not position_less(after.at, arriving.target.at)):
            if after is NULL or not position_equal(after.at, arriving.target.at):
                after = groups_insert(groups, before, after, arriving.target.at)
            cursor = arriving
            arriving = cursor.next_changed
            cursor.next_changed = NULL
            groups_join(cursor, after)
        else:
            rank += after.members
            i64_store_relaxed(&after.rank, rank)
            before = after
            after = after.after


# The first so many of a list by target, ascending: merge sort. `rest` becomes what follows them.
cdef inline ActiveCursor* cursors_sorted(ActiveCursor** rest, int64_t count) noexcept nogil:
    cdef ActiveCursor* first = rest[0]
    if count > 1:
        first = cursors_sorted(rest, count // 2)
        return cursors_merged(first, cursors_sorted(rest, count - count // 2))
    rest[0] = first.next_changed
    first.next_changed = NULL
    return first


cdef inline ActiveCursor* cursors_merged(ActiveCursor* a, ActiveCursor* b) noexcept nogil:
    cdef ActiveCursor* first = NULL
    cdef ActiveCursor** end = &first
    while a is not NULL and b is not NULL:
        if position_less(b.target.at, a.target.at):
            end[0] = b
            b = b.next_changed
        else:
            end[0] = a
            a = a.next_changed
        end = &end[0].next_changed
    end[0] = b if a is NULL else a
    return first
