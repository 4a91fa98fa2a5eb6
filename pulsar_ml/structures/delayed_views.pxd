# Factory, managers and views of delayed messages, and how they come and go. A part of
# delayed_manager.
#
# Origin       The factory's cache of managers and createOrGetView of PIP-448's branch (#24927).
#              Mended: a last close and a new subscription exclude each other, and a subscription
#              that comes back gets its view with the mark-delete position that it has.
# Threads      Any thread, except init and destroy.
# Invariants   DM-8 a manager is in the factory exactly while it has an open view.
#              DM-10 a topic has at most one open view of a subscription: an open of a registered
#              subscription returns its view.
# Ordering     Locks: the factory's monitor -> views -> a view.
# Reclamation  A view's memory stays until each open of it was freed: others may be inside when it
#              is closed, and get an answer that says so. A manager goes with its last view.
# Not promised Speed with very many topics or subscriptions of one: open looks at each.

from libc.stdint cimport INT64_MAX, int64_t, uint32_t
from libc.string cimport memset

from pulsar_ml.structures.delay_bucket cimport bucket_pool_init, delay_rule
from pulsar_ml.structures.delayed_table cimport (
    DelayCursor, DelayTable, beyond_all, delay_cursor, table_remove_to,
)
from pulsar_ml.structures.delayed_tracker cimport TIMER_OFF
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.object_pool cimport Pool, pool_destroy
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.stamped_lock cimport (
    stamped_lock_read, stamped_lock_write, stamped_unlock_read, stamped_unlock_write,
)
from pulsar_ml.structures.status cimport Status
from pulsar_ml.sync.atomics cimport i64_store_relaxed, pml_i64, pml_u32
from pulsar_ml.sync.memory cimport allocate_zeroed, release


# Tells a subscription to read. It calls nothing of the manager: it runs under its locks.
ctypedef void (*DelayTrigger)(void* context, int64_t argument) noexcept nogil


cdef struct DelayedSettings:
    int64_t tick            # milliseconds, like all times
    bint strict
    int64_t lookahead       # messages of one fixed delay that pause a dispatcher; 0: never
    int64_t prune_interval
    double prune_ratio      # of the views, which a fire has to trigger before it prunes


cdef struct DelayedFactory:
    pml_u32 monitor
    Pool buckets
    DelayedSettings settings
    DelayTrigger trigger
    void* context
    DelayedManager* managers    # those with an open view; under the monitor, like `next`


cdef struct DelayedManager:
    DelayTable table
    DelayedFactory* factory
    DelayedManager* next
    int64_t topic
    int64_t users           # views that are not freed; under the factory's monitor
    pml_u32 views_lock
    DelayedView* views
    int64_t open_views


cdef struct DelayedView:
    pml_u32 lock            # shared to add and to look; what follows changes in the exclusive mode
    DelayedManager* manager
    DelayedView* next       # under the lock of the views
    int64_t subscription
    int64_t holders         # opens that were not freed; under the factory's monitor
    int64_t argument        # for the trigger
    bint closed
    bint marked             # there is a mark-delete position
    Position mark_delete
    DelayCursor cursor      # from here on nothing was returned
    int64_t returned        # messages, in all
    pml_i64 late            # the first bucket that got a message behind the cursor
    pml_i64 highest         # delivery time of a message of this view
    pml_u32 varied          # they came out of order, by more than a tick


# Factory and views -------------------------------------------------------------------------------

# limit: most buckets of all topics together.
cdef inline Status delayed_factory_init(
    DelayedFactory* factory, DelayedSettings settings, DelayTrigger trigger, void* context,
    uint32_t chunk_bits, uint32_t limit
) noexcept nogil:
    memset(factory, 0, sizeof(DelayedFactory))
    factory.settings = settings
    factory.trigger = trigger
    factory.context = context
    return bucket_pool_init(&factory.buckets, chunk_bits, limit)


# All views were freed.
cdef inline void delayed_factory_destroy(DelayedFactory* factory) noexcept nogil:
    pool_destroy(&factory.buckets)


cdef inline DelayedManager* manager_new(DelayedFactory* factory, int64_t topic) noexcept nogil:
    cdef DelayedManager* manager = <DelayedManager*>allocate_zeroed(1, sizeof(DelayedManager))
    if manager is not NULL:
        manager.factory = factory
        manager.topic = topic
        manager.table.buckets = &factory.buckets
        manager.table.rule = delay_rule(factory.settings.tick, factory.settings.strict)
        i64_store_relaxed(&manager.table.tick, factory.settings.tick)
        i64_store_relaxed(&manager.table.passed, -1)
        i64_store_relaxed(&manager.table.target, TIMER_OFF)
    return manager


# Under the lock of the views: the open view of a subscription, or NULL. A view that is being closed
# is in the list still.
cdef inline DelayedView* manager_view_of(DelayedManager* manager, int64_t subscription) noexcept nogil:
    cdef DelayedView* view = manager.views
    cdef bint found
    while view is not NULL:
        if view.subscription == subscription:
            stamped_lock_read(&view.lock)
            found = not view.closed
            stamped_unlock_read(&view.lock)
            if found:
                return view
        view = view.next
    return NULL


# The view of a subscription of a topic: the open one, which gets one more holder, or a new one with
# this argument. A topic's manager is made for its first view. NULL without memory.
cdef inline DelayedView* delayed_view_open(
    DelayedFactory* factory, int64_t topic, int64_t subscription, int64_t argument
) noexcept nogil:
    cdef DelayedView* view = NULL
    cdef DelayedManager* manager
    monitor_enter(&factory.monitor)
    manager = factory.managers
    while manager is not NULL and manager.topic != topic:
        manager = manager.next
    if manager is not NULL:
        stamped_lock_read(&manager.views_lock)
        view = manager_view_of(manager, subscription)
        stamped_unlock_read(&manager.views_lock)
    if view is not NULL:
        view.holders += 1
    else:
        view = manager_open(factory, manager, topic, subscription, argument)
    monitor_leave(&factory.monitor)
    return view


# Under the factory's monitor: a new view of a topic, whose manager is made if it has none.
cdef inline DelayedView* manager_open(
    DelayedFactory* factory, DelayedManager* manager, int64_t topic, int64_t subscription,
    int64_t argument
) noexcept nogil:
    cdef DelayedView* view = <DelayedView*>allocate_zeroed(1, sizeof(DelayedView))
    if view is NULL:
        return NULL
    if manager is NULL:
        manager = manager_new(factory, topic)
        if manager is NULL:
            release(view)
            return NULL
        manager.next = factory.managers
        factory.managers = manager
    view.manager = manager
    view.subscription = subscription
    view.holders = 1
    view.argument = argument
    view.cursor = delay_cursor(-1, position(-1, -1))
    i64_store_relaxed(&view.late, INT64_MAX)
    manager.users += 1
    # Not while a prune or a fire goes over the views.
    stamped_lock_write(&manager.views_lock)
    view.next = manager.views
    manager.views = view
    manager.open_views += 1
    stamped_unlock_write(&manager.views_lock)
    return view


# Marks a view closed; False when it was closed. Calls that are inside end before, or answer that
# the view is closed.
cdef inline bint view_shut(DelayedView* view) noexcept nogil:
    cdef bint closed
    stamped_lock_write(&view.lock)
    closed = view.closed
    view.closed = True
    stamped_unlock_write(&view.lock)
    return not closed


# Under the factory's monitor: takes a closed view out of its manager, and the manager without views
# out of the factory; whether it was the last view.
cdef inline bint manager_unlink(DelayedManager* manager, DelayedView* view) noexcept nogil:
    cdef DelayedView** link
    cdef DelayedManager** place
    cdef bint last
    stamped_lock_write(&manager.views_lock)
    link = &manager.views
    while link[0] is not view:
        link = &link[0].next
    link[0] = view.next
    manager.open_views -= 1
    last = manager.open_views == 0
    stamped_unlock_write(&manager.views_lock)
    if last:
        place = &manager.factory.managers
        while place[0] is not manager:
            place = &place[0].next
        place[0] = manager.next
    return last


# Forgets the messages of a manager that left its factory.
cdef inline void manager_forget(DelayedManager* manager) noexcept nogil:
    table_remove_to(&manager.table, beyond_all())
    i64_store_relaxed(&manager.table.target, TIMER_OFF)


# Closes a view for all its holders; False when it was closed. With the last view of a topic the
# manager leaves its factory and its messages are forgotten.
cdef inline bint delayed_view_close(DelayedView* view) noexcept nogil:
    cdef DelayedManager* manager = view.manager
    cdef bint last
    if not view_shut(view):
        return False
    # A new subscription finds the manager with its views, or not at all.
    monitor_enter(&manager.factory.monitor)
    last = manager_unlink(manager, view)
    monitor_leave(&manager.factory.monitor)
    if last:
        manager_forget(manager)
    return True


# Gives back one open of a view; the last one closes the view if nobody did, and gives back its
# memory. The holder is not inside.
cdef inline void delayed_view_free(DelayedView* view) noexcept nogil:
    cdef DelayedManager* manager = view.manager
    cdef bint unused, last
    cdef bint forgotten = False
    # One section: an open finds a view with a holder, or none.
    monitor_enter(&manager.factory.monitor)
    view.holders -= 1
    unused = view.holders == 0
    if unused and view_shut(view):
        forgotten = manager_unlink(manager, view)
    monitor_leave(&manager.factory.monitor)
    if not unused:
        return
    if forgotten:
        manager_forget(manager)
    monitor_enter(&manager.factory.monitor)
    manager.users -= 1
    last = manager.users == 0
    monitor_leave(&manager.factory.monitor)
    release(view)
    if last:
        release(manager)
