# The delayed messages of one subscription, in memory.
#
# Origin       InMemoryDelayedDeliveryTracker (Pulsar 4.1 with #26012 and #25681). The original
#              relies on its dispatcher's monitor, which counting getters do not take; here each
#              call takes the tracker's own. Time and timer are arguments and state: nothing here
#              reads a clock or waits.
# Threads      Any thread, except init and destroy.
# Invariants   DT-1 (I91) the count is the number of positions in all buckets.
#              DT-2 (I92) there are buckets exactly when the count is above zero, and none is empty.
#              DT-3 (I93) no message is returned before its time; if delivery is not strict, no
#              message is returned more than a tick before its time.
#              DT-4 (I96) the timer's target is set exactly while the timer is armed.
#              DT-5 (I95) when a call that updates the timer ends and the first bucket is in the
#              future, the timer is armed for it.
# Ordering     The monitor's.
# Reclamation  A bucket goes back to its pool with its last message.
# Not promised That a position is in one bucket: one that comes twice with two times is returned
#              twice.

from libc.stdint cimport INT64_MAX, int64_t, uint32_t
from libc.string cimport memset

from pulsar_ml.structures.delay_bucket cimport (
    DelayBucket, DelayRule, add_saturating, bucket_add, bucket_at, bucket_copy, bucket_remove_to,
    delay_cutoff, delay_due, delay_key, delay_limit, delay_rule,
)
from pulsar_ml.structures.delay_index cimport (
    DelayIndex, index_find, index_first, index_insert, index_remove,
)
from pulsar_ml.structures.entry_set cimport SET_ADDED, SET_NO_MEMORY, SetAdded
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.object_pool cimport Pool, pool_give, pool_take
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.sync.atomics cimport pml_u32


cdef enum DelayAnswer:
    DELAY_TRACKED = 0
    DELAY_DELIVER_NOW = 1   # the message's time has come; it is not kept
    DELAY_NO_MEMORY = 2     # nothing changed
    DELAY_CLOSED = 3        # the view is closed; nothing changed


cdef enum:
    TIMER_OFF = -1          # the target of a timer that is not armed


cdef struct DelayTimer:
    bint armed
    int64_t target          # the bucket it is armed for
    int64_t fire_at
    int64_t last_run
    bint ran                # there was a last run


cdef struct DelayedTracker:
    pml_u32 monitor
    Pool* buckets
    DelayRule rule
    int64_t tick
    int64_t lookahead       # messages of one fixed delay that pause the dispatcher; 0: never
    DelayIndex index
    int64_t count
    int64_t bytes           # of the sets
    int64_t highest         # delivery time since the tracker was empty
    bint all_fixed          # delivery times came in order, but for a tick
    DelayTimer timer


# Times are milliseconds. tick >= 0; the pool may be shared with others.
cdef inline void delayed_tracker_init(
    DelayedTracker* tracker, Pool* buckets, int64_t tick, bint strict, int64_t lookahead
) noexcept nogil:
    memset(tracker, 0, sizeof(DelayedTracker))
    tracker.buckets = buckets
    tracker.rule = delay_rule(tick, strict)
    tracker.tick = tick
    tracker.lookahead = lookahead
    tracker.all_fixed = True
    tracker.timer.target = TIMER_OFF


cdef inline void delayed_tracker_destroy(DelayedTracker* tracker) noexcept nogil:
    delayed_tracker_clear(tracker)


# In the monitor ----------------------------------------------------------------------------------

# The bucket of a time, made when there is none; 0 without memory.
cdef inline uint32_t tracker_bucket(DelayedTracker* tracker, int64_t key) noexcept nogil:
    cdef uint32_t handle = index_find(&tracker.index, key)
    cdef DelayBucket* bucket
    if handle:
        return handle
    handle = pool_take(tracker.buckets)
    if not handle:
        return 0
    if not index_insert(&tracker.index, key, handle):
        pool_give(tracker.buckets, handle)
        return 0
    bucket = bucket_at(tracker.buckets, handle)
    bucket.owner = tracker
    bucket.key = key
    return handle


# Takes messages up to a position out of a bucket, and the bucket with its last one.
cdef inline void tracker_take_out(DelayedTracker* tracker, uint32_t handle, Position last) noexcept nogil:
    cdef DelayBucket* bucket = bucket_at(tracker.buckets, handle)
    tracker.count -= bucket_remove_to(bucket, last, &tracker.bytes)
    if not bucket.count:
        index_remove(&tracker.index, bucket.key)
        bucket.owner = NULL
        pool_give(tracker.buckets, handle)


cdef inline int64_t tracker_first(const DelayedTracker* tracker) noexcept nogil:
    cdef int64_t key = 0
    index_first(&tracker.index, &key)
    return key


cdef inline bint tracker_due(const DelayedTracker* tracker, int64_t now) noexcept nogil:
    return tracker.count > 0 and tracker_first(tracker) <= delay_limit(tracker.rule, tracker.tick, now)


# Arms the timer for the first bucket, or for nothing when there is none or it is due already.
cdef inline void tracker_update_timer(DelayedTracker* tracker, int64_t now) noexcept nogil:
    cdef DelayTimer* timer = &tracker.timer
    cdef int64_t first = tracker_first(tracker) if tracker.count else TIMER_OFF
    if first == timer.target:
        return
    timer.armed = False
    timer.target = TIMER_OFF
    if not tracker.count or delay_due(tracker.rule, tracker.tick, first) <= now:
        return
    timer.armed = True
    timer.target = first
    timer.fire_at = delay_due(tracker.rule, tracker.tick, first)
    if timer.ran:
        timer.fire_at = max(timer.fire_at, add_saturating(timer.last_run, tracker.tick))


# Operations --------------------------------------------------------------------------------------

# Keeps a message until its time, or says that the time has come.
cdef inline DelayAnswer delayed_tracker_add(
    DelayedTracker* tracker, Position at, int64_t deliver_at, int64_t now
) noexcept nogil:
    cdef uint32_t handle
    cdef SetAdded added = SET_NO_MEMORY
    monitor_enter(&tracker.monitor)
    if deliver_at < 0 or deliver_at <= delay_cutoff(tracker.rule, tracker.tick, now):
        tracker.all_fixed = False
        monitor_leave(&tracker.monitor)
        return DELAY_DELIVER_NOW
    handle = tracker_bucket(tracker, delay_key(tracker.rule, deliver_at))
    if handle:
        added = bucket_add(bucket_at(tracker.buckets, handle), at, &tracker.bytes)
        if added == SET_NO_MEMORY:
            # A bucket that was made for it goes again.
            tracker_take_out(tracker, handle, position(-1, -1))
    if added != SET_NO_MEMORY:
        tracker.count += added == SET_ADDED
        if deliver_at < add_saturating(tracker.highest, -tracker.tick):
            tracker.all_fixed = False
        tracker.highest = max(tracker.highest, deliver_at)
        tracker_update_timer(tracker, now)
    monitor_leave(&tracker.monitor)
    return DELAY_NO_MEMORY if added == SET_NO_MEMORY else DELAY_TRACKED


# True if a message is due.
cdef inline bint delayed_tracker_has_message(DelayedTracker* tracker, int64_t now) noexcept nogil:
    cdef bint due
    monitor_enter(&tracker.monitor)
    due = tracker_due(tracker, now)
    if not due:
        tracker_update_timer(tracker, now)
    monitor_leave(&tracker.monitor)
    return due


# Takes out messages that are due, in the order of buckets and then of positions; how many.
cdef inline int64_t delayed_tracker_scheduled(
    DelayedTracker* tracker, Position* out, int64_t most, int64_t now
) noexcept nogil:
    cdef int64_t n = 0
    cdef int64_t key = 0
    cdef int64_t got, limit
    cdef uint32_t handle
    cdef bint whole
    monitor_enter(&tracker.monitor)
    limit = delay_limit(tracker.rule, tracker.tick, now)
    while n < most:
        handle = index_first(&tracker.index, &key)
        if not handle or key > limit:
            break
        got = bucket_copy(bucket_at(tracker.buckets, handle), position(-1, -1), out + n, most - n)
        n += got
        whole = got == bucket_at(tracker.buckets, handle).count
        tracker_take_out(tracker, handle, position(INT64_MAX, INT64_MAX) if whole else out[n - 1])
    if not tracker.count:
        tracker.highest = 0
        tracker.all_fixed = True
    tracker_update_timer(tracker, now)
    monitor_leave(&tracker.monitor)
    return n


# Forgets all messages, as 5.0.1 does with the highest time and the fixed delay; the timer stays.
cdef inline void delayed_tracker_clear(DelayedTracker* tracker) noexcept nogil:
    cdef int64_t key = 0
    cdef uint32_t handle
    monitor_enter(&tracker.monitor)
    while True:
        handle = index_first(&tracker.index, &key)
        if not handle:
            break
        tracker_take_out(tracker, handle, position(INT64_MAX, INT64_MAX))
    tracker.highest = 0
    tracker.all_fixed = True
    monitor_leave(&tracker.monitor)


# True if the dispatcher may rest: so many messages of one fixed delay are kept that those it would
# read are due later.
cdef inline bint delayed_tracker_should_pause(DelayedTracker* tracker, int64_t now) noexcept nogil:
    cdef bint pause
    monitor_enter(&tracker.monitor)
    pause = (tracker.lookahead > 0 and tracker.all_fixed and tracker.count >= tracker.lookahead
             and not tracker_due(tracker, now))
    monitor_leave(&tracker.monitor)
    return pause


cdef inline void delayed_tracker_set_tick(DelayedTracker* tracker, int64_t tick) noexcept nogil:
    monitor_enter(&tracker.monitor)
    tracker.tick = tick
    monitor_leave(&tracker.monitor)


cdef inline int64_t delayed_tracker_count(DelayedTracker* tracker) noexcept nogil:
    cdef int64_t count
    monitor_enter(&tracker.monitor)
    count = tracker.count
    monitor_leave(&tracker.monitor)
    return count


cdef inline int64_t delayed_tracker_bytes(DelayedTracker* tracker) noexcept nogil:
    cdef int64_t bytes
    monitor_enter(&tracker.monitor)
    bytes = tracker.bytes + tracker.index.count * <int64_t>sizeof(DelayBucket)
    monitor_leave(&tracker.monitor)
    return bytes


# When to call fire; False when the timer is not armed.
cdef inline bint delayed_tracker_next_fire(DelayedTracker* tracker, int64_t* at) noexcept nogil:
    cdef bint armed
    monitor_enter(&tracker.monitor)
    armed = tracker.timer.armed
    at[0] = tracker.timer.fire_at
    monitor_leave(&tracker.monitor)
    return armed


# The timer's time has come: True when it was armed for now or earlier, and then the dispatcher
# should read.
cdef inline bint delayed_tracker_fire(DelayedTracker* tracker, int64_t now) noexcept nogil:
    cdef DelayTimer* timer = &tracker.timer
    cdef bint fires
    monitor_enter(&tracker.monitor)
    fires = timer.armed and timer.fire_at <= now
    if fires:
        timer.last_run = now
        timer.ran = True
        timer.armed = False
        timer.target = TIMER_OFF
    monitor_leave(&tracker.monitor)
    return fires
