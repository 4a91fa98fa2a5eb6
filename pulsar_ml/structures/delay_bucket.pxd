# The messages of one span of delivery times, by ledger, and when such a span is due. A part of
# delayed_tracker and delayed_manager.
#
# Origin       The inner maps of Pulsar's delayed trackers, ledger -> Roaring64Bitmap, and the
#              rounding of InMemoryDelayedDeliveryTracker since #26012: up when delivery is strict.
# Threads      Under the bucket's lock, shared for what changes nothing; or under the tracker's
#              monitor.
# Invariants   DB-1 (I91) the count is the sum of the sets' counts.
#              DB-2 ledgers ascend, and no ledger's set is empty.
#              DB-3 (I98) a bucket with an owner is in its index under its key, unless a thread is
#              in the exclusive section in which that changes.
# Ordering     The lock's.
# Reclamation  Buckets are pooled, and their memory stays what it is: a thread that comes late takes
#              the lock, sees another owner or key and looks again. The lock is never reset.
# Not promised Speed with many ledgers in one bucket: one that is not the last is put between the
#              others.

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint32_t
from libc.string cimport memcpy, memmove

from pulsar_ml.structures.entry_set cimport (
    SET_ADDED, SET_NO_MEMORY, EntrySet, SetAdded, entry_set_add, entry_set_copy, entry_set_count_from,
    entry_set_remove_to,
)
from pulsar_ml.structures.object_pool cimport Pool, pool_at, pool_init
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.status cimport Status
from pulsar_ml.sync.atomics cimport pml_i64, pml_u32
from pulsar_ml.sync.memory cimport allocate, release


# How delivery times become buckets; fixed for the life of a tracker.
cdef struct DelayRule:
    int64_t precision       # a power of two
    bint strict


cdef struct DelayLedger:
    int64_t ledger_id
    EntrySet entries


cdef struct DelayBucket:
    pml_u32 lock
    pml_i64 link            # next free bucket while pooled
    void* owner             # whose it is; NULL while pooled
    int64_t key
    int64_t count
    DelayLedger* ledgers
    int32_t used, room


# Time ------------------------------------------------------------------------------------------

cdef inline int64_t add_saturating(int64_t a, int64_t b) noexcept nogil:
    if b > 0 and a > INT64_MAX - b:
        return INT64_MAX
    if b < 0 and a < INT64_MIN - b:
        return INT64_MIN
    return a + b


# Buckets as wide as the largest power of two that is not above the tick. A later tick changes
# nothing.
cdef inline DelayRule delay_rule(int64_t tick, bint strict) noexcept nogil:
    cdef DelayRule rule
    rule.precision = 1
    while rule.precision <= tick // 2:
        rule.precision *= 2
    rule.strict = strict
    return rule


# The bucket of a delivery time >= 0.
cdef inline int64_t delay_key(DelayRule rule, int64_t deliver_at) noexcept nogil:
    cdef int64_t below = deliver_at & -rule.precision
    if not rule.strict or below == deliver_at:
        return below
    return add_saturating(below, rule.precision)


# A message whose time is not above that is delivered at once.
cdef inline int64_t delay_cutoff(DelayRule rule, int64_t tick, int64_t now) noexcept nogil:
    return now if rule.strict else add_saturating(now, tick)


# The last bucket that is due: all its messages are.
cdef inline int64_t delay_limit(DelayRule rule, int64_t tick, int64_t now) noexcept nogil:
    if rule.strict:
        return now
    return add_saturating(add_saturating(now, tick), 1 - rule.precision)


# When a bucket is due for a timer: not before its own time.
cdef inline int64_t delay_due(DelayRule rule, int64_t tick, int64_t key) noexcept nogil:
    if rule.strict or tick >= rule.precision - 1:
        return key
    return add_saturating(key, rule.precision - 1 - tick)


# Buckets ---------------------------------------------------------------------------------------

cdef inline Status bucket_pool_init(Pool* pool, uint32_t chunk_bits, uint32_t limit) noexcept nogil:
    return pool_init(pool, sizeof(DelayBucket), <size_t>&(<DelayBucket*>NULL).link, chunk_bits, limit)


cdef inline DelayBucket* bucket_at(const Pool* pool, uint32_t handle) noexcept nogil:
    return <DelayBucket*>pool_at(pool, handle)


# The first ledger that is not below that, or `used`.
cdef inline int32_t bucket_bound(const DelayBucket* bucket, int64_t ledger_id) noexcept nogil:
    cdef int32_t low = 0
    cdef int32_t high = bucket.used
    cdef int32_t middle
    if high and bucket.ledgers[high - 1].ledger_id < ledger_id:
        return high
    while low < high:
        middle = (low + high) >> 1
        if bucket.ledgers[middle].ledger_id < ledger_id:
            low = middle + 1
        else:
            high = middle
    return low


# A ledger without entries at place `at`; False without memory.
cdef inline bint bucket_insert(
    DelayBucket* bucket, int32_t at, int64_t ledger_id, int64_t* bytes
) noexcept nogil:
    cdef DelayLedger* ledgers
    cdef int32_t room
    if bucket.used == bucket.room:
        room = 2 * bucket.room if bucket.room else 1
        ledgers = <DelayLedger*>allocate(<size_t>room * sizeof(DelayLedger))
        if ledgers is NULL:
            return False
        if bucket.used:
            memcpy(ledgers, bucket.ledgers, <size_t>bucket.used * sizeof(DelayLedger))
        bytes[0] += (<int64_t>room - bucket.room) * <int64_t>sizeof(DelayLedger)
        release(bucket.ledgers)
        bucket.ledgers = ledgers
        bucket.room = room
    if at < bucket.used:
        memmove(&bucket.ledgers[at + 1], &bucket.ledgers[at],
                <size_t>(bucket.used - at) * sizeof(DelayLedger))
    bucket.ledgers[at] = DelayLedger(ledger_id, EntrySet(NULL, 0, 0, 0))
    bucket.used += 1
    return True


cdef inline SetAdded bucket_add(DelayBucket* bucket, Position at, int64_t* bytes) noexcept nogil:
    cdef int32_t place = bucket_bound(bucket, at.ledger_id)
    cdef SetAdded added
    if place == bucket.used or bucket.ledgers[place].ledger_id != at.ledger_id:
        if not bucket_insert(bucket, place, at.ledger_id, bytes):
            return SET_NO_MEMORY
    added = entry_set_add(&bucket.ledgers[place].entries, at.entry_id, bytes)
    bucket.count += added == SET_ADDED
    if not bucket.ledgers[place].entries.count:
        bucket.used -= 1
        memmove(&bucket.ledgers[place], &bucket.ledgers[place + 1],
                <size_t>(bucket.used - place) * sizeof(DelayLedger))
    return added


# Copies positions above `after`, ascending; how many. The entries are unpacked in the place of the
# last positions, from which they move to their own.
cdef inline int64_t bucket_copy(
    const DelayBucket* bucket, Position after, Position* out, int64_t most
) noexcept nogil:
    cdef int32_t place = bucket_bound(bucket, after.ledger_id)
    cdef int64_t n = 0
    cdef int64_t low, got, i
    cdef int64_t* entries
    while place < bucket.used and n < most:
        low = 0
        if bucket.ledgers[place].ledger_id == after.ledger_id:
            if after.entry_id == INT64_MAX:
                place += 1
                continue
            low = max(after.entry_id + 1, <int64_t>0)
        # The upper half of what is free: entry i moves to words 2i and 2i + 1, below those not yet
        # read.
        entries = <int64_t*>(out + n) + (most - n)
        got = entry_set_copy(&bucket.ledgers[place].entries, low, entries, most - n)
        for i in range(got):
            out[n + i] = position(bucket.ledgers[place].ledger_id, entries[i])
        n += got
        place += 1
    return n


# The number of messages above `after`.
cdef inline int64_t bucket_count_above(const DelayBucket* bucket, Position after) noexcept nogil:
    cdef int32_t place = bucket_bound(bucket, after.ledger_id)
    cdef int64_t n = 0
    if place == 0 and (not bucket.used or bucket.ledgers[0].ledger_id > after.ledger_id):
        return bucket.count
    while place < bucket.used:
        if bucket.ledgers[place].ledger_id > after.ledger_id:
            n += bucket.ledgers[place].entries.count
        elif after.entry_id < INT64_MAX:
            n += entry_set_count_from(&bucket.ledgers[place].entries, max(after.entry_id + 1, <int64_t>0))
        place += 1
    return n


# Takes out all messages up to `last`; how many.
cdef inline int64_t bucket_remove_to(DelayBucket* bucket, Position last, int64_t* bytes) noexcept nogil:
    cdef int64_t removed = 0
    cdef int32_t gone = 0
    cdef DelayLedger* ledger
    while gone < bucket.used and bucket.ledgers[gone].ledger_id <= last.ledger_id:
        ledger = &bucket.ledgers[gone]
        removed += entry_set_remove_to(
            &ledger.entries, last.entry_id if ledger.ledger_id == last.ledger_id else INT64_MAX, bytes)
        if ledger.entries.count:
            break
        gone += 1
    if gone:
        bucket.used -= gone
        memmove(bucket.ledgers, &bucket.ledgers[gone], <size_t>bucket.used * sizeof(DelayLedger))
    if not bucket.used:
        bytes[0] -= bucket.room * <int64_t>sizeof(DelayLedger)
        release(bucket.ledgers)
        bucket.ledgers = NULL
        bucket.room = 0
    bucket.count -= removed
    return removed
