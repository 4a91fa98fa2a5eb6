# The common part of the operations of delayed delivery: names and notes of messages, a clock for
# each thread, and an inspection of a bucket.
#
# Time is an argument of the structures. Each thread has a clock of its own, so what a call is given
# does not depend on the schedule, and threads come with times of any order, as those do that read a
# clock and then wait for a lock.
#
# A message is a number; numbers are ordered as their positions are. Of the numbers below
# DELAY_NOTED it is known when each was due at the earliest, so a thread sees when one of them comes
# too early.

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint16_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlViolation
from pulsar_ml.operations.support cimport expect_equal, violate
from pulsar_ml.structures.delay_bucket cimport (
    DelayBucket, DelayLedger, add_saturating, bucket_at, bucket_copy,
)
from pulsar_ml.structures.delayed_table cimport DelayTable, table_next
from pulsar_ml.structures.entry_set cimport (
    BLOCK_ARRAY, BLOCK_BITMAP, BLOCK_RUNS, SET_ARRAY_MOST, SET_LEAST, SET_WORDS, EntrySet, SetBlock,
)
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.stamped_lock cimport stamped_lock_read, stamped_unlock_read
from pulsar_ml.sync.atomics cimport (
    i32_load_relaxed, i64_cas_weak_relaxed, i64_fetch_add_relaxed, i64_load_relaxed, i64_store_relaxed,
    pml_i32, pml_i64,
)
from pulsar_ml.sync.bits cimport count_ones
from pulsar_ml.sync.memory cimport allocate_zeroed


cdef enum:
    DELAY_NOTED = 64        # messages that notes are kept of; single messages are among them
    DELAY_LEDGER_BITS = 17  # most numbers of one ledger, as a power of two
    DELAY_LEDGER = 3        # the first one
    DELAY_BATCH = 40        # a request for so many or more is one for all
    DELAY_CHUNK = 64        # messages of one call of the structure
    DELAY_BLOCK = 1 << 16   # entries of a ledger that a set keeps in one block
    DELAY_APART = 311       # a prime: its multiples visit all moments
    DELAY_ERAS = 3          # in which clocks begin


cdef struct DelayClocks:
    int64_t* times          # each written by its thread
    int32_t threads


cdef struct DelayNotes:
    pml_i64 most_tick       # of all that were set
    int64_t ledger_bits     # numbers of one ledger, as a power of two
    int64_t first_entry     # of each ledger
    pml_i32 taken           # a call that may take messages out has begun
    bint strict
    pml_i64[64] earliest    # delivery time of a message
    pml_i64[64] tracked     # how often it was kept
    pml_i64[64] returned


cdef inline bint delay_clocks_init(DelayClocks* clocks, int32_t threads, int64_t start) noexcept nogil:
    cdef int32_t i
    clocks.threads = threads
    clocks.times = <int64_t*>allocate_zeroed(<size_t>threads, sizeof(int64_t))
    if clocks.times is NULL:
        return False
    for i in range(threads):
        clocks.times[i] = start
    return True


# At quiescence: the time of the latest clock.
cdef inline int64_t delay_latest(const DelayClocks* clocks) noexcept nogil:
    cdef int64_t latest = clocks.times[0]
    cdef int32_t i
    for i in range(1, clocks.threads):
        latest = max(latest, clocks.times[i])
    return latest


# Above 0, `block_end` is the number of entries of each ledger before the end of a block.
cdef inline void delay_notes_init(
    DelayNotes* notes, int64_t tick, bint strict, int64_t ledger_bits, int64_t block_end
) noexcept nogil:
    cdef int64_t i
    i64_store_relaxed(&notes.most_tick, tick)
    notes.strict = strict
    notes.ledger_bits = ledger_bits
    notes.first_entry = DELAY_BLOCK - block_end if block_end else 0
    for i in range(DELAY_NOTED):
        i64_store_relaxed(&notes.earliest[i], INT64_MAX)


cdef inline Position delay_position(const DelayNotes* notes, int64_t number) noexcept nogil:
    return position(DELAY_LEDGER + (number >> notes.ledger_bits),
                    notes.first_entry + (number & ((<int64_t>1 << notes.ledger_bits) - 1)))


cdef inline int64_t delay_number(const DelayNotes* notes, Position at) noexcept nogil:
    return (at.ledger_id - DELAY_LEDGER) << notes.ledger_bits | at.entry_id - notes.first_entry


# Where the clocks of an era begin: at 0, at the smallest number, or at one of our days.
cdef inline int64_t delay_start(int64_t era, int64_t start) noexcept nogil:
    if era == 1:
        return INT64_MIN + 40 + start
    return (<int64_t>1 << 40) + start if era == 2 else start


# Time since the clocks began, which may pass the largest number.
cdef inline int64_t delay_since(int64_t at, int64_t start) noexcept nogil:
    return <int64_t>(<uint64_t>at - <uint64_t>start)


# When message i of many is due that are each at a moment of their own, in an order that the step
# decides; beyond every tick.
cdef inline int64_t delay_time_apart(int64_t i, int64_t step, int64_t now) noexcept nogil:
    return add_saturating(now, DELAY_NOTED + i * step % DELAY_APART)


# The distance between the messages of a run that begins there.
cdef inline int64_t delay_stride(int64_t first) noexcept nogil:
    if first % 4 < 2:
        return 1
    return 3 if first % 4 == 2 else 64


# A delay beyond the usual ones names the end of time.
cdef inline int64_t delay_time(int64_t delay, int64_t now) noexcept nogil:
    return INT64_MAX - (delay - DELAY_NOTED) if delay >= DELAY_NOTED else add_saturating(now, delay)


cdef inline void raise_to(pml_i64* cell, int64_t value) noexcept nogil:
    cdef int64_t seen = i64_load_relaxed(cell)
    while seen < value:
        if i64_cas_weak_relaxed(cell, &seen, value):
            return


# Before a message is added.
cdef inline void delay_note_time(DelayNotes* notes, int64_t number, int64_t deliver_at) noexcept nogil:
    cdef int64_t seen
    if number >= DELAY_NOTED:
        return
    seen = i64_load_relaxed(&notes.earliest[number])
    while seen > deliver_at:
        if i64_cas_weak_relaxed(&notes.earliest[number], &seen, deliver_at):
            return


# The digest of what was returned, in its order; nothing of it comes too early.
cdef inline uint64_t delay_take(
    DelayNotes* notes, uint64_t digest, const Position* got, int64_t count, int64_t now,
    PmlViolation* violation
) noexcept nogil:
    cdef int64_t allowed = now
    cdef int64_t i, number
    if not notes.strict:
        # An addition of nothing, which sees what is there now: the structure may know of it
        # already.
        allowed = add_saturating(now, i64_fetch_add_relaxed(&notes.most_tick, 0))
    for i in range(count):
        number = delay_number(notes, got[i])
        digest = digest * <uint64_t>0x100000001B3 + <uint64_t>(number + 1)
        if number < DELAY_NOTED:
            i64_fetch_add_relaxed(&notes.returned[number], 1)
            if i64_load_relaxed(&notes.earliest[number]) > allowed:
                violate(violation, b"I93", b"message %lld of time %lld was returned at %lld", number,
                        i64_load_relaxed(&notes.earliest[number]), now)
    return digest


# Inspection --------------------------------------------------------------------------------------

# Members of a block, counted; they ascend.
cdef inline int64_t delay_recount(const SetBlock* block, PmlViolation* violation) noexcept nogil:
    cdef int64_t n = 0
    cdef int64_t before = -2
    cdef int32_t i
    if block.form == BLOCK_BITMAP:
        for i in range(SET_WORDS):
            n += count_ones((<const uint64_t*>block.values)[i])
        return n
    for i in range(block.used):
        # Runs do not touch each other: the first of one is two above the last of another.
        if block.values[i] < before + (1 if block.form == BLOCK_ARRAY else 2 * (1 - (i & 1))):
            violate(violation, b"ES-2", b"value %lld is after %lld", block.values[i], before, 0)
        if block.form == BLOCK_ARRAY:
            n += 1
        elif i & 1:
            n += block.values[i] - before + 1
        before = block.values[i]
    return n


# An array that grew, from which nothing was taken: it had more than a quarter as many runs as
# values when it grew, and each value since then joined two runs at most.
cdef inline void delay_check_form(const SetBlock* block, PmlViolation* violation) noexcept nogil:
    cdef int32_t grown_at = block.room // 2 - 1
    cdef int32_t runs = 1
    cdef int32_t i
    if block.form != BLOCK_ARRAY or block.room <= SET_LEAST or block.used <= grown_at:
        return
    for i in range(1, block.used):
        runs += block.values[i] != block.values[i - 1] + 1
    if runs < grown_at // 4 + 1 - (block.used - grown_at):
        violate(violation, b"ES-4", b"an array with room for %lld has %lld values in %lld runs", block.room,
                block.used, runs)


# Under the bucket's lock: every set is what its counts say. Adds up the messages and the bytes.
# `whole`: nothing was taken from the bucket.
cdef inline void delay_inspect_bucket(
    const DelayBucket* bucket, bint whole, int64_t* count, int64_t* bytes, PmlViolation* violation
) noexcept nogil:
    cdef DelayLedger* ledger
    cdef int64_t in_bucket = 0
    cdef int64_t in_set
    cdef int32_t i, j
    bytes[0] += bucket.room * <int64_t>sizeof(DelayLedger)
    for i in range(bucket.used):
        ledger = &bucket.ledgers[i]
        if i and bucket.ledgers[i - 1].ledger_id >= ledger.ledger_id:
            violate(violation, b"DB-2", b"ledger %lld is after another", ledger.ledger_id, 0, 0)
        in_set = 0
        bytes[0] += ledger.entries.room * <int64_t>sizeof(SetBlock)
        for j in range(ledger.entries.used):
            if j and ledger.entries.blocks[j - 1].base >= ledger.entries.blocks[j].base:
                violate(violation, b"ES-2", b"block %lld is after another",
                        ledger.entries.blocks[j].base, 0, 0)
            bytes[0] += ledger.entries.blocks[j].room * <int64_t>sizeof(uint16_t)
            in_set += ledger.entries.blocks[j].count
            if whole:
                delay_check_form(&ledger.entries.blocks[j], violation)
            expect_equal(violation, b"I91", b"members of a block",
                         delay_recount(&ledger.entries.blocks[j], violation), ledger.entries.blocks[j].count)
        expect_equal(violation, b"I91", b"members of a set", in_set, ledger.entries.count)
        in_bucket += in_set
    expect_equal(violation, b"I91", b"messages of a bucket", in_bucket, bucket.count)
    count[0] += in_bucket


# Every bucket under its lock; how many messages are in all. `there`: which of those with notes.
cdef inline int64_t delay_inspect_table(
    DelayTable* table, const DelayNotes* notes, bint* there, int64_t* bytes, PmlViolation* violation
) noexcept nogil:
    cdef int64_t key = 0
    cdef int64_t count = 0
    cdef int64_t n, i
    cdef uint32_t handle
    cdef DelayBucket* bucket
    cdef bint owned
    cdef Position[64] got
    bytes[0] = 0
    while not violation.found:
        handle = table_next(table, &key, INT64_MAX, False)
        if not handle:
            break
        bucket = bucket_at(table.buckets, handle)
        stamped_lock_read(&bucket.lock)
        owned = bucket.owner == <void*>table and bucket.key == key
        if owned:
            # In the section: a call that takes out sets the note before its own.
            delay_inspect_bucket(bucket, not i32_load_relaxed(&notes.taken), &count, bytes, violation)
            n = bucket_copy(bucket, position(-1, -1), got, 64)
            for i in range(n):
                if there is not NULL and delay_number(notes, got[i]) < DELAY_NOTED:
                    there[delay_number(notes, got[i])] = True
        elif there is not NULL:
            violate(violation, b"I98", b"the bucket of %lld is another one", key, 0, 0)
        stamped_unlock_read(&bucket.lock)
        if not owned:
            continue
        if key == INT64_MAX:
            break
        key += 1
    return count
