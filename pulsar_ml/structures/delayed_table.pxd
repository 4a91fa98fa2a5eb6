# The index that all subscriptions of a topic share, and its timer: types, buckets that come and go,
# and walks over them. A part of delayed_manager.
#
# Origin       The concurrent map and the lock map of InMemoryTopicDelayedDeliveryTrackerManager
#              (PIP-448's branch, #24927). There a bucket's lock is dropped with the bucket while
#              others wait for it; here the thread that got the lock checks that the bucket is still
#              the one it looked for.
# Threads      Any thread whose view is open, but for what says otherwise.
# Invariants   DM-1 (I91) the count is the number of positions in all buckets.
#              DM-2 (I98) a bucket is read and changed under its lock, while it has its owner and
#              its key.
#              DM-3 (I95) a bucket that no fire has looked at is not before the timer's target.
#              DM-4 no view has passed a bucket that is above `passed`.
# Ordering     Locks: view -> views -> bucket -> index, and the timer's monitor last; a thread that
#              holds the index lock takes no other. The table counts in relaxed cells.
# Reclamation  An empty bucket is taken out of the index under both locks, and goes back to its
#              pool.
# Not promised That a bucket that was found is there later.

from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t

from pulsar_ml.structures.delay_bucket cimport (
    DelayBucket, DelayRule, add_saturating, bucket_add, bucket_at, bucket_copy, bucket_count_above,
    bucket_remove_to, delay_due, delay_limit,
)
from pulsar_ml.structures.delay_index cimport (
    DelayIndex, index_find, index_first, index_insert, index_remove,
)
from pulsar_ml.structures.delayed_tracker cimport TIMER_OFF
from pulsar_ml.structures.entry_set cimport SET_ADDED, SET_NO_MEMORY, SetAdded
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.object_pool cimport Pool, pool_give, pool_take
from pulsar_ml.structures.position cimport Position, position, position_less
from pulsar_ml.structures.stamped_lock cimport (
    stamped_lock_read, stamped_lock_write, stamped_unlock_read, stamped_unlock_write,
)
from pulsar_ml.sync.atomics cimport (
    i64_cas_weak_relaxed, i64_fetch_add_relaxed, i64_load_relaxed, i64_store_relaxed, pml_i64, pml_u32,
)


cdef struct DelayTable:
    Pool* buckets
    DelayRule rule
    pml_i64 tick
    pml_u32 index_lock
    DelayIndex index
    pml_i64 passed          # the highest bucket that a view looked at
    pml_i64 count
    pml_i64 bytes           # of the sets
    pml_u32 clock           # the monitor of what follows; the target is read without it, too
    pml_i64 target
    int64_t fire_at
    int64_t last_run
    int64_t last_prune
    bint ran, pruned        # there was a last time


# How far a view got: everything up to this position of this bucket, and all earlier buckets.
cdef struct DelayCursor:
    int64_t key
    Position at


cdef inline DelayCursor delay_cursor(int64_t key, Position at) noexcept nogil:
    cdef DelayCursor cursor
    cursor.key = key
    cursor.at = at
    return cursor


cdef inline Position beyond_all() noexcept nogil:
    return position(INT64_MAX, INT64_MAX)


cdef inline int64_t table_limit(DelayTable* table, int64_t now) noexcept nogil:
    return delay_limit(table.rule, i64_load_relaxed(&table.tick), now)


# Buckets -----------------------------------------------------------------------------------------

# The first bucket at a key or after it, which it replaces, up to a limit; 0 when there is none.
# A view that passes the bucket sets `passed`, which later adds to the bucket see.
cdef inline uint32_t table_next(
    DelayTable* table, int64_t* key, int64_t limit, bint passes
) noexcept nogil:
    cdef uint32_t handle
    cdef int64_t seen
    stamped_lock_read(&table.index_lock)
    handle = index_first(&table.index, key)
    if key[0] > limit:
        handle = 0
    if handle and passes:
        # In the section: a thread that makes a bucket below this key later sees `passed`.
        seen = i64_load_relaxed(&table.passed)
        # Fails when another view passed a bucket.
        while seen < key[0]:
            if i64_cas_weak_relaxed(&table.passed, &seen, key[0]):
                break
    stamped_unlock_read(&table.index_lock)
    return handle


# Under the bucket's lock: whether it is still the one that was looked for.
cdef inline bint table_owns(DelayTable* table, const DelayBucket* bucket, int64_t key) noexcept nogil:
    return bucket.owner == <void*>table and bucket.key == key


# The bucket of a key, made when there is none; 0 without memory.
cdef inline uint32_t table_bucket(DelayTable* table, int64_t key) noexcept nogil:
    cdef uint32_t handle, fresh
    cdef DelayBucket* bucket
    stamped_lock_read(&table.index_lock)
    handle = index_find(&table.index, key)
    stamped_unlock_read(&table.index_lock)
    if handle:
        return handle
    fresh = pool_take(table.buckets)
    if not fresh:
        return 0
    bucket = bucket_at(table.buckets, fresh)
    # A thread that is late may look at it as the bucket that it was before.
    stamped_lock_write(&bucket.lock)
    stamped_lock_write(&table.index_lock)
    handle = index_find(&table.index, key)
    if not handle and index_insert(&table.index, key, fresh):
        handle = fresh
        bucket.owner = table
        bucket.key = key
    stamped_unlock_write(&table.index_lock)
    stamped_unlock_write(&bucket.lock)
    if handle != fresh:
        pool_give(table.buckets, fresh)
    return handle


# Under the exclusive lock, which it leaves: gives an empty bucket back.
cdef inline void table_leave(DelayTable* table, uint32_t handle) noexcept nogil:
    cdef DelayBucket* bucket = bucket_at(table.buckets, handle)
    cdef bint empty = not bucket.count
    cdef int64_t bytes = 0
    if empty:
        bucket_remove_to(bucket, beyond_all(), &bytes)
        i64_fetch_add_relaxed(&table.bytes, bytes)
        stamped_lock_write(&table.index_lock)
        index_remove(&table.index, bucket.key)
        stamped_unlock_write(&table.index_lock)
        bucket.owner = NULL
    stamped_unlock_write(&bucket.lock)
    if empty:
        pool_give(table.buckets, handle)


# Adds a position to the bucket of a key.
cdef inline SetAdded table_add(DelayTable* table, int64_t key, Position at) noexcept nogil:
    cdef SetAdded added
    cdef DelayBucket* bucket
    cdef uint32_t handle
    cdef int64_t bytes = 0
    # Comes round when the bucket was emptied by a prune before it was locked.
    while True:
        handle = table_bucket(table, key)
        if not handle:
            return SET_NO_MEMORY
        bucket = bucket_at(table.buckets, handle)
        stamped_lock_write(&bucket.lock)
        if table_owns(table, bucket, key):
            break
        stamped_unlock_write(&bucket.lock)
    added = bucket_add(bucket, at, &bytes)
    if added == SET_ADDED:
        i64_fetch_add_relaxed(&table.count, 1)
    if bytes:
        i64_fetch_add_relaxed(&table.bytes, bytes)
    table_leave(table, handle)
    return added


# Takes out everything up to a position.
cdef inline void table_remove_to(DelayTable* table, Position last) noexcept nogil:
    cdef int64_t key = 0
    cdef int64_t removed, bytes
    cdef uint32_t handle
    cdef DelayBucket* bucket
    while True:
        handle = table_next(table, &key, INT64_MAX, False)
        if not handle:
            return
        bucket = bucket_at(table.buckets, handle)
        stamped_lock_write(&bucket.lock)
        if not table_owns(table, bucket, key):
            stamped_unlock_write(&bucket.lock)
            continue
        bytes = 0
        removed = bucket_remove_to(bucket, last, &bytes)
        i64_fetch_add_relaxed(&table.count, -removed)
        i64_fetch_add_relaxed(&table.bytes, bytes)
        table_leave(table, handle)
        if key == INT64_MAX:
            return
        key += 1


# Walks -------------------------------------------------------------------------------------------

# Copies messages above `above` from the cursor on, in due buckets, and moves the cursor; how many.
cdef inline int64_t table_collect(
    DelayTable* table, DelayCursor* cursor, Position above, int64_t limit, Position* out, int64_t most,
    bint passes
) noexcept nogil:
    cdef int64_t n = 0
    cdef int64_t key, got
    cdef uint32_t handle
    cdef DelayBucket* bucket
    cdef Position after
    cdef bint owned
    while n < most:
        key = max(cursor.key, <int64_t>0)
        handle = table_next(table, &key, limit, passes)
        if not handle:
            break
        bucket = bucket_at(table.buckets, handle)
        after = above
        if key == cursor.key and position_less(after, cursor.at):
            after = cursor.at
        stamped_lock_read(&bucket.lock)
        owned = table_owns(table, bucket, key)
        got = bucket_copy(bucket, after, out + n, most - n) if owned else 0
        stamped_unlock_read(&bucket.lock)
        if not owned:
            continue
        n += got
        if n == most:
            cursor[0] = delay_cursor(key, out[n - 1])
        elif key == INT64_MAX:
            cursor[0] = delay_cursor(key, beyond_all())
            break
        else:
            cursor[0] = delay_cursor(key + 1, position(-1, -1))
    return n


# The number of messages above `above` from the cursor on; stops counting at `enough`.
cdef inline int64_t table_count_above(
    DelayTable* table, DelayCursor cursor, Position above, int64_t enough
) noexcept nogil:
    cdef int64_t n = 0
    cdef int64_t key = max(cursor.key, <int64_t>0)
    cdef uint32_t handle
    cdef DelayBucket* bucket
    cdef Position after
    cdef bint owned
    while n < enough:
        handle = table_next(table, &key, INT64_MAX, False)
        if not handle:
            break
        bucket = bucket_at(table.buckets, handle)
        after = above
        if key == cursor.key and position_less(after, cursor.at):
            after = cursor.at
        stamped_lock_read(&bucket.lock)
        owned = table_owns(table, bucket, key)
        if owned:
            n += bucket_count_above(bucket, after)
        stamped_unlock_read(&bucket.lock)
        if not owned:
            continue
        if key == INT64_MAX:
            break
        key += 1
    return n


# The timer ---------------------------------------------------------------------------------------

# Arms the timer for a bucket, unless it is armed for one that is not later. Only a fire disarms it:
# a target that was armed for another view stays.
cdef inline void table_arm(DelayTable* table, int64_t key) noexcept nogil:
    cdef int64_t target = i64_load_relaxed(&table.target)
    # Seen after the lock of the bucket: a fire that did not see the message took its target away
    # before.
    if target != TIMER_OFF and target <= key:
        return
    monitor_enter(&table.clock)
    target = i64_load_relaxed(&table.target)
    if target == TIMER_OFF or key < target:
        i64_store_relaxed(&table.target, key)
        table.fire_at = delay_due(table.rule, i64_load_relaxed(&table.tick), key)
        if table.ran:
            table.fire_at = max(
                table.fire_at, add_saturating(table.last_run, i64_load_relaxed(&table.tick)))
    monitor_leave(&table.clock)


# Disarms the timer when its time has come; whether it had.
cdef inline bint table_start_fire(DelayTable* table, int64_t now) noexcept nogil:
    cdef bint fires
    monitor_enter(&table.clock)
    fires = i64_load_relaxed(&table.target) != TIMER_OFF and table.fire_at <= now
    if fires:
        i64_store_relaxed(&table.target, TIMER_OFF)
        table.last_run = now
        table.ran = True
    monitor_leave(&table.clock)
    return fires


# Arms the timer for the first bucket that is not due. Also whenever a view finds nothing: a smaller
# tick may make messages due later than the timer said.
cdef inline void table_arm_next(DelayTable* table, int64_t now) noexcept nogil:
    cdef int64_t limit = table_limit(table, now)
    cdef int64_t key = max(limit, <int64_t>-1)
    if key < INT64_MAX:
        key += 1
        if table_next(table, &key, INT64_MAX, False):
            table_arm(table, key)


# True if a prune is due: at most once in an interval, and the first time at once. After the clock
# went back a prune waits until the clock is there again.
cdef inline bint table_start_prune(DelayTable* table, int64_t interval, int64_t now) noexcept nogil:
    cdef bint due
    monitor_enter(&table.clock)
    due = not table.pruned or <int64_t>(<uint64_t>now - <uint64_t>table.last_prune) >= interval
    if due:
        table.last_prune = now
        table.pruned = True
    monitor_leave(&table.clock)
    return due
