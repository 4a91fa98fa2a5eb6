# The delayed messages of topics, each message once for all subscriptions: messages, mark-delete
# positions and the timer. The life of managers and views is in delayed_views.pxd.
#
# Origin       TopicDelayedDeliveryTrackerManager of PIP-448 and its branch (#24927). Mended: strict
#              delivery is not early (buckets round up), the prune clock may start anywhere, counts
#              equal sets, a bucket's lock does not retire while a reader waits. A view returns each
#              message once, not all of them again until it marks them deleted (see "Retrieval" in
#              the page).
# Threads      Any thread whose view is not freed.
# Invariants   DM-5 (I94) a message above a view's mark-delete position and cursor is returned to
#              the view once it is due; a message that is added behind a view's cursor takes the
#              cursor back.
#              DM-6 (I97) a prune removes the messages that every registered view has marked, and
#              nothing while one view has marked nothing; views come and seek back only between
#              prunes.
#              DM-7 (I100) no call on a view has an effect after the view's close returned, and a
#              closed view is not triggered.
#              DM-9 the first chance to prune is taken, whatever the clock says.
# Ordering     Locks: those of delayed_views.pxd; view or views -> those of delayed_table.pxd. A
#              view's `late` (release) -> its scan (acquire).
# Reclamation  Buckets by the table; managers and views by delayed_views.pxd.
# Not promised That a message is returned once when its time is below the clock of a view that has
#              passed it: then the view gets that bucket again.

from libc.stdint cimport INT64_MAX, int64_t

from pulsar_ml.structures.delay_bucket cimport DelayBucket, add_saturating, delay_cutoff, delay_key
from pulsar_ml.structures.delayed_table cimport (
    DelayCursor, DelayTable, beyond_all, delay_cursor, table_add, table_arm, table_arm_next,
    table_collect, table_count_above, table_limit, table_next, table_remove_to, table_start_fire,
    table_start_prune,
)
from pulsar_ml.structures.delayed_tracker cimport (
    DELAY_CLOSED, DELAY_DELIVER_NOW, DELAY_NO_MEMORY, DELAY_TRACKED, TIMER_OFF, DelayAnswer,
)
from pulsar_ml.structures.delayed_views cimport DelayedManager, DelayedView
from pulsar_ml.structures.entry_set cimport SET_NO_MEMORY
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.position cimport Position, position, position_less
from pulsar_ml.structures.stamped_lock cimport (
    stamped_lock_read, stamped_lock_write, stamped_unlock_read, stamped_unlock_write,
)
from pulsar_ml.sync.atomics cimport (
    i64_cas_weak_relaxed, i64_cas_weak_release, i64_exchange_acquire, i64_load_acquire, i64_load_relaxed,
    i64_store_relaxed, u32_load_relaxed, u32_store_relaxed,
)


# Messages ----------------------------------------------------------------------------------------

# Takes back the cursors of the views that passed a bucket: it got a message behind them.
cdef inline void manager_late(DelayedManager* manager, int64_t key) noexcept nogil:
    cdef DelayedView* view
    cdef int64_t seen
    stamped_lock_read(&manager.views_lock)
    view = manager.views
    while view is not NULL:
        seen = i64_load_relaxed(&view.late)
        # Fails when another one takes it back.
        while key < seen:
            # Pairs with the acquire in view_from.
            if i64_cas_weak_release(&view.late, &seen, key):
                break
        view = view.next
    # Not before: a fire in between would see no view that it has to trigger.
    if manager.views is not NULL:
        table_arm(&manager.table, key)
    stamped_unlock_read(&manager.views_lock)


# Notes an added message's delivery time: it tells whether the view's delays are all the same.
cdef inline void view_note_time(DelayedView* view, int64_t deliver_at, int64_t tick) noexcept nogil:
    cdef int64_t seen = i64_load_relaxed(&view.highest)
    if deliver_at < add_saturating(seen, -tick):
        u32_store_relaxed(&view.varied, 1)
    # Fails when another one adds.
    while seen < deliver_at:
        if i64_cas_weak_relaxed(&view.highest, &seen, deliver_at):
            break


# Keeps a message until its time, for all views, or says that the time has come.
cdef inline DelayAnswer delayed_view_add(
    DelayedView* view, Position at, int64_t deliver_at, int64_t now
) noexcept nogil:
    cdef DelayedManager* manager = view.manager
    cdef DelayTable* table = &manager.table
    cdef int64_t tick = i64_load_relaxed(&table.tick)
    cdef DelayAnswer answer = DELAY_TRACKED
    cdef bint late = False
    cdef int64_t key = 0
    stamped_lock_read(&view.lock)
    if view.closed:
        answer = DELAY_CLOSED
    elif deliver_at < 0 or deliver_at <= delay_cutoff(table.rule, tick, now):
        u32_store_relaxed(&view.varied, 1)
        answer = DELAY_DELIVER_NOW
    else:
        key = delay_key(table.rule, deliver_at)
        if table_add(table, key, at) == SET_NO_MEMORY:
            answer = DELAY_NO_MEMORY
        else:
            view_note_time(view, deliver_at, tick)
            # After the lock of the bucket: a view that read the bucket before set `passed` first.
            late = key <= i64_load_relaxed(&table.passed)
            if not late:
                table_arm(table, key)
    stamped_unlock_read(&view.lock)
    if late:
        # Without the view's lock: a thread that seeks back holds the views and waits for this lock.
        manager_late(manager, key)
    return answer


# In the view's section: where it goes on, which may be before its cursor.
cdef inline DelayCursor view_from(DelayedView* view, int64_t late) noexcept nogil:
    # The end of time means that nothing is late: at that time every message is delivered at once.
    if late == INT64_MAX or late > view.cursor.key:
        return view.cursor
    if late == view.cursor.key and view.cursor.at.ledger_id < 0:
        return view.cursor
    return delay_cursor(late, position(-1, -1))


cdef inline Position view_above(const DelayedView* view) noexcept nogil:
    return view.mark_delete if view.marked else position(-1, -1)


# In the view's section, shared or not: whether it has a message that is due.
cdef inline bint view_due(DelayedView* view, int64_t limit) noexcept nogil:
    cdef DelayCursor cursor = view_from(view, i64_load_acquire(&view.late))
    cdef Position first
    return table_collect(&view.manager.table, &cursor, view_above(view), limit, &first, 1, False) > 0


# Copies messages that are due and that it did not return before, in the order of buckets and then
# of positions; how many. -1: the view is closed.
cdef inline int64_t delayed_view_scheduled(
    DelayedView* view, Position* out, int64_t most, int64_t now
) noexcept nogil:
    cdef DelayTable* table = &view.manager.table
    cdef int64_t n = -1
    cdef int64_t key
    stamped_lock_write(&view.lock)
    if not view.closed:
        view.cursor = view_from(view, i64_exchange_acquire(&view.late, INT64_MAX))
        n = table_collect(
            table, &view.cursor, view_above(view), table_limit(table, now), out, most, True)
        view.returned += n
        if n < most:
            table_arm_next(table, now)
        key = max(view.cursor.key, <int64_t>0)
        if not table_next(table, &key, INT64_MAX, False):
            # Nothing is left: what comes next begins a new series of delays.
            i64_store_relaxed(&view.highest, 0)
            u32_store_relaxed(&view.varied, 0)
    stamped_unlock_write(&view.lock)
    if n >= 0:
        manager_prune(view.manager, now)
    return n


# 1: a message is due; 0: none; -1: the view is closed.
cdef inline int64_t delayed_view_has_message(DelayedView* view, int64_t now) noexcept nogil:
    cdef int64_t due = -1
    stamped_lock_read(&view.lock)
    if not view.closed:
        due = view_due(view, table_limit(&view.manager.table, now))
        if not due:
            table_arm_next(&view.manager.table, now)
    stamped_unlock_read(&view.lock)
    return due


# Messages that it will return, at most `enough` of them; -1: the view is closed.
cdef inline int64_t delayed_view_count(DelayedView* view, int64_t enough) noexcept nogil:
    cdef int64_t n = -1
    stamped_lock_read(&view.lock)
    if not view.closed:
        n = table_count_above(
            &view.manager.table, view_from(view, i64_load_acquire(&view.late)), view_above(view), enough)
    stamped_unlock_read(&view.lock)
    return n


# 1: the dispatcher may rest, as in delayed_tracker.pxd; 0: not; -1: the view is closed.
cdef inline int64_t delayed_view_should_pause(DelayedView* view, int64_t now) noexcept nogil:
    cdef DelayTable* table = &view.manager.table
    cdef int64_t lookahead = view.manager.factory.settings.lookahead
    cdef int64_t pause = -1
    stamped_lock_read(&view.lock)
    if not view.closed:
        pause = (
            lookahead > 0 and not u32_load_relaxed(&view.varied)
            and not view_due(view, table_limit(table, now))
            and table_count_above(table, view_from(view, i64_load_acquire(&view.late)), view_above(view),
                                  lookahead) >= lookahead)
    stamped_unlock_read(&view.lock)
    return pause


# Everything above the mark-delete position is returned to the view once more. False: it is closed.
cdef inline bint delayed_view_clear(DelayedView* view) noexcept nogil:
    cdef bint closed
    stamped_lock_write(&view.lock)
    closed = view.closed
    if not closed:
        view.cursor = delay_cursor(-1, position(-1, -1))
    stamped_unlock_write(&view.lock)
    return not closed


# Mark-delete -------------------------------------------------------------------------------------

# In the view's section: whether everything that the position passes was passed before.
cdef inline bint view_moves_on(const DelayedView* view, Position to) noexcept nogil:
    return not view.marked or not position_less(to, view.mark_delete)


# Everything up to a position is acknowledged by this view; one that is lower than before is a seek,
# and the view gets everything above it once more, but for what was pruned. False: it is closed.
cdef inline bint delayed_view_mark_delete(DelayedView* view, Position to, int64_t now) noexcept nogil:
    cdef DelayedManager* manager = view.manager
    cdef bint closed, done
    stamped_lock_write(&view.lock)
    closed = view.closed
    done = closed or view_moves_on(view, to)
    if done and not closed:
        view.marked = True
        view.mark_delete = to
    stamped_unlock_write(&view.lock)
    if not done:
        # Not while a prune relies on the higher position.
        stamped_lock_write(&manager.views_lock)
        stamped_lock_write(&view.lock)
        closed = view.closed
        if not closed:
            if not view_moves_on(view, to):
                view.cursor = delay_cursor(-1, position(-1, -1))
            view.mark_delete = to
        stamped_unlock_write(&view.lock)
        stamped_unlock_write(&manager.views_lock)
    if not closed:
        manager_prune(manager, now)
    return not closed


# Removes what all views have marked, at most once in an interval.
cdef inline void manager_prune(DelayedManager* manager, int64_t now) noexcept nogil:
    cdef DelayedView* view
    cdef Position least = beyond_all()
    cdef bint marked = True
    if not table_start_prune(&manager.table, manager.factory.settings.prune_interval, now):
        return
    stamped_lock_read(&manager.views_lock)
    view = manager.views
    if view is NULL:
        marked = False
    while view is not NULL and marked:
        stamped_lock_read(&view.lock)
        marked = view.marked
        if position_less(view.mark_delete, least):
            least = view.mark_delete
        stamped_unlock_read(&view.lock)
        view = view.next
    if marked:
        table_remove_to(&manager.table, least)
    stamped_unlock_read(&manager.views_lock)


# The timer ---------------------------------------------------------------------------------------

# When to call fire; False when the timer is not armed.
cdef inline bint delayed_manager_next_fire(DelayedManager* manager, int64_t* at) noexcept nogil:
    cdef bint armed
    monitor_enter(&manager.table.clock)
    armed = i64_load_relaxed(&manager.table.target) != TIMER_OFF
    at[0] = manager.table.fire_at
    monitor_leave(&manager.table.clock)
    return armed


# The timer's time has come: triggers the views that have a message; how many. Prunes when they are
# at least one, and the share of the views that the settings name. -1 when the timer is not armed,
# or for later. Somebody holds a view of the manager that is not freed.
cdef inline int64_t delayed_manager_fire(DelayedManager* manager, int64_t now) noexcept nogil:
    cdef DelayedView* view
    cdef int64_t triggered = 0
    cdef int64_t views = 0
    if not table_start_fire(&manager.table, now):
        return -1
    stamped_lock_read(&manager.views_lock)
    view = manager.views
    while view is not NULL:
        views += 1
        stamped_lock_read(&view.lock)
        if not view.closed and view_due(view, table_limit(&manager.table, now)):
            triggered += 1
            # In the section, which a close waits for.
            manager.factory.trigger(manager.factory.context, view.argument)
        stamped_unlock_read(&view.lock)
        view = view.next
    # Nothing is armed once the last view is closed.
    if manager.views is not NULL:
        table_arm_next(&manager.table, now)
    stamped_unlock_read(&manager.views_lock)
    if triggered and triggered >= manager.factory.settings.prune_ratio * views:
        manager_prune(manager, now)
    return triggered


cdef inline void delayed_manager_set_tick(DelayedManager* manager, int64_t tick) noexcept nogil:
    i64_store_relaxed(&manager.table.tick, tick)


# Statistics --------------------------------------------------------------------------------------

cdef inline int64_t delayed_manager_count(DelayedManager* manager) noexcept nogil:
    return i64_load_relaxed(&manager.table.count)


cdef inline int64_t delayed_manager_buckets(DelayedManager* manager) noexcept nogil:
    cdef int64_t buckets
    stamped_lock_read(&manager.table.index_lock)
    buckets = manager.table.index.count
    stamped_unlock_read(&manager.table.index_lock)
    return buckets


cdef inline int64_t delayed_manager_bytes(DelayedManager* manager) noexcept nogil:
    return (i64_load_relaxed(&manager.table.bytes)
            + delayed_manager_buckets(manager) * <int64_t>sizeof(DelayBucket))
